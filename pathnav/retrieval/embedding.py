"""Windows and tiles become embeddings: what is kept is not read again, and reading goes on while the model works."""

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from pathnav.geometry import Box, Floats
from pathnav.retrieval.store import Encoder, Numbers, Shelf, Vectors
from pathnav.retrieval.windows import WindowGrid

T = TypeVar("T")

WHITE = 255
AHEAD = 4
"""Batches that may wait for the model: 16 images of 448 px are 10 MB."""

Rgb = NDArray[np.uint8]


class Shown(Protocol):
    """Pixels, and which whole level-0 pixels they show: a `pathnav.slide.Reading`."""

    @property
    def rgb(self) -> Rgb:
        """uint8, shape (height_px, width_px, 3)."""

    @property
    def box(self) -> Box:
        """Level-0 pixels."""


Read = Callable[[Box], Shown]
"""Returns the pixels of a box at the windows' magnification."""

Images = tuple[Numbers, Rgb]
"""Places among the boxes that are asked for, and their images: uint8, shape (n, side_px, side_px, 3)."""


@dataclass(frozen=True, slots=True, eq=False)
class Embedded:
    """Embeddings, and what they cost.

    Args:
        vectors: float32, shape (n, dimensions), rows of unit length.
        encoded: How many images the model was shown.
        found: How many embeddings were kept from before.
        disk_bytes: What the shelf takes on disk now.
    """

    vectors: Vectors
    encoded: int
    found: int
    disk_bytes: int


def embedded(
    numbers: Numbers, boxes: Floats, images: Callable[[Numbers], Iterator[Images]], *, model: Encoder, shelf: Shelf
) -> Embedded:
    """Return the embeddings of some windows, keeping those that are new as they come.

    Args:
        numbers: The windows' numbers in their grid.
        boxes: Their boxes, float64, shape (n, 4).
        images: Given the places of the windows that are missing, yields their images, a few at a time; it runs in a
            thread of its own.
        model: Encodes them.
        shelf: Holds what is known.
    """
    held = shelf.find(numbers, boxes)
    vectors, missing = held.vectors, np.flatnonzero(~held.known)
    with closing(_ahead(_batches(images(missing), model.batch))) as batches:
        for places, rgb in batches if missing.size else ():
            vectors[places] = model.encode_images(rgb)
            shelf.put(numbers[places], boxes[places], vectors[places])
    return Embedded(vectors, int(missing.size), int(held.known.sum()), shelf.disk_bytes)


def window_images(
    grid: WindowGrid, numbers: Numbers, read: Read, side_px: int
) -> Callable[[Numbers], Iterator[Images]]:
    """Return what reads the images of windows, a block at a time.

    A block is always read whole, whichever of its windows are missing: so a window's pixels do not depend on that. The
    image of a window begins within half an image pixel of its box.

    Args:
        grid: The windows.
        numbers: Those that are asked for.
        read: Reads pixels at the magnification at which a window's long side has `side_px`.
        side_px: Side of the images.
    """

    def images(missing: Numbers) -> Iterator[Images]:
        for block in grid.blocks():
            places = missing[np.isin(numbers[missing], grid.numbers(block))]
            if places.size:
                shown = read(grid.extent(block))
                yield places, _cut(shown, grid.boxes(numbers[places]), side_px)

    return images


def _cut(shown: Shown, boxes: Floats, side_px: int) -> Rgb:
    """Return windows cut from a block's pixels, on white squares."""
    height_px, width_px = shown.rgb.shape[:2]
    step = np.array([shown.box.width / width_px, shown.box.height / height_px])
    sizes = np.clip(np.rint(boxes[:, 2:] / step), 1, side_px).astype(int)
    corners = np.rint((boxes[:, :2] - (shown.box.x, shown.box.y)) / step).astype(int)
    corners = np.clip(corners, 0, np.maximum(0, (width_px, height_px) - sizes))
    images = np.full((len(boxes), side_px, side_px, 3), WHITE, np.uint8)
    for image, (left, top), (width, height) in zip(images, corners.tolist(), sizes.tolist(), strict=True):
        part = shown.rgb[top : top + height, left : left + width]
        image[: part.shape[0], : part.shape[1]] = part
    return images


def _batches(images: Iterable[Images], batch: int) -> Iterator[Images]:
    """Yield images in batches of the same number, but for the last one."""
    places: list[Numbers] = []
    parts: list[Rgb] = []
    waiting = 0
    for some, rgb in images:
        places.append(some)
        parts.append(rgb)
        waiting += some.size
        if waiting >= batch:
            joined, joined_rgb = np.concatenate(places), np.concatenate(parts)
            whole = waiting - waiting % batch
            for start in range(0, whole, batch):
                yield joined[start : start + batch], joined_rgb[start : start + batch]
            places, parts, waiting = [joined[whole:]], [joined_rgb[whole:]], waiting - whole
    if waiting:
        yield np.concatenate(places), np.concatenate(parts)


def _ahead(source: Iterable[T]) -> Generator[T]:
    """Yield what an iterator gives, which a thread runs ahead; what it raises is raised here."""
    iterator = iter(source)
    pool = ThreadPoolExecutor(1, "pathnav-reading")
    try:
        waiting = deque(pool.submit(next, iterator, None) for _ in range(AHEAD))
        while (item := waiting.popleft().result()) is not None:
            waiting.append(pool.submit(next, iterator, None))
            yield item
    finally:
        pool.shutdown(cancel_futures=True)
