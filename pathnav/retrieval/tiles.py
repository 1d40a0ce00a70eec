"""Embeddings of tiles: read by several threads, fitted to what the model takes, and kept."""

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol

import numpy as np

from pathnav.geometry import Box
from pathnav.retrieval.embedding import Embedded, Images, Rgb, embedded
from pathnav.retrieval.model import ImageTextModel
from pathnav.retrieval.store import EmbeddingStore, Numbers

READERS = max(1, min(8, (os.cpu_count() or 1) - 1))


class ReadableTile(Protocol):
    """A tile that a scorer is given: a `pathnav.explore.TileImage`."""

    @property
    def name(self) -> str:
        """Slide, magnification and box, with slashes between."""

    @property
    def number(self) -> int:
        """Its place in its grid."""

    @property
    def box(self) -> Box:
        """Level-0 pixels."""

    @property
    def magnification(self) -> float:
        """Of its grid."""

    @property
    def tile_px(self) -> int:
        """Side of its image."""

    @property
    def read(self) -> Callable[[], Rgb]:
        """Returns its image."""


def embedded_tiles(tiles: Sequence[ReadableTile], model: ImageTextModel, store: EmbeddingStore) -> Embedded:
    """Return the embeddings of tiles of one slide and magnification.

    Args:
        tiles: At least one.
        model: Is shown those that the store does not hold.
        store: Where embeddings are kept.
    """
    first = tiles[0]
    grid: dict[str, Any] = {"tile_px": first.tile_px, "magnification": first.magnification, "side_px": model.side_px}
    shelf = store.shelf(first.name.partition("/")[0], grid, model)
    numbers: Numbers = np.array([tile.number for tile in tiles], np.int64)
    boxes = np.array([tile.box.as_list() for tile in tiles], np.float64)

    def images(missing: Numbers) -> Iterator[Images]:
        with ThreadPoolExecutor(READERS, "pathnav-tiles") as pool:
            for start in range(0, missing.size, READERS):
                places = missing[start : start + READERS]
                fitted = pool.map(lambda place: model.fitted(tiles[place].read()), places.tolist())
                yield places, np.stack(list(fitted))

    return embedded(numbers, boxes, images, model=model, shelf=shelf)
