"""Threads that work through items; daemons, so that a server which hangs never keeps a process alive."""

import math
import queue
import threading
import time
from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Generic, TypeVar

PATIENCE_S = 30.0
"""How long the answers under way are waited for when another one failed: most come within seconds, and are paid for."""

Item = TypeVar("Item")
Ready = TypeVar("Ready")
Result = TypeVar("Result")


def caught(work: Callable[[], Result]) -> Result | BaseException:
    """Return what a piece of work comes to: its result, or whatever it raised.

    The one place that catches everything: whatever an agent or a scorer does, its job has an end.
    """
    try:
        return work()
    except (Exception, SystemExit, KeyboardInterrupt) as error:  # noqa: BLE001  # the one place
        return error


@dataclass(frozen=True, slots=True)
class Failed:
    """What was raised in place of a result."""

    error: BaseException


class Threads(Generic[Item, Result]):
    """Begins items in their order in so many threads, from the time it is made; none any more once one has failed.

    Args:
        work: Called with an item, in any of the threads; what it raises is handed over in place of a result.
        items: The items; the iterator is moved by one thread at a time.
        workers: Threads, which is items under way at any time.
    """

    def __init__(self, work: Callable[[Item], Result], items: Iterable[Item], workers: int) -> None:
        self._work, self._items = work, iter(items)
        self._ended: queue.SimpleQueue[tuple[Item, Result | Failed] | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._under_way: dict[int, Item] = {}
        self._stopped = False
        self._threads = workers
        for number in range(workers):
            threading.Thread(target=self._loop, args=(number,), name=f"pathnav-{number}", daemon=True).start()

    @property
    def under_way(self) -> list[Item]:
        """The items that were begun and have not ended."""
        with self._lock:
            return list(self._under_way.values())

    def stop(self) -> None:
        """Begin no further item."""
        with self._lock:
            self._stopped = True

    def next(self, until_s: float = math.inf) -> tuple[Item, Result | Failed] | None:
        """Return an item that ended and its result; None where none is to come, or none came in time.

        Args:
            until_s: When to give up waiting, on the monotonic clock.
        """
        while self._threads:
            try:
                ended = self._ended.get(timeout=None if until_s == math.inf else max(0.0, until_s - time.monotonic()))
            except queue.Empty:
                return None
            if ended is not None:
                return ended
            self._threads -= 1
        return None

    def _loop(self, number: int) -> None:
        while self._begin(number):
            item = self._under_way[number]
            result = caught(partial(self._work, item))
            with self._lock:
                del self._under_way[number]
                self._stopped |= isinstance(result, BaseException)  # at once, however late it is taken
            self._ended.put((item, Failed(result) if isinstance(result, BaseException) else result))
        self._ended.put(None)

    def _begin(self, number: int) -> bool:
        """Take the next item; return whether there is one."""
        with self._lock:
            if not self._stopped:
                for item in self._items:
                    self._under_way[number] = item
                    return True
            return False


def as_ready(
    read: Callable[[Item], Ready], ask: Callable[[Ready], Result], items: Sequence[Item], workers: int
) -> Generator[tuple[int, Result]]:
    """Yield the place and the result of every item, in the order in which the results come.

    When one fails, no further one is begun; the results that come meanwhile are yielded before the error is raised.
    At the end, also where the caller closes the generator, nothing is read any more, so that a slide may be closed.

    Args:
        read: Called with an item, in a thread; takes milliseconds.
        ask: Called with what that returned, in the same thread; may take minutes.
        items: The items.
        workers: Threads.
    """
    reading = threading.Semaphore(workers)

    def work(place: int) -> Result:
        with reading:
            ready = read(items[place])
        return ask(ready)

    threads, error, until_s = Threads(work, range(len(items)), min(workers, len(items))), None, math.inf
    try:
        while (ended := threads.next(until_s)) is not None:
            place, result = ended
            if not isinstance(result, Failed):
                yield place, result
            elif error is None:
                error, until_s = result.error, time.monotonic() + PATIENCE_S
    finally:
        threads.stop()
        for _ in range(workers):  # whoever reads holds one of them; nobody is waiting for one
            reading.acquire()
    if error is not None:
        raise error
