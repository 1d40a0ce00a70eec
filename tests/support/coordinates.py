"""Slides whose pixels encode their own coordinates, so that a test can tell what an image really shows.

Red rises and falls with x, green with y, one grey value a level-0 pixel, between 16 and 240: far from its turning
points a colour is a coordinate. Blue is constant and tells slide (64) from the white beyond it (255). Level pixels hold
exact means over the level-0 area that they stand for, so that any level layout, also one of 4.003, is truthful.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import tifffile
from numpy.typing import NDArray

from pathnav.geometry import Box

LOW, HIGH = 16, 240
SPAN = HIGH - LOW
NOISE = (
    8,
    1,
    1,
    1,
    1,
    1,
)  # grey values by level, uniform: without it every line is rounded alike, and twice: up to 1 px
BLUE = 64
FILTER_REACH = 4  # image pixels that a rescaled pixel may draw on

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Layout:
    """How a coordinate pyramid is built.

    Args:
        dimensions: Width and height of every level, finest first.
        packing: "jpeg" (tiles decoded directly), "deflate" (OpenSlide), "sub-images" or "striped" (TiffSlide).
        tile_px: Side of the square tiles.
        has_grain: Whether pixels are noisy, as a judge of coordinates needs them; without noise a file is small.
    """

    dimensions: tuple[tuple[int, int], ...]
    packing: str = "jpeg"
    tile_px: int = 128
    has_grain: bool = True


def layout(width: int, height: int, downsamples: Sequence[float], packing: str = "jpeg", tile_px: int = 128) -> Layout:
    """Return the layout of a pyramid whose levels are level 0 divided and cut off, as scanners do."""
    levels = tuple((max(1, int(width / factor)), max(1, int(height / factor))) for factor in (1.0, *downsamples))
    return Layout(levels, packing, tile_px)


def wave(start: Floats, end: Floats) -> Floats:
    """Return the exact mean of the triangle wave over [start, end), in grey values."""
    return LOW + (_integral(end) - _integral(start)) / (end - start)


def _integral(position: Floats) -> Floats:
    """Return the integral from 0 of the wave that rises from 0 to SPAN and falls back, once every 2 * SPAN."""
    turns, rest = np.divmod(position, 2 * SPAN)
    rising = np.minimum(rest, SPAN)
    falling = np.maximum(rest - SPAN, 0)
    return turns * SPAN**2 + rising**2 / 2 + SPAN * falling - falling**2 / 2


def level_pixels(layout: Layout, level: int) -> NDArray[np.uint8]:
    """Return a level's pixels: uint8, shape (height, width, 3)."""
    (full_width, full_height), (width, height) = layout.dimensions[0], layout.dimensions[level]
    columns, rows = (np.arange(n + 1) * (full / n) for n, full in ((width, full_width), (height, full_height)))
    rgb = np.full((height, width, 3), BLUE, np.uint8)
    grain = NOISE[level] if layout.has_grain else 0
    noise = np.random.default_rng(level).uniform(-grain, grain, (2, height, width))
    rgb[..., 0] = np.rint(wave(columns[:-1], columns[1:])[None, :] + noise[0])
    rgb[..., 1] = np.rint(wave(rows[:-1], rows[1:])[:, None] + noise[1])
    return rgb


def write_pyramid(path: Path, layout: Layout, mpp_um: float = 0.25) -> Path:
    """Write the pyramid as a TIFF file and return its path."""
    options: dict[str, object] = {
        "photometric": "rgb",
        "resolution": (1e4 / mpp_um,) * 2,
        "resolutionunit": "CENTIMETER",
    }
    if layout.packing == "jpeg":
        options |= {
            "compression": "jpeg",
            "compressionargs": {"level": 100},
            "subsampling": (1, 1),
        }
    else:
        options |= {"compression": "deflate"}
    if layout.packing == "striped":
        options |= {"rowsperstrip": 64}
    else:
        options |= {"tile": (layout.tile_px, layout.tile_px)}
    below = len(layout.dimensions) - 1
    has_sub_images = layout.packing == "sub-images"
    with tifffile.TiffWriter(path) as file:
        for level in range(below + 1):
            extra = {"subfiletype": 1} if level else {"subifds": below} if has_sub_images else {}
            file.write(level_pixels(layout, level), metadata=None, **options, **extra)
    return path


@dataclass(frozen=True, slots=True)
class Offsets:
    """By how much an image misses the box that it claims to show, in level-0 pixels.

    Args:
        x: Mean error along x, None where no pixel is far enough from a turning point.
        y: Mean error along y.
        judged_x: Image pixels that the mean along x is taken over.
        judged_y: Image pixels that the mean along y is taken over.
    """

    x: float | None
    y: float | None
    judged_x: int
    judged_y: int


def offsets(rgb: NDArray[np.uint8], box: Box, width: int, height: int) -> Offsets:
    """Decode an image's colours and compare them with the box it claims.

    Args:
        rgb: uint8, shape (height_px, width_px, 3).
        box: The box claimed, level-0 pixels.
        width: Width of the slide, level-0 pixels: columns near its edges are not judged.
        height: Height of the slide.
    """
    inside = rgb[..., 2] < 160
    across = _axis_errors(_means(rgb[..., 0], inside, 0), box.x, box.right, width)
    down = _axis_errors(_means(rgb[..., 1], inside, 1), box.y, box.bottom, height)
    return Offsets(
        float(across.mean()) if across.size else None,
        float(down.mean()) if down.size else None,
        across.size * int(inside.any(1).sum()),
        down.size * int(inside.any(0).sum()),
    )


def _means(channel: NDArray[np.uint8], inside: NDArray[np.bool_], axis: int) -> Floats:
    count = inside.sum(axis)
    total = np.where(inside, channel, 0).sum(axis, dtype=np.float64)
    return np.divide(total, count, out=np.full(count.shape, np.nan), where=count > 0)


def _axis_errors(means: Floats, start: float, end: float, side: int) -> Floats:
    """Return (position shown - position claimed) of the columns where a colour is a coordinate."""
    step = (end - start) / means.size
    edges = start + np.arange(means.size + 1) * step
    centres = (edges[:-1] + edges[1:]) / 2
    reach = FILTER_REACH * max(step, 1.0) + 2
    phase = np.mod(centres, SPAN)
    is_clear = (phase > reach) & (phase < SPAN - reach) & (centres > reach) & (centres < side - reach)
    rises = np.mod(centres, 2 * SPAN) < SPAN
    shown = np.where(rises, means - LOW, SPAN - (means - LOW)) + np.floor(centres / SPAN) * SPAN
    return (shown - centres)[is_clear & np.isfinite(means)]
