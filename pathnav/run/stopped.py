"""Ctrl-C, with what there is by then; and SIGTERM, which Slurm and `timeout` send: the same without a wait."""

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathnav.run.explore_request import Searched
    from pathnav.run.request import Located

_terminated = threading.Event()


class Stopped(KeyboardInterrupt):
    """Raised when Ctrl-C ended a request whose record says so; to all who do not ask, a KeyboardInterrupt.

    Args:
        found: What was recorded, with the outcome `interrupted`.
    """

    def __init__(self, found: "Searched | Located") -> None:
        super().__init__()
        self.found = found


def is_terminated() -> bool:
    """Return whether SIGTERM came while `sigterm_stops` lasted."""
    return _terminated.is_set()


def stopped_by() -> str:
    """Return what stopped this process, as records say it."""
    return "stopped by SIGTERM" if is_terminated() else "stopped by Ctrl-C"


@contextlib.contextmanager
def sigterm_stops() -> Iterator[None]:
    """While a `with` block lasts, SIGTERM is a Ctrl-C that leaves no time to finish anything.

    It goes the way that Ctrl-C goes at that moment, so that no answer is lost that is just being taken down. Does
    nothing outside of the main thread, and where a program has its own way with SIGTERM.
    """
    _terminated.clear()
    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield
        return
    signal.signal(signal.SIGTERM, _terminate)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _terminate(number: int, frame: FrameType | None) -> None:
    _terminated.set()
    handler = signal.getsignal(signal.SIGINT)
    if callable(handler):
        handler(signal.SIGINT, frame)
    else:
        raise KeyboardInterrupt
