"""Prepare items and ask about them, many at once; each result comes as soon as it is there, with its item's place."""

import logging
import math
import queue
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from types import TracebackType
from typing import Generic, TypeVar

from pathnav.explore.ctrl_c import CtrlC

FAILED_WAIT_S = 30.0
"""How long the answers under way are waited for when another one failed: most come within seconds, and are paid for."""

INTERRUPTED_WAIT_S = 5.0
"""The same after Ctrl-C, when somebody sits there and waits; a second Ctrl-C ends it at once."""

Item = TypeVar("Item")
Ready = TypeVar("Ready")
Result = TypeVar("Result")

logger = logging.getLogger(__name__)


def as_ready(
    prepare: Callable[[Item], Ready], ask: Callable[[Ready], Result], items: Sequence[Item], workers: int
) -> Iterator[tuple[int, Result]]:
    """Yield the place and the result of every item, in the order in which the results come.

    When an item fails, or Ctrl-C is pressed, no further item is begun. Results that are there, or come while those
    under way are waited for (30 s, 5 s after Ctrl-C), are yielded before the error is raised: whatever the caller does
    with them, Ctrl-C does not break in upon it. A second Ctrl-C does. When the iterator is
    closed, answers are not waited for. Preparations always are: they read a slide that the caller is about to close.

    Args:
        prepare: Called with an item, from many threads; takes milliseconds.
        ask: Called with what that returned, in the same thread; may take minutes.
        items: The items; begun in their order.
        workers: Threads; items under way at any time.
    """
    return _Line(prepare, ask, items).run(workers)


@dataclass(frozen=True, slots=True)
class _Failure:
    """What an item raised."""

    error: BaseException


@dataclass(frozen=True, slots=True)
class _Dropped:
    """In place of the result of an item that was prepared, but not asked about any more."""


@dataclass(frozen=True, slots=True)
class _Pressed:
    """Among the results: Ctrl-C was pressed when those before it were there."""


class _Handing:
    """Hands over what a block raises, as a future does: it is raised where the results are taken, not in its thread."""

    def __init__(self, take: Callable[[BaseException], None]) -> None:
        self._take = take

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        if error is not None:
            self._take(error)
        return True


class _Line(Generic[Item, Ready, Result]):
    """One run over items."""

    def __init__(self, prepare: Callable[[Item], Ready], ask: Callable[[Ready], Result], items: Sequence[Item]) -> None:
        self._prepare, self._ask, self._items = prepare, ask, items
        self._ended: queue.SimpleQueue[tuple[int, Result | _Failure | _Dropped | _Pressed]] = queue.SimpleQueue()
        self._changed = threading.Condition()
        self._begun = self._preparing = 0
        self._stopped = False

    def run(self, workers: int) -> Iterator[tuple[int, Result]]:
        """Yield the places and results."""
        for number in range(min(workers, len(self._items))):
            # daemons: the end of the process must not wait for an answer that nobody takes any more
            threading.Thread(target=self._work, name=f"pathnav-tile-{number}", daemon=True).start()
        ctrl_c = CtrlC(lambda: self._ended.put((-1, _Pressed())))
        with ctrl_c:
            yield from self._taken()
        if ctrl_c.was_pressed:  # when the last result was being taken down
            raise KeyboardInterrupt

    def _taken(self) -> Iterator[tuple[int, Result]]:
        error: BaseException | None = None
        taken, until_s = 0, math.inf
        try:
            while taken < self._expected():
                try:
                    place, result = self._ended.get(timeout=_left(until_s))
                except queue.Empty:
                    break
                except KeyboardInterrupt as interrupt:
                    if error is not None:
                        raise
                    error, until_s = interrupt, self._stop(INTERRUPTED_WAIT_S)
                    continue
                if isinstance(result, _Pressed):
                    error, until_s = error or KeyboardInterrupt(), self._stop(INTERRUPTED_WAIT_S)
                    continue
                taken += 1
                if isinstance(result, _Failure):
                    if error is None:
                        error, until_s = result.error, self._stop(FAILED_WAIT_S)
                elif not isinstance(result, _Dropped):
                    yield place, result
        finally:
            self._stop(0)
            with self._changed:
                self._changed.wait_for(lambda: self._preparing == 0)
        if error is not None:
            raise error

    def _expected(self) -> int:
        """Return how many results are still to come or have come."""
        with self._changed:
            return self._begun if self._stopped else len(self._items)

    def _stop(self, patience_s: float) -> float:
        """Begin no further item; return until when those under way are waited for, on the monotonic clock."""
        with self._changed:
            self._stopped = True
        if patience_s:
            logger.info("answers under way are waited for, at most %g s", patience_s)
        return time.monotonic() + patience_s

    def _next(self) -> int | None:
        """Return the place of the next item, which is now being prepared; None where there is none any more."""
        with self._changed:
            if self._stopped or self._begun == len(self._items):
                return None
            self._begun += 1
            self._preparing += 1
            return self._begun - 1

    def _work(self) -> None:
        while (place := self._next()) is not None:
            with _Handing(partial(self._fail, place)):
                self._ended.put((place, self._one(place)))

    def _fail(self, place: int, error: BaseException) -> None:
        with self._changed:
            self._stopped = True
        self._ended.put((place, _Failure(error)))

    def _one(self, place: int) -> Result | _Dropped:
        try:
            ready = self._prepare(self._items[place])
        finally:
            with self._changed:
                self._preparing -= 1
                self._changed.notify_all()
        return _Dropped() if self._stopped else self._ask(ready)


def _left(until_s: float) -> float | None:
    return None if until_s == math.inf else max(0.0, until_s - time.monotonic())
