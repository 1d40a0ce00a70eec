"""Prepare items and ask about them, many at once; the results come in the items' order, as they come."""

import math
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from typing import Generic, TypeVar

OUTSTANDING_PER_WORKER = 8
"""Items under way or waiting to be yielded: one slow answer does not idle the others, and no batch fills memory."""

Item = TypeVar("Item")
Ready = TypeVar("Ready")
Result = TypeVar("Result")


def in_order(
    prepare: Callable[[Item], Ready], ask: Callable[[Ready], Result], items: Sequence[Item], workers: int
) -> Iterator[Result]:
    """Yield the result of every item, in order.

    When an item fails, no further one is begun, those under way are finished, the results before the failed item are
    yielded, and its error is raised. When the iterator is closed or interrupted, what has not begun is dropped, answers
    are not waited for, but preparations are: they read a slide that the caller is about to close.

    Args:
        prepare: Called with an item, from many threads; takes milliseconds.
        ask: Called with what that returned, in the same thread; may take minutes.
        items: The items.
        workers: Threads.
    """
    return _Line(prepare, ask, workers).run(items)


class _Line(Generic[Item, Ready, Result]):
    """One run over items."""

    def __init__(self, prepare: Callable[[Item], Ready], ask: Callable[[Ready], Result], workers: int) -> None:
        self._prepare, self._ask, self._workers = prepare, ask, workers
        self._changed = threading.Condition()
        self._preparing = 0
        self._last: float = math.inf  # items behind this one are not begun any more

    def run(self, items: Sequence[Item]) -> Iterator[Result]:
        """Yield the results."""
        pool = ThreadPoolExecutor(self._workers, thread_name_prefix="pathnav-tile")
        under_way: deque[Future[Result]] = deque()
        may_wait = False
        begun = 0
        try:
            while under_way or begun < len(items):
                while begun < len(items) and len(under_way) < self._workers * OUTSTANDING_PER_WORKER:
                    under_way.append(self._begin(pool, begun, items[begun]))
                    begun += 1
                head = under_way.popleft()
                error = head.exception()
                if error is not None:
                    may_wait = True
                    raise error
                yield head.result()
            may_wait = True
        finally:
            if not may_wait:
                self._stop_after(-1)
                with self._changed:
                    self._changed.wait_for(lambda: self._preparing == 0)
            pool.shutdown(wait=may_wait, cancel_futures=True)

    def _begin(self, pool: ThreadPoolExecutor, index: int, item: Item) -> Future[Result]:
        future = pool.submit(self._one, index, item)
        future.add_done_callback(lambda done: self._stop_after(index) if _failed(done) else None)
        return future

    def _one(self, index: int, item: Item) -> Result:
        with self._changed:
            if index > self._last:
                raise CancelledError
            self._preparing += 1
        try:
            ready = self._prepare(item)
        finally:
            with self._changed:
                self._preparing -= 1
                self._changed.notify_all()
        return self._ask(ready)

    def _stop_after(self, index: int) -> None:
        with self._changed:
            self._last = min(self._last, index)


def _failed(done: Future[Result]) -> bool:
    return not done.cancelled() and done.exception() is not None
