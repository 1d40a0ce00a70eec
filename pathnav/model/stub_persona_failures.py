"""Personas that fail now and then, or take their time; what they answer in the end is the pixel reader's answer.

Whether a request fails is drawn from the seed and the request itself, so that the same run against a fresh server of
the same seed meets the same failures.
"""

import hashlib
import json
import threading
from collections import OrderedDict

import numpy as np

from pathnav.errors import ConfigError
from pathnav.model.stub_persona import Persona, Served, checked, turns

SLOW_S = 2.0
STALL_S = 5.0
REMEMBERED = 65_536  # requests whose tries are counted, 100 bytes each
_PAGE = "<!DOCTYPE html>\n<html><head><title>{title}</title></head><body><h1>{title}</h1><p>{text}</p></body></html>\n"


class _Tries:
    """Counts how often the same request has come; threads may share it."""

    def __init__(self, limit: int = REMEMBERED) -> None:
        self._limit = limit
        self._counts: OrderedDict[bytes, int] = OrderedDict()
        self._lock = threading.Lock()

    def count(self, name: bytes) -> int:
        """Return how often a request came before this time."""
        with self._lock:
            before = self._counts.pop(name, 0)
            self._counts[name] = before + 1
            while len(self._counts) > self._limit:
                self._counts.popitem(last=False)
        return before


class Flaky(Persona):
    """Fails at most twice for the same request, then answers it for good.

    Three requests in four fail once or twice: with 429, 500 or 503, with an empty body, or with a connection that is
    closed, at once or after a while. A second failure always asks to be tried again at once.

    Args:
        seed: Of the draws.
        stall_s: How long a connection stays silent before it is closed.
    """

    name = "flaky"
    summary = "429, 500, 503, empty bodies, dropped and silent connections, at most two in a row"

    def __init__(self, seed: int = 0, stall_s: float = STALL_S) -> None:
        super().__init__(seed)
        self.stall_s = _seconds("stall_s", stall_s)
        self._tries = _Tries()

    def serve(self, request: object) -> Served:
        """Answer, or fail as the draws of this request say."""
        name = _digest(self.seed, request)
        rng = np.random.default_rng(int.from_bytes(name[:8], "big"))
        failures = rng.choice([0, 1, 2], p=[0.25, 0.5, 0.25])
        before = self._tries.count(name)
        if before >= failures:
            return super().serve(request)
        quick, slow = self._busy(), [Served(), Served(hangs_up=True), Served(delay_s=self.stall_s, hangs_up=True)]
        either = [*quick, *slow] if before == 0 else quick  # after these a client waits longer the second time
        return either[rng.integers(len(either))]

    def _busy(self) -> list[Served]:
        """Return the failures that say when to come again."""
        return [
            _error(429, "rate limit reached", "0"),
            _error(429, "rate limit reached", "0.02"),
            _error(500, "internal error", "0"),
            _error(503, "the model is loading", "0"),
        ]


class Slow(Persona):
    """Thinks before each answer.

    Args:
        seed: Of no matter.
        delay_s: Seconds before an answer.
    """

    name = "slow"
    summary = "answers after two seconds, or after --delay-s"

    def __init__(self, seed: int = 0, delay_s: float = SLOW_S) -> None:
        super().__init__(seed)
        self.delay_s = _seconds("delay_s", delay_s)

    def serve(self, request: object) -> Served:
        """Answer, late."""
        return Served(json.dumps(self.complete(request)).encode(), delay_s=self.delay_s)


class HtmlError(Persona):
    """A gateway stands before the server and answers two requests in three with a web page, once each.

    It is a page with HTTP 502 (bad gateway), or in the middle of a conversation one with HTTP 200, as from a gateway
    that asks for a login; never at the beginning of a conversation, where a client must take it for a wrong address.
    """

    name = "html-error"
    summary = "web pages with HTTP 502, or 200 in the middle of a conversation, in place of answers"

    def __init__(self, seed: int = 0) -> None:
        super().__init__(seed)
        self._tries = _Tries()

    def serve(self, request: object) -> Served:
        """Answer, or show a page once."""
        _, messages = checked(request)
        name = _digest(self.seed, request)
        rng = np.random.default_rng(int.from_bytes(name[:8], "big"))
        fails, logs_out = rng.random(2) < [2 / 3, 0.5]
        if self._tries.count(name) or not fails:
            return super().serve(request)
        if logs_out and turns(messages):
            return Served(_page("Sign in", "Your session has expired."), 200, "text/html; charset=utf-8")
        page = _page("502 Bad Gateway", "The upstream server did not answer.")
        return Served(page, 502, "text/html; charset=utf-8", {"Retry-After": "0"})


def _error(status: int, message: str, retry_after: str) -> Served:
    error = {"message": message, "type": "server_error", "param": None, "code": None}
    return Served(json.dumps({"error": error}).encode(), status, headers={"Retry-After": retry_after})


def _page(title: str, text: str) -> bytes:
    return _PAGE.format(title=title, text=text).encode()


def _digest(seed: int, request: object) -> bytes:
    """Return the name of a request under a seed."""
    return hashlib.sha256(f"{seed}:{json.dumps(request, sort_keys=True)}".encode()).digest()


def _seconds(name: str, value: float) -> float:
    if not 0 <= value <= threading.TIMEOUT_MAX:
        raise ConfigError(f"{name} must be a number of seconds of at least 0, got {value}")
    return value
