"""Ctrl-C that waits its turn: pressed while answers are taken down, it must lose none of them."""

import signal
import threading
from collections.abc import Callable
from contextlib import suppress
from types import FrameType, TracebackType
from typing import Self


class CtrlC:
    """While a `with` block lasts, the first Ctrl-C is noted and raises nothing; the second one raises at once.

    What was noted is the caller's to raise. Does nothing outside of the main thread, and where a program, or an outer
    block of this kind, has its own way with Ctrl-C.

    Args:
        tell: Called when it is pressed, within the signal handler.
    """

    def __init__(self, tell: Callable[[], None] = lambda: None) -> None:
        self._tell = tell
        self._is_mine = False
        self.was_pressed = False

    def __enter__(self) -> Self:
        is_main = threading.current_thread() is threading.main_thread()
        self._is_mine = is_main and signal.getsignal(signal.SIGINT) is signal.default_int_handler
        if self._is_mine:
            signal.signal(signal.SIGINT, self._pressed)
        return self

    def _pressed(self, number: int, frame: FrameType | None) -> None:
        if self.was_pressed:
            raise KeyboardInterrupt
        self.was_pressed = True
        self._tell()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._is_mine:
            with suppress(ValueError):  # a generator that is thrown away in another thread
                signal.signal(signal.SIGINT, signal.default_int_handler)
