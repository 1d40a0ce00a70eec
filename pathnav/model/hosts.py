"""Where pixels may go: this machine, private networks, and hosts that the user has named."""

import ipaddress
import socket
from collections.abc import Callable, Collection

from pathnav.errors import ConfigError

PRIVATE = tuple(
    ipaddress.ip_network(text)
    for text in (
        *("127.0.0.0/8", "::1/128", "0.0.0.0/32", "::/128"),  # this machine
        *("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7"),  # RFC 1918 and 4193
    )
)
"""Where pixels may go without a word. Link-local addresses (169.254.0.0/16, fe80::/10) are not among them, since clouds
answer there, nor is 100.64.0.0/10, which a carrier's customers share (RFC 6598)."""

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
        is_public = any(ipaddress.ip_address(address.partition("%")[0]).is_global for address in public)
        where = "on a public network" if is_public else "neither on this machine nor in a private network"
        raise ConfigError(
            f"the endpoint {host} is {where}, and slide pixels would be sent there",
            remedy=f"say that they may with --allow-host {host}, or model.allow_hosts: [{host}] in the scenario",
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
    """Return whether an address is of this machine or of a private network; one in IPv6 dress counts as its IPv4."""
    found = ipaddress.ip_address(address.partition("%")[0])
    found = getattr(found, "ipv4_mapped", None) or found
    return any(found in network for network in PRIVATE if network.version == found.version)
