"""The slides of a run that are open at the moment."""

from collections import OrderedDict
from types import TracebackType
from typing import TYPE_CHECKING

from pathnav.run.case import SlideFacts, SlideSource

if TYPE_CHECKING:
    from pathnav.slide import Slide

MOST_OPEN = 8
"""Episodes of one slide come one after the other; a few more than one cost nothing (40 open slides: 104 MB)."""


class OpenSlides:
    """Open each slide once and keep the last few open; closes them at the end of a `with` block.

    For one thread: a slide that is pushed out is closed.
    """

    def __init__(self) -> None:
        self._open: OrderedDict[SlideSource, Slide] = OrderedDict()
        self._facts: dict[SlideSource, SlideFacts] = {}

    def get(self, source: SlideSource) -> "Slide":
        """Return the slide of a source, open; it belongs to this object.

        Raises:
            SlideError: If it cannot be opened.
        """
        if source not in self._open:
            self._open[source] = source.open()
            while len(self._open) > MOST_OPEN:
                self._open.popitem(last=False)[1].close()
        self._open.move_to_end(source)
        return self._open[source]

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
        while self._open:
            self._open.popitem()[1].close()
