"""Embeddings that are kept: one file per slide, grid and model, whose rows are mapped into memory.

::

    FOLDER/NAME/about.json   slide, grid, model and the rows' form
    FOLDER/NAME/rows.bin     row i: the box of window i and its embedding; a row that was never written is zeros

A row counts only where its box is the one that is asked for and its embedding has unit length: what a crash or a full
disk left half written is found out and written again. Several processes may write the same rows: the values are equal.
"""

import hashlib
import os
import shutil
import tempfile
import weakref
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from pathnav.errors import RecordError
from pathnav.geometry import Floats
from pathnav.settings import canonical_text

FORMAT = "pathnav-embeddings-1"
UNIT_TOLERANCE = 1e-3
"""A length of 1 in float32 is off by 1e-6 at most; a row that is half zeros by far more."""

_ABOUT, _ROWS = "about.json", "rows.bin"
_NAME_DIGITS = 12  # of each hash in a folder's name; `about.json` holds the whole

Numbers = NDArray[np.int64]
Vectors = NDArray[np.float32]


class Encoder(Protocol):
    """What makes the embeddings: `pathnav.retrieval.ImageTextModel`, or one of a test's own."""

    @property
    def identity(self) -> Mapping[str, Any]:
        """All that can change an embedding, as JSON."""

    @property
    def dimensions(self) -> int:
        """Length of an embedding."""

    @property
    def side_px(self) -> int:
        """Side of the images that it takes."""

    @property
    def batch(self) -> int:
        """How many images it takes at a time."""

    def encode_images(self, images: NDArray[np.uint8]) -> Vectors:
        """Return embeddings of unit length: uint8 (n, side_px, side_px, 3) to float32 (n, dimensions)."""


class EmbeddingStore:
    """Embeddings of any number of slides, grids and models; making the object touches nothing.

    Args:
        folder: Where they lie; None for a temporary folder that goes with the object.
        pixels: All that can change the pixels of a slide beside its file, such as its reader and its scale, as JSON.
    """

    def __init__(self, folder: Path | None = None, pixels: Mapping[str, Any] | None = None) -> None:
        self._pixels = dict(pixels or {})
        self.folder = folder if folder is not None else Path(tempfile.mkdtemp(prefix="pathnav-embeddings-"))
        if folder is None:
            weakref.finalize(self, shutil.rmtree, self.folder, ignore_errors=True)

    @property
    def disk_bytes(self) -> int:
        """Bytes on disk of all that is kept."""
        return sum(path.stat().st_blocks * 512 for path in self.folder.glob(f"*/{_ROWS}"))

    def shelf(self, slide: str, grid: Mapping[str, Any], model: Encoder) -> "Shelf":
        """Return the embeddings of a slide's grid by a model.

        Args:
            slide: Fingerprint of the slide, or an opaque name that stands for it alone.
            grid: All that says which pixels a row's number means, as JSON.
            model: Makes the embeddings.

        Raises:
            RecordError: If what lies there is of another format, or cannot be read.
        """
        about: dict[str, Any] = {
            "format": FORMAT,
            "slide": slide,
            "grid": {**grid, **self._pixels},
            "model": dict(model.identity),
            "row": {"box": "4 float64, level-0 px", "embedding": f"{model.dimensions} float32"},
        }
        name = "-".join(_digits({part: about[part]}) for part in ("slide", "grid", "model"))
        return Shelf(self.folder / name, canonical_text(about), model.dimensions)


@dataclass(frozen=True, slots=True, eq=False)
class Found:
    """What a shelf holds of some windows.

    Args:
        vectors: float32, shape (n, dimensions); zeros where there is none.
        known: bool, shape (n,).
    """

    vectors: Vectors
    known: NDArray[np.bool_]


class Shelf:
    """The embeddings of one slide, grid and model, by the windows' numbers.

    Args:
        folder: Where they lie; made with the first row.
        about: The text of `about.json`.
        dimensions: Length of an embedding.
    """

    def __init__(self, folder: Path, about: str, dimensions: int) -> None:
        self.folder, self._about = folder, about
        self._row = np.dtype([("box", "<f8", (4,)), ("vector", "<f4", (dimensions,))])
        self._is_checked = False
        self._check()

    @property
    def disk_bytes(self) -> int:
        """Bytes on disk; rows that were never written take none."""
        with suppress(OSError):
            return (self.folder / _ROWS).stat().st_blocks * 512
        return 0

    def find(self, numbers: Numbers, boxes: Floats) -> Found:
        """Return what is held of some windows.

        Args:
            numbers: Their numbers in the grid, int64, shape (n,).
            boxes: float64, shape (n, 4), rows [x, y, w, h] in level-0 px.
        """
        vectors = np.zeros((numbers.size, self._row["vector"].shape[0]), np.float32)
        known = np.zeros(numbers.size, np.bool_)
        rows = self._mapped()
        at_hand = np.flatnonzero(numbers < len(rows))
        if at_hand.size:
            held = rows[numbers[at_hand]]
            is_unit = np.abs(np.linalg.norm(held["vector"], axis=1) - 1) < UNIT_TOLERANCE
            known[at_hand] = is_unit & (held["box"] == boxes[at_hand]).all(axis=1)
            vectors[known] = held["vector"][known[at_hand]]
        return Found(vectors, known)

    def put(self, numbers: Numbers, boxes: Floats, vectors: Vectors) -> None:
        """Keep the embeddings of some windows.

        Raises:
            RecordError: If they cannot be written.
        """
        held = np.empty(numbers.size, self._row)
        held["box"], held["vector"] = boxes, vectors
        order = np.argsort(numbers, kind="stable")
        held, numbers = held[order], numbers[order]
        starts = np.flatnonzero(np.diff(numbers, prepend=-2) != 1)
        try:
            self._make()
            descriptor = os.open(self.folder / _ROWS, os.O_CREAT | os.O_WRONLY, 0o600)
            try:
                for run in np.split(np.arange(numbers.size), starts[1:]):
                    _write_at(descriptor, held[run].tobytes(), int(numbers[run[0]]) * self._row.itemsize)
            finally:
                os.close(descriptor)
        except OSError as error:
            raise RecordError(
                f"the embeddings in {self.folder} cannot be written: {error.strerror or error}"
            ) from error

    def _mapped(self) -> NDArray[Any]:
        """Return the rows, mapped anew for what other processes have added; a half row at the end is left out."""
        try:
            count = (self.folder / _ROWS).stat().st_size // self._row.itemsize
            if count:
                return np.memmap(self.folder / _ROWS, self._row, mode="r", shape=(count,))
        except FileNotFoundError:
            pass
        except OSError as error:
            raise RecordError(f"the embeddings in {self.folder} cannot be read: {error.strerror or error}") from error
        return np.empty(0, self._row)

    def _check(self) -> None:
        """Refuse a folder that holds something else.

        Raises:
            RecordError: If it does.
        """
        try:
            found = (self.folder / _ABOUT).read_text(encoding="utf-8")
        except FileNotFoundError:
            return
        except (OSError, UnicodeDecodeError) as error:
            raise RecordError(f"{self.folder / _ABOUT} cannot be read: {error}") from error
        if found != self._about:
            raise RecordError(
                f"{self.folder / _ABOUT} does not describe the embeddings that belong there ({FORMAT}); "
                "remove the folder"
            )

    def _make(self) -> None:
        """Make the folder and its description, once."""
        if self._is_checked:
            return
        self.folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.folder.mkdir(mode=0o700, exist_ok=True)
        if not (self.folder / _ABOUT).exists():
            unfinished = self.folder / f"{_ABOUT}.{os.getpid()}"
            unfinished.write_text(self._about, encoding="utf-8")
            unfinished.replace(self.folder / _ABOUT)
        self._is_checked = True


def _digits(part: Mapping[str, Any]) -> str:
    """Return the hash of a part of a shelf's description, short enough for a folder's name."""
    return hashlib.sha256(canonical_text(part).encode()).hexdigest()[:_NAME_DIGITS]


def _write_at(descriptor: int, content: bytes, offset: int) -> None:
    """Write all of some bytes at a place of a file."""
    view = memoryview(content)
    while view:
        written = os.pwrite(descriptor, view, offset)
        view, offset = view[written:], offset + written
