"""Noise, textures and smooth maps for phantom slides; all arrays are rows x columns of level-0 or coarser pixels."""

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageFilter

Plane = NDArray[np.uint8]
Reals = NDArray[np.float32]
Window = tuple[int, int, int, int]  # x, y, width, height in level-0 pixels


def smooth_noise(rng: np.random.Generator, side: int, wavelength: float) -> Reals:
    """Return smooth noise without repetition.

    Args:
        rng: Where the randomness comes from.
        side: Rows and columns of the result.
        wavelength: Typical distance between two hills, in pixels of the result.

    Returns: float32 of about zero mean and unit variance, shape (side, side).
    """
    nodes = max(4, round(2 * side / wavelength))
    grid = rng.standard_normal((nodes, nodes), dtype=np.float32)
    big: Reals = np.asarray(Image.fromarray(grid).resize((side, side), Image.Resampling.BICUBIC), dtype=np.float32)
    return big / max(float(big.std()), 1e-6)


def blurred(plane: Plane, radius: float) -> Plane:
    """Return a map with its borders softened over about `radius` pixels."""
    return np.asarray(Image.fromarray(plane).filter(ImageFilter.GaussianBlur(radius)))


def to_plane(values: NDArray[np.floating]) -> Plane:
    """Return values rounded and clipped to 0..255."""
    plane: Plane = np.clip(np.rint(values), 0, 255).astype(np.uint8)
    return plane


def enlarge(coarse: Plane, cell: int, window: Window, *, smooth: bool = True) -> Plane:
    """Return a window of a coarse map at level-0 resolution, seamless between neighbouring windows.

    Args:
        coarse: uint8 map whose pixels cover `cell` x `cell` level-0 pixels each.
        cell: Level-0 pixels along a side of one map pixel.
        window: (x, y, width, height) in level-0 pixels.
        smooth: Whether to interpolate; a map without steps is had in a quarter of the time without.

    Returns: uint8, shape (height, width).
    """
    x, y, width, height = window
    box = (x / cell, y / cell, (x + width) / cell, (y + height) / cell)
    how = Image.Resampling.BILINEAR if smooth else Image.Resampling.NEAREST
    return np.asarray(Image.fromarray(coarse).resize((width, height), how, box=box))


class Texture:
    """A plane that repeats without a seam, from which windows at any place are cut.

    Args:
        tile: uint8, shape (period, period); its opposite edges must fit together.
        reach: The largest window side that will be asked for.
    """

    def __init__(self, tile: Plane, reach: int) -> None:
        self.period = tile.shape[0]
        self._padded = np.pad(tile, ((0, reach), (0, reach)), mode="wrap")

    def window(self, window: Window) -> Plane:
        """Return the texture over a level-0 window (x, y, width, height), shape (height, width)."""
        x, y, width, height = window
        left, top = x % self.period, y % self.period
        part: Plane = self._padded[top : top + height, left : left + width]
        return part


def periodic_noise(rng: np.random.Generator, period: int, wavelength: float) -> Reals:
    """Return smooth noise whose opposite edges fit, of unit variance, shape (period, period)."""
    nodes = max(4, round(2 * period / wavelength))
    grid = np.pad(rng.standard_normal((nodes, nodes), dtype=np.float32), 3, mode="wrap")
    box = (3, 3, 3 + nodes, 3 + nodes)
    enlarged = Image.fromarray(grid).resize((period, period), Image.Resampling.BICUBIC, box=box)
    noise: Reals = np.asarray(enlarged, dtype=np.float32)
    return noise / max(float(noise.std()), 1e-6)
