"""Where pixels may go: this machine, private networks, and hosts that the user has named."""

import ipaddress
import socket
from collections.abc import Callable, Collection

from pathnav.errors import ConfigError

Resolve = Callable[[str], Collection[str]]


def addresses(host: str) -> list[str]:
    """Return the addresses of a host name; none where it does not resolve."""
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):  # a name that is no name fails in the encoder
        return []
    return sorted({str(entry[4][0]) for entry in found})


def refuse_public(host: str, allowed: Collection[str], resolve: Resolve = addresses) -> None:
    """Refuse a host outside this machine and its private networks that the user has not named.

    A name counts as private where all of its addresses do. One that does not resolve is left to the connection, which
    says so.

    Args:
        host: Name or address.
        allowed: Hosts that the user has named.
        resolve: Returns the addresses of a name.

    Raises:
        ConfigError: If pixels would leave for a public host.
    """
    if is_named(host, allowed):
        return
    public = [address for address in _literal(host) or resolve(host) if not _is_private(address)]
    if public:
        raise ConfigError(
            f"the endpoint {host} is on a public network, and slide pixels would be sent there: say that they may with "
            f"--allow-host {host}, or model.allow_hosts: [{host}] in the scenario"
        )


def is_named(host: str, allowed: Collection[str]) -> bool:
    """Return whether the user has named a host."""
    return host.lower() in {name.strip().lower() for name in allowed}


def _literal(host: str) -> list[str]:
    try:
        return [str(ipaddress.ip_address(host))]
    except ValueError:
        return []


def _is_private(address: str) -> bool:
    """Return whether an address is loopback, link-local, or of a private network (RFC 1918, 4193, 6598)."""
    found = ipaddress.ip_address(address.partition("%")[0])
    mapped = getattr(found, "ipv4_mapped", None)
    found = mapped or found
    shared = found.version == 4 and found in ipaddress.ip_network("100.64.0.0/10")
    return found.is_loopback or found.is_link_local or found.is_private or shared
