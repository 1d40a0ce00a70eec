"""What went wrong where no answer came: no connection, a broken one, silence, or a proxy in between."""

import errno
import socket
import ssl
import urllib.request
from collections.abc import Iterator
from urllib.parse import urlsplit

import httpx

from pathnav.model.failures import Failure
from pathnav.model.hosts import is_named
from pathnav.model.settings import ChatSettings

CONNECT_TIMEOUT_S = 10.0


def proxy_of(settings: ChatSettings) -> str | None:
    """Return the proxy of the environment that stands before an endpoint, without user and password; None for none."""
    if settings.is_loopback or not is_named(settings.host, settings.allow_hosts):
        return None
    parts = urlsplit(settings.endpoint)
    proxies = urllib.request.getproxies()
    named = proxies.get(parts.scheme) or proxies.get("all")
    if not named or urllib.request.proxy_bypass(parts.netloc):
        return None
    scheme, mark, rest = named.partition("://")
    return f"{scheme}{mark}{rest.rpartition('@')[2]}" if mark else named.rpartition("@")[2]


def of_connection(error: BaseException, timeout_s: float, proxy: str | None = None) -> Failure:
    """Return the failure behind a connection that did not come about, broke, or stayed silent.

    Args:
        error: What httpx raised.
        timeout_s: The time-out of a try.
        proxy: The proxy that was to be passed; what keeps a connection from coming about is then the proxy's.
    """
    sentence = _of_reaching(error)
    if sentence is None and proxy is not None and isinstance(error, httpx.ProxyError):
        sentence = f"answered {error}"
    if sentence is None:
        silent = isinstance(error, httpx.TimeoutException)
        told = f"did not answer within {timeout_s:g} s" if silent else "dropped the connection before it had answered"
        return Failure(told, retriable=True)
    if proxy is None or "TLS" in sentence:
        remedy = "check the base URL and that the server is running"
        return Failure(sentence, retriable=True, unreachable=True, of_settings=True, remedy=remedy)
    told = f"is asked through the proxy {proxy}, which {sentence}"
    remedy = "check HTTPS_PROXY, HTTP_PROXY, ALL_PROXY and NO_PROXY in the environment"
    return Failure(told, retriable=True, unreachable=True, of_settings=True, remedy=remedy)


def _of_reaching(error: BaseException) -> str | None:
    """Return what kept a connection from coming about; None where there was one."""
    for cause in _causes(error):
        if isinstance(cause, socket.gaierror):
            return "has a host name that does not resolve"
        if isinstance(cause, ConnectionRefusedError):
            return "refuses the connection"
        if isinstance(cause, ssl.SSLError):
            return f"fails the TLS handshake ({cause.reason})"
        if isinstance(cause, OSError) and cause.errno in (errno.EHOSTUNREACH, errno.ENETUNREACH):
            return f"cannot be reached ({cause.strerror})"
    if isinstance(error, httpx.ConnectTimeout):
        return f"did not accept a connection within {CONNECT_TIMEOUT_S:g} s"
    return None


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    """Yield an exception and what it came from, outermost first."""
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__
