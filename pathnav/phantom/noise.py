"""Random curves, maps and textures for phantom slides; arrays are rows x columns of level-0 or coarser pixels."""

import zlib
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageFilter

BLOCK_PX = 1024  # level-0 side of the windows in which a slide is drawn
FIBRE_PERIOD_PX = 2048  # half a millimetre: no structure at 2.5x is fine enough to show the repetition
_FIBRE_DOUBLINGS = 5  # smears over 2**5 texture pixels to each side: fibres of about 30 um

Plane = NDArray[np.uint8]
Reals = NDArray[np.float32]
Streams = Callable[[str], np.random.Generator]


def streams(seed: int, side: int) -> Streams:
    """Return a source of random numbers by purpose: one part of a phantom never disturbs another."""
    return lambda purpose: np.random.Generator(np.random.PCG64([seed, side, zlib.crc32(purpose.encode())]))


def wave(rng: np.random.Generator, harmonics: int, falloff: float) -> Callable[[NDArray[np.floating]], Reals]:
    """Return a random function of an angle in radians, of zero mean and unit variance.

    Args:
        rng: Where the randomness comes from.
        harmonics: The last one; they begin at 2, so that no curve only moves.
        falloff: How fast ever smaller lobes grow flat; 1 is jagged, 2 smooth.
    """
    turns, order = np.linspace(-np.pi, np.pi, 361), np.arange(2, harmonics + 1)
    cosines, sines = rng.standard_normal((2, order.size)) / order**falloff
    swing = cosines @ np.cos(np.outer(order, turns)) + sines @ np.sin(np.outer(order, turns))
    swing /= swing.std()
    return lambda angle: np.interp(angle, turns, swing, period=2 * np.pi).astype(np.float32)


def smooth_noise(rng: np.random.Generator, side: int, wavelength: float) -> Reals:
    """Return smooth noise of about zero mean and unit variance, whose opposite edges fit, shape (side, side).

    Args:
        rng: Where the randomness comes from.
        side: Rows and columns of the result.
        wavelength: Typical distance between two hills, in pixels of the result.
    """
    nodes = max(4, round(2 * side / wavelength))
    grid = np.pad(rng.standard_normal((nodes, nodes), dtype=np.float32), 3, mode="wrap")
    box = (3, 3, 3 + nodes, 3 + nodes)
    noise: Reals = np.asarray(Image.fromarray(grid).resize((side, side), Image.Resampling.BICUBIC, box=box))
    return noise / max(float(noise.std()), 1e-6)


def to_plane(values: NDArray[np.floating]) -> Plane:
    """Return values rounded and clipped to 0..255."""
    plane: Plane = np.clip(np.rint(values), 0, 255).astype(np.uint8)
    return plane


def blurred(plane: Plane, radius: float) -> Plane:
    """Return a map with its borders softened over about `radius` pixels."""
    return np.asarray(Image.fromarray(plane).filter(ImageFilter.GaussianBlur(radius)))


def enlarged(coarse: Plane, cell: int, x: float, y: float, *, smooth: bool = True) -> Plane:
    """Return a block of a coarse map at level-0 resolution, seamless between neighbours, shape (BLOCK_PX, BLOCK_PX).

    Args:
        coarse: uint8 map whose pixels cover `cell` x `cell` level-0 pixels each.
        cell: Level-0 pixels along a side of one map pixel.
        x: Left edge of the block in level-0 pixels from the map's.
        y: Its upper edge.
        smooth: Whether to interpolate; a map without steps is had in a quarter of the time without.
    """
    box = (x / cell, y / cell, (x + BLOCK_PX) / cell, (y + BLOCK_PX) / cell)
    how = Image.Resampling.BILINEAR if smooth else Image.Resampling.NEAREST
    return np.asarray(Image.fromarray(coarse).resize((BLOCK_PX, BLOCK_PX), how, box=box))


def texture(tile: Plane) -> Plane:
    """Return a plane whose opposite edges fit with its beginning repeated behind it, for `cut` to cut blocks from."""
    return np.pad(tile, (0, BLOCK_PX), mode="wrap")


def cut(texture: Plane, x: int, y: int) -> Plane:
    """Return the block of a texture at a level-0 place, shape (BLOCK_PX, BLOCK_PX)."""
    period = len(texture) - BLOCK_PX
    left, top = x % period, y % period
    return texture[top : top + BLOCK_PX, left : left + BLOCK_PX]


def draw_fibres(rng: np.random.Generator) -> tuple[Plane, Reals]:
    """Return wavy collagen as a texture about 128, and the direction of its fibres per 2 x 2 pixels of one period.

    Directions are in radians clockwise from the x axis, since y points down.
    """
    half = FIBRE_PERIOD_PX // 2
    meander = 0.75 * smooth_noise(rng, half, 512) + 0.22 * smooth_noise(rng, half, 128)
    angle = np.asarray(rng.uniform(0, np.pi) + meander, dtype=np.float32)
    thin = _smeared(rng.standard_normal((half, half), dtype=np.float32), angle)
    bundles = _smeared(smooth_noise(rng, half, 16), angle)
    strands = to_plane(128 + 34 * (0.85 * thin / float(thin.std()) + 0.55 * bundles / float(bundles.std())))
    margin, side = 8, FIBRE_PERIOD_PX + BLOCK_PX
    padded = Image.fromarray(np.pad(strands, (margin, margin + BLOCK_PX // 2), mode="wrap"))
    box = (margin, margin, margin + side / 2, margin + side / 2)
    return np.asarray(padded.resize((side, side), Image.Resampling.BICUBIC, box=box)), angle


def _smeared(noise: Reals, angle: Reals) -> Reals:
    """Return noise averaged along a direction field (line integral convolution by doubling)."""
    side = len(noise)
    rows, columns = np.indices(noise.shape, dtype=np.int32)
    for power in range(_FIBRE_DOUBLINGS):
        down, across = (np.rint(part * 2**power).astype(np.int32) for part in (np.sin(angle), np.cos(angle)))
        ahead, behind = (((rows + way * down) % side) * side + (columns + way * across) % side for way in (1, -1))
        noise = 0.5 * noise + 0.25 * (np.take(noise, ahead) + np.take(noise, behind))
    return noise
