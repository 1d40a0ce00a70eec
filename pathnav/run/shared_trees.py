"""Tile trees for all threads of a run."""

import threading
from collections import OrderedDict
from typing import TYPE_CHECKING

from pathnav.run.exploration import Search
from pathnav.run.explorer import Trees
from pathnav.run.open_slides import OpenSlides

if TYPE_CHECKING:
    from pathnav.explore import TileTree

MOST_TREES = 8
"""Searches of one slide come one after the other; a tree of 163,000 tiles takes 3 MB."""


class SharedTrees(Trees):
    """Makes the tree of each slide once, while other threads use those of other slides."""

    def __init__(self, slides: OpenSlides) -> None:
        super().__init__(slides)
        self._lock = threading.Lock()
        self._made: OrderedDict[object, tuple[threading.Lock, Trees]] = OrderedDict()

    def get(self, search: Search) -> "TileTree":
        """Return the tile tree of a search's slide, open.

        Raises:
            SlideError: If the slide cannot be opened, or is no longer the one that was planned with.
        """
        name = (search.source, search.tiles.tile_px, search.tiles.min_tissue)
        with self._lock:
            making, trees = self._made.setdefault(name, (threading.Lock(), Trees(self._slides)))
            self._made.move_to_end(name)
            while len(self._made) > MOST_TREES:
                self._made.popitem(last=False)
        with making:
            return trees.get(search)
