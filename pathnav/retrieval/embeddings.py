"""Embeddings of windows and tiles: kept between runs, and read ahead for while the model works.

::

    FOLDER/NAME.rows   row i: the box of window i and its embedding; a row that was never written is zeros

NAME is a hash of slide, grid and model. A row counts only where its box is the one that is asked for and its embedding
has unit length: what a crash or a full disk left half written is found out and written again. Several processes may
write the same rows: the values are equal.
"""

import hashlib
import shutil
import tempfile
import weakref
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from pathnav.errors import RecordError
from pathnav.geometry import Box, Floats
from pathnav.retrieval.model import ImageTextModel, Rgb, Vectors
from pathnav.retrieval.windows import Numbers, WindowGrid
from pathnav.settings import canonical_text

if TYPE_CHECKING:
    from pathnav.slide import Reading

FORMAT = "pathnav-embeddings-2"
UNIT_TOLERANCE = 1e-3
"""A length of 1 in float32 is off by 1e-6 at most; a row that is half zeros by far more."""

WHITE = 255
AHEAD = 4
"""Batches that may wait for the model: 16 images of 448 px are 10 MB."""

T = TypeVar("T")
Images = tuple[Numbers, Rgb]
"""Places among the boxes that are asked for, and their images: uint8, shape (n, side_px, side_px, 3)."""


class EmbeddingStore:
    """Embeddings of any number of slides, grids and models, and what they cost.

    Args:
        folder: Where they lie, made with the first of them; None for a temporary folder that goes with the object.
        pixels: All that can change the pixels of a slide beside its file, such as its reader and its scale, as JSON.
    """

    def __init__(self, folder: Path | None = None, pixels: Mapping[str, Any] | None = None) -> None:
        self._pixels = dict(pixels or {})
        self.folder = folder if folder is not None else Path(tempfile.mkdtemp(prefix="pathnav-embeddings-"))
        if folder is None:
            weakref.finalize(self, shutil.rmtree, self.folder, ignore_errors=True)
        self._encoded: int | None = None
        self._found = 0

    @property
    def costs(self) -> dict[str, int] | None:
        """Images that models were shown, embeddings kept from before, bytes on disk; None if none were asked for."""
        if self._encoded is None:
            return None
        on_disk = sum(path.stat().st_blocks * 512 for path in self.folder.glob("*.rows"))
        return {"encoded": self._encoded, "kept_from_before": self._found, "store_bytes": on_disk}

    def embedded(
        self,
        numbers: Numbers,
        boxes: Floats,
        images: Callable[[Numbers], Iterator[Images]],
        *,
        model: ImageTextModel,
        slide: str,
        grid: Mapping[str, Any],
    ) -> Vectors:
        """Return the embeddings of windows, keeping those that are new as they come.

        Args:
            numbers: The windows' numbers in their grid, int64, shape (n,).
            boxes: Their boxes, float64, shape (n, 4), rows [x, y, w, h] in level-0 px.
            images: Given the places of the windows that are missing, yields their images, a few at a time; it runs in
                a thread of its own.
            model: Encodes them.
            slide: Fingerprint of the slide, or an opaque name that stands for it alone.
            grid: All that says which pixels a window's number means, as JSON.

        Returns:
            float32, shape (n, dimensions), rows of unit length.

        Raises:
            RecordError: If what is kept cannot be read or written.
        """
        about = {"format": FORMAT, "slide": slide, "grid": {**grid, **self._pixels}, "model": dict(model.identity)}
        name = hashlib.sha256(canonical_text(about).encode()).hexdigest()
        rows = Rows(self.folder / f"{name}.rows", model.dimensions)
        vectors, known = rows.find(numbers, boxes)
        missing = np.flatnonzero(~known)
        with closing(_ahead(_batches(images(missing), model.batch))) as batches:
            for places, rgb in batches if missing.size else ():
                vectors[places] = model.encode_images(rgb)
                rows.put(numbers[places], boxes[places], vectors[places])
        self._encoded = (self._encoded or 0) + int(missing.size)
        self._found += int(known.sum())
        return vectors


@dataclass(frozen=True, slots=True)
class Rows:
    """The embeddings of one slide, grid and model in a file, by the windows' numbers."""

    path: Path
    dimensions: int

    @property
    def _row(self) -> np.dtype[Any]:
        return np.dtype([("box", "<f8", (4,)), ("vector", "<f4", (self.dimensions,))])

    def find(self, numbers: Numbers, boxes: Floats) -> tuple[Vectors, NDArray[np.bool_]]:
        """Return the embeddings of some windows, zeros where there is none, and which are known."""
        vectors, known = np.zeros((numbers.size, self.dimensions), np.float32), np.zeros(numbers.size, np.bool_)
        try:
            count = self.path.stat().st_size // self._row.itemsize  # a half row at the end is left out
            rows = np.memmap(self.path, self._row, mode="r", shape=(count,)) if count else np.empty(0, self._row)
        except FileNotFoundError:
            return vectors, known
        except OSError as error:
            raise RecordError(f"the embeddings in {self.path} cannot be read: {error.strerror or error}") from error
        at_hand = np.flatnonzero(numbers < count)
        held = rows[numbers[at_hand]]
        is_unit = np.abs(np.linalg.norm(held["vector"], axis=1) - 1) < UNIT_TOLERANCE
        known[at_hand] = is_unit & (held["box"] == boxes[at_hand]).all(axis=1)
        vectors[at_hand] = np.where(known[at_hand, None], held["vector"], 0)
        return vectors, known

    def put(self, numbers: Numbers, boxes: Floats, vectors: Vectors) -> None:
        """Keep the embeddings of some windows.

        Written at their places and not through a map: two processes that let a file grow would cut each other's rows.
        """
        held = np.empty(numbers.size, self._row)
        held["box"], held["vector"] = boxes, vectors
        try:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self.path.touch(mode=0o600)
            with self.path.open("r+b") as file:
                for number, row in zip(numbers.tolist(), held, strict=True):
                    file.seek(number * self._row.itemsize)
                    file.write(row.tobytes())
        except OSError as error:
            raise RecordError(f"the embeddings in {self.path} cannot be written: {error.strerror or error}") from error


def window_images(
    grid: WindowGrid, numbers: Numbers, read: Callable[[Box], "Reading"], side_px: int
) -> Callable[[Numbers], Iterator[Images]]:
    """Return what reads the images of windows, a block at a time.

    A block is always read whole, whichever of its windows are missing: so a window's pixels do not depend on that. The
    image of a window begins within half an image pixel of its box.

    Args:
        grid: The windows.
        numbers: Those that are asked for.
        read: Reads a box at the magnification at which a window's long side has `side_px`.
        side_px: Side of the images.
    """

    def images(missing: Numbers) -> Iterator[Images]:
        for block in grid.blocks():
            places = missing[np.isin(numbers[missing], grid.numbers(block))]
            if places.size:
                yield places, _cut(read(grid.extent(block)), grid.boxes(numbers[places]), side_px)

    return images


def _cut(shown: "Reading", boxes: Floats, side_px: int) -> Rgb:
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
    singles = (single for places, rgb in images for single in zip(places, rgb, strict=True))
    while some := list(islice(singles, batch)):
        yield np.array([place for place, _ in some]), np.stack([image for _, image in some])


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
