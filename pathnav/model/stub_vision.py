"""What the stub sees in an image: haematoxylin density by colour deconvolution, on a coarse grid."""

import hashlib
import io
import threading
from collections import OrderedDict
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from pathnav.model.stub_rules import BadRequest, decode_image

Grid = NDArray[np.float32]

GRID = 128  # cells along a side: 8 px of a 1,024 px view
REDUCED_PX = 256
CACHED_IMAGES = 128  # 200 kB each
_GLASS = 215  # green of blank glass and of anything paler; both stains absorb green
_GREEN_LEAD = 24  # axis guides: green leads red and blue by more than any stain mixture lets it
_BLUE_LEAD = 95  # pen; haematoxylin stays below
_BLACK = 45
# Stain vectors of haematoxylin, eosin and a residual in optical density (Ruifrok and Johnston 2001).
_STAINS = np.array([[0.65, 0.70, 0.29], [0.07, 0.99, 0.11], [0.27, 0.57, 0.78]])
# What each value of red, green and blue adds to the haematoxylin density; a look-up is four times faster than a log.
_HAEMATOXYLIN = np.outer(np.linalg.inv(_STAINS)[:, 0], -np.log10((np.arange(256) + 1) / 256)).astype(np.float32)


@dataclass(frozen=True, slots=True)
class Sight:
    """One image on a grid of equal cells; all arrays float32, shape (rows, cols).

    Args:
        seen: Share of a cell that is slide (neither guide nor pen), 0 to 1.
        haematoxylin: Mean haematoxylin density over what is seen, times `seen`.
        tissue: Share of a cell that is seen and not glass.
        width_px: Width of the image sent.
        height_px: Height of the image sent.
    """

    seen: Grid
    haematoxylin: Grid
    tissue: Grid
    width_px: int
    height_px: int

    @property
    def density(self) -> float:
        """The mean haematoxylin density of the whole image."""
        return float(self.haematoxylin.sum() / max(float(self.seen.sum()), 1e-6))


class Eyes:
    """Analyses images, remembering the latest; safe to share between threads."""

    def __init__(self, limit: int = CACHED_IMAGES) -> None:
        self._limit = limit
        self._known: OrderedDict[bytes, Sight] = OrderedDict()
        self._lock = threading.Lock()

    def look(self, url: str) -> Sight:
        """Return what is in an inlined image.

        Args:
            url: Its `data:` URL; a known one is recognised without decoding it.

        Raises:
            BadRequest: If it is no such URL, or cannot be decoded.
        """
        name = hashlib.sha256(url.encode("utf-8", "replace")).digest()
        with self._lock:
            known = self._known.get(name)
            if known is not None:
                self._known.move_to_end(name)
                return known
        sight = see(decode_image(url))
        with self._lock:
            self._known[name] = sight
            while len(self._known) > self._limit:
                self._known.popitem(last=False)
        return sight


def see(encoded: bytes) -> Sight:
    """Return the analysis of an encoded image (JPEG, PNG or whatever Pillow reads)."""
    try:
        with Image.open(io.BytesIO(encoded)) as image:
            width_px, height_px = image.size
            factor = max(1, max(image.size) // REDUCED_PX)
            image.draft("RGB", (width_px // factor, height_px // factor))  # decodes a JPEG at a fraction of the cost
            rgb = np.asarray(image.convert("RGB"))
    except (OSError, ValueError, Image.DecompressionBombError) as error:
        raise BadRequest(f"an image cannot be decoded: {error}") from error
    return analyse(rgb, width_px, height_px)


def analyse(rgb: NDArray[np.uint8], width_px: int, height_px: int) -> Sight:
    """Return the analysis of pixels.

    Args:
        rgb: uint8, shape (rows, cols, 3), possibly reduced.
        width_px: Width of the image as sent.
        height_px: Height of the image as sent.
    """
    red, green, blue = (rgb[:, :, channel].astype(np.int16) for channel in range(3))
    guide = green - np.maximum(red, blue) > _GREEN_LEAD
    pen = (blue - red > _BLUE_LEAD) | (np.maximum(np.maximum(red, green), blue) < _BLACK)
    seen = (~(guide | pen)).astype(np.float32)
    density = np.maximum(sum(_HAEMATOXYLIN[channel].take(rgb[:, :, channel]) for channel in range(3)), 0)
    tissue = seen * (green < _GLASS)
    return Sight(
        seen=_cell_means(seen),
        haematoxylin=_cell_means(density * tissue),
        tissue=_cell_means(tissue),
        width_px=width_px,
        height_px=height_px,
    )


def _cell_means(plane: NDArray[np.float32]) -> Grid:
    """Return the means over a grid of at most `GRID` cells a side."""
    rows, cols = (min(GRID, side) for side in plane.shape)
    row_edges = np.arange(rows + 1) * plane.shape[0] // rows
    col_edges = np.arange(cols + 1) * plane.shape[1] // cols
    sums = np.add.reduceat(np.add.reduceat(plane, row_edges[:-1], axis=0), col_edges[:-1], axis=1)
    means: Grid = (sums / np.outer(np.diff(row_edges), np.diff(col_edges))).astype(np.float32)
    return means
