"""From level pixels to an image of exactly the box that was asked for: level choice, rescaling, the slide's edge.

A level's pixel i covers level-0 pixels [i * W0 / Wl, (i + 1) * W0 / Wl), on each axis its own ratio: OpenSlide's one
averaged downsample is 0.64 px off, a rounded 4 instead of 4.003 is 2.8 px off.
"""

import math
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from pathnav.geometry import Box
from pathnav.slide.pixels import SUPPORT, WHITE, Pair, Rgb, Window, resized
from pathnav.slide.reader import LevelDimensions, Patch, Reader

LEVEL_TOLERANCE = 0.02  # a level of downsample 4.003 serves a target of 4: 57 ms instead of 310 ms from level 0
BLOCK_PX = 768  # output pixels a side that are computed at a time: at most 28 MB of level pixels
CHUNK_PX = 2048  # level pixels a side that are decoded at a time where they are averaged down first: 60 MB a thread
REDUCE_FROM = 4.0  # level pixels per output pixel from which on they are averaged by whole factors before rescaling
THREADS = min(2, os.cpu_count() or 1)


@dataclass(frozen=True, slots=True)
class Raster:
    """An image of a box: which part of the plane each of its pixels shows.

    Args:
        box: What the image shows, whole level-0 pixels.
        width_px: Columns of the image.
        height_px: Rows.
    """

    box: Box
    width_px: int
    height_px: int

    @property
    def step(self) -> Pair:
        """Level-0 pixels per image pixel (x, y)."""
        return self.box.width / self.width_px, self.box.height / self.height_px


@dataclass(frozen=True, slots=True)
class Sample:
    """An image and the share of its box that could not be decoded (white there).

    Args:
        rgb: uint8, shape (height_px, width_px, 3).
        failed_share: In [0, 1].
    """

    rgb: Rgb
    failed_share: float


def level_downsamples(dimensions: LevelDimensions) -> tuple[Pair, ...]:
    """Return level-0 pixels per level pixel (x, y) of every level."""
    width, height = dimensions[0]
    return tuple((width / w, height / h) for w, h in dimensions)


def choose_level(downsamples: tuple[Pair, ...], step: Pair) -> int:
    """Return the coarsest level that is no coarser than wanted, within `LEVEL_TOLERANCE` on both axes.

    Args:
        downsamples: Level-0 pixels per level pixel of every level, finest first.
        step: Level-0 pixels per image pixel that are wanted.
    """
    best = 0
    for level, (across, down) in enumerate(downsamples):
        fits = across <= step[0] * (1 + LEVEL_TOLERANCE) and down <= step[1] * (1 + LEVEL_TOLERANCE)
        if fits and across * down > downsamples[best][0] * downsamples[best][1]:
            best = level
    return best


def sample(reader: Reader, level: int, raster: Raster) -> Sample:
    """Return the image of a raster, computed from one level.

    The image is made in blocks, so that memory holds the image and 28 MB of level pixels, never a whole level. Pixels
    whose centre lies outside the plane are white; the edge's own pixels are filtered as if they went on beyond it.
    """
    axes = _axes(reader, level, raster)
    area = (raster.box.width / axes[0].downsample) * (raster.box.height / axes[1].downsample)
    if all(axis.is_one_block(pixels) for axis, pixels in zip(axes, (raster.width_px, raster.height_px), strict=True)):
        rgb, failed = _Block(*axes).render(reader, level)
        return Sample(rgb if rgb.flags.writeable else rgb.copy(), min(1.0, failed / area))
    canvas = np.full((raster.height_px, raster.width_px, 3), WHITE, np.uint8)
    lost = 0.0
    for rows in axes[1].blocks():
        for columns in axes[0].blocks():
            block = _Block(columns, rows)
            rgb, failed = block.render(reader, level)
            canvas[rows.first : rows.last, columns.first : columns.last] = rgb
            lost += failed
    return Sample(canvas, min(1.0, lost / area))


@dataclass(frozen=True, slots=True)
class _Axis:
    """One axis of a raster, or a stretch of it.

    Args:
        origin: The raster's first edge, in level pixels.
        step: Level pixels per image pixel.
        downsample: Level-0 pixels per level pixel.
        extent: Pixels of the level on this axis.
        first: First image pixel of the stretch.
        last: First image pixel beyond it.
    """

    origin: float
    step: float
    downsample: float
    extent: int
    first: int
    last: int

    @property
    def start(self) -> float:
        """The stretch's first edge, in level pixels."""
        return self.origin + self.first * self.step

    @property
    def end(self) -> float:
        """The stretch's last edge, in level pixels."""
        return self.origin + self.last * self.step

    @property
    def is_whole(self) -> bool:
        """Whether each image pixel is a whole number of whole level pixels: one, or the mean of some."""
        is_multiple = self.step > 0.5 and abs(self.step - round(self.step)) < 1e-9
        return is_multiple and abs(self.start - round(self.start)) < 1e-6 and round(self.start) >= 0

    @property
    def reduction(self) -> int:
        """The whole factor to average by; where rescaling follows, at least two averages remain per image pixel.

        The mean of 2 x 2 level pixels is what level 0 shows there, and takes 0.6 ms for 256 px, Pillow's Lanczos 5.2.
        """
        if self.is_whole:
            return round(self.step)
        return int(self.step // 2) if self.step >= REDUCE_FROM else 1

    def is_one_block(self, pixels: int) -> bool:
        """Return whether the stretch is a whole axis of so many image pixels, and few enough to be computed at once.

        Such an image needs no canvas to be put together on: 196 kB for a tile of 256 px, which the C library maps and
        unmaps for each one while the other threads wait.
        """
        return self.first == 0 and self.last == pixels and 0 < pixels <= BLOCK_PX

    def blocks(self) -> Iterator["_Axis"]:
        """Yield the stretch in pieces of at most `BLOCK_PX` image pixels."""
        for first in range(self.first, self.last, BLOCK_PX):
            last = min(first + BLOCK_PX, self.last)
            yield _Axis(self.origin, self.step, self.downsample, self.extent, first, last)

    def source(self) -> tuple[int, int]:
        """Return the first level pixel needed and the first one beyond, inside the level."""
        if self.is_whole:
            return round(self.start), min(self.extent, round(self.end))
        margin = (SUPPORT + 1) * max(1.0, self.step)
        first = min(max(0, math.floor(self.start - margin)), self.extent - 1)
        return first, max(first + 1, min(self.extent, math.ceil(self.end + margin)))

    def core(self) -> tuple[int, int]:
        """Return the level pixels whose centre lies in the stretch, without margin: first, and first beyond."""
        return max(0, math.ceil(self.start - 0.5)), min(self.extent, math.ceil(self.end - 0.5))


def _axes(reader: Reader, level: int, raster: Raster) -> tuple[_Axis, _Axis]:
    """Return the two axes of a raster, limited to the image pixels whose centre lies in the plane."""
    plane, extents = reader.level_dimensions[0], reader.level_dimensions[level]

    def axis(start: float, step: float, pixels: int, side: int, extent: int) -> _Axis:
        first = min(max(0, math.ceil(-start / step - 0.5)), pixels)
        last = max(first, min(pixels, math.ceil((side - start) / step - 0.5)))
        downsample = side / extent
        return _Axis(start / downsample, step / downsample, downsample, extent, first, last)

    return (
        axis(raster.box.x, raster.step[0], raster.width_px, plane[0], extents[0]),
        axis(raster.box.y, raster.step[1], raster.height_px, plane[1], extents[1]),
    )


@dataclass(frozen=True, slots=True)
class _Block:
    """A rectangle of an image that is computed at once."""

    columns: _Axis
    rows: _Axis

    def render(self, reader: Reader, level: int) -> tuple[Rgb, int]:
        """Return the block's pixels and the number of level pixels in it that could not be decoded."""
        (left, right), (top, bottom) = self.columns.source(), self.rows.source()
        window = Window(left, top, right - left, bottom - top)
        factors = self.columns.reduction, self.rows.reduction
        patch = reader.read(level, window) if factors == (1, 1) else _read_reduced(reader, level, window, factors)
        failed = self._failed(patch)
        if self.columns.is_whole and self.rows.is_whole and patch.shift == (0.0, 0.0):
            return patch.rgb, failed
        across = self._span(self.columns, left + patch.shift[0], factors[0])
        down = self._span(self.rows, top + patch.shift[1], factors[1])
        size = (self.columns.last - self.columns.first, self.rows.last - self.rows.first)
        return resized(patch.rgb, across, down, size), failed

    def _failed(self, patch: Patch) -> int:
        (left, right), (top, bottom) = self.columns.core(), self.rows.core()
        core = Window(left, top, max(0, right - left), max(0, bottom - top))
        return sum(core.intersection(part).area for part in patch.failed)

    @staticmethod
    def _span(axis: _Axis, origin: float, factor: int) -> Pair:
        """Return where the stretch begins and ends, in pixels of the patch."""
        return (axis.start - origin) / factor, (axis.end - origin) / factor


def _read_reduced(reader: Reader, level: int, window: Window, factors: tuple[int, int]) -> Patch:
    """Return a window averaged down by whole factors, decoded in chunks by several threads."""
    from PIL import Image

    canvas = np.full((-(-window.height // factors[1]), -(-window.width // factors[0]), 3), WHITE, np.uint8)

    def fill(chunk: Window) -> tuple[Window, ...]:
        patch = reader.read(level, chunk)
        small = np.asarray(Image.fromarray(patch.rgb).reduce(factors))
        row, column = (chunk.top - window.top) // factors[1], (chunk.left - window.left) // factors[0]
        canvas[row : row + small.shape[0], column : column + small.shape[1]] = small
        return patch.failed

    chunks = list(_chunks(window, factors))
    if len(chunks) == 1:
        return Patch(canvas, failed=fill(chunks[0]))
    with ThreadPoolExecutor(THREADS) as pool:
        failed = [part for parts in pool.map(fill, chunks) for part in parts]
    return Patch(canvas, failed=tuple(failed))


def _chunks(window: Window, factors: tuple[int, int]) -> Iterator[Window]:
    """Yield a window in pieces of about `CHUNK_PX`, whole multiples of the factors."""
    across, down = (max(1, CHUNK_PX // factor) * factor for factor in factors)
    for top in range(window.top, window.bottom, down):
        for left in range(window.left, window.right, across):
            yield Window(left, top, across, down).intersection(window)
