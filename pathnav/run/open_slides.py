"""The slides of a run that are open at the moment."""

import contextlib
import threading
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Iterator
from types import TracebackType
from typing import TYPE_CHECKING

from pathnav.run.case import SlideFacts, SlideSource

if TYPE_CHECKING:
    from pathnav.slide import Slide

MOST_OPEN = 8
"""Episodes of one slide come one after the other; a few more than one cost nothing (40 open slides: 104 MB)."""


class OpenSlides:
    """Open each slide once and keep the last few open; closes them at the end of a `with` block.

    Threads may share it. A slide that is pushed out is closed, but not while `kept` keeps it: a thread that reads
    pixels does so within such a block.
    """

    def __init__(self) -> None:
        self._open: OrderedDict[SlideSource, Slide] = OrderedDict()
        self._facts: dict[SlideSource, SlideFacts] = {}
        self._kept: Counter[SlideSource] = Counter()
        self._is_over = False
        self._lock = threading.Lock()
        self._opening: defaultdict[SlideSource, threading.Lock] = defaultdict(threading.Lock)

    def get(self, source: SlideSource) -> "Slide":
        """Return the slide of a source, open; it belongs to this object.

        Raises:
            SlideError: If it cannot be opened.
        """
        with self._lock:
            opening = self._opening[source]
        with opening:  # one slide is opened once, different ones at the same time
            with self._lock:
                found = self._open.get(source)
                if found is not None:
                    self._open.move_to_end(source)
                    return found
            slide = source.open()
            with self._lock:
                self._open[source] = slide
                self._push_out()
        return slide

    @contextlib.contextmanager
    def kept(self, source: SlideSource) -> Iterator[None]:
        """Keep a slide open, once it is opened, for the time of a block."""
        with self._lock:
            self._kept[source] += 1
        try:
            yield
        finally:
            with self._lock:
                self._kept[source] -= 1
                self._push_out()

    def _push_out(self) -> None:
        """Close the slides that were not used for longest; the newest is never one of them."""
        most = 0 if self._is_over else MOST_OPEN
        for source in list(self._open)[: None if self._is_over else -1]:
            if len(self._open) <= most:
                return
            if not self._kept[source]:
                self._open.pop(source).close()

    def facts(self, source: SlideSource) -> SlideFacts:
        """Return what a record says about a slide; read once, however many questions are asked about it.

        Raises:
            SlideError: If it cannot be opened, or has no physical scale.
        """
        if source not in self._facts:
            self._facts[source] = SlideFacts.of(self.get(source))
        return self._facts[source]

    def __enter__(self) -> "OpenSlides":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._lock:
            self._is_over = True  # what a thread that was left behind still reads is closed when it lets go
            self._push_out()
