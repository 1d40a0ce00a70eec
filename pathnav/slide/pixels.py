"""Pixels and rectangles of them: cut, rescaled, and encoded for a model.

A *level pixel* is a pixel of one pyramid level; a `Window` is a rectangle of whole level pixels inside that level.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec

import numpy as np
from numpy.typing import NDArray

Rgb = NDArray[np.uint8]
Pair = tuple[float, float]

WHITE = 255

SUPPORT = 3
"""Output pixels on each side that a filtered pixel draws on."""

IS_FAST = find_spec("cykooz_resizer") is not None


@dataclass(frozen=True, slots=True)
class Window:
    """A rectangle of whole level pixels.

    Args:
        left: First column, in level pixels.
        top: First row.
        width: Columns.
        height: Rows.
    """

    left: int
    top: int
    width: int
    height: int

    @property
    def right(self) -> int:
        """The first column beyond the window."""
        return self.left + self.width

    @property
    def bottom(self) -> int:
        """The first row beyond the window."""
        return self.top + self.height

    def intersection(self, other: "Window") -> "Window":
        """Return the common part; of zero extent where there is none."""
        left, top = max(self.left, other.left), max(self.top, other.top)
        right, bottom = min(self.right, other.right), min(self.bottom, other.bottom)
        return Window(left, top, max(0, right - left), max(0, bottom - top))

    def tiles(self, side: tuple[int, int]) -> Iterator["Window"]:
        """Yield the parts of the window in the tiles of a level, (width, height), row by row."""
        for top in range(self.top // side[1] * side[1], self.bottom, side[1]):
            for left in range(self.left // side[0] * side[0], self.right, side[0]):
                yield self.intersection(Window(left, top, *side))

    @property
    def area(self) -> int:
        """The number of level pixels inside."""
        return self.width * self.height


def white(window: Window) -> Rgb:
    """Return a white uint8 RGB image of a window's extent."""
    return np.full((window.height, window.width, 3), WHITE, np.uint8)


def cut(rgb: Rgb, shown: Window, part: Window) -> Rgb:
    """Return a part of an image as a view, given the window that the image shows."""
    left, top = part.left - shown.left, part.top - shown.top
    return rgb[top : top + part.height, left : left + part.width]


def resized(rgb: Rgb, across: Pair, down: Pair, size: tuple[int, int]) -> Rgb:
    """Return a fractional rectangle of an image, rescaled with Lanczos; beyond its edge the last pixels are repeated.

    By cykooz-resizer where it has a wheel, else by Pillow: a tile of 256 px from 274 takes 0.5 ms instead of 2.3. Both
    weigh with the same filter in whole numbers; they round otherwise, so that one value in six differs, nearly always
    by 1. cykooz-resizer gives the same bytes with and without vector instructions, which Pillow does not use.

    Args:
        rgb: uint8, shape (height, width, 3).
        across: Left and right edge of the rectangle, in pixels of the image.
        down: Top and bottom edge.
        size: Columns and rows of the result.

    Returns: uint8 RGB, shape (rows, columns, 3).
    """
    height, width = rgb.shape[:2]
    pad = [
        (max(0, math.ceil(-down[0])), max(0, math.ceil(down[1] - height))),
        (max(0, math.ceil(-across[0])), max(0, math.ceil(across[1] - width))),
    ]
    if any(sum(pair) for pair in pad):
        rgb = np.pad(rgb, [*pad, (0, 0)], mode="edge")
    box = (across[0] + pad[1][0], down[0] + pad[0][0], across[1] + pad[1][0], down[1] + pad[0][0])
    return (_by_cykooz if IS_FAST else _by_pillow)(rgb, box, size)


def _by_cykooz(rgb: Rgb, box: tuple[float, float, float, float], size: tuple[int, int]) -> Rgb:
    from cykooz_resizer import CropBox, FilterType, ImageData, PixelType, ResizeAlg, ResizeOptions, Resizer

    height, width = rgb.shape[:2]
    source = ImageData(width, height, PixelType.U8x3, rgb.tobytes())
    result = ImageData(size[0], size[1], PixelType.U8x3)
    crop = CropBox(box[0], box[1], min(box[2], width) - box[0], min(box[3], height) - box[1])
    options = ResizeOptions(ResizeAlg.convolution(FilterType.lanczos3), use_alpha=False, crop_box=crop)
    Resizer().resize(source, result, options)
    return np.frombuffer(result.get_buffer(), np.uint8).reshape(size[1], size[0], 3)


def _by_pillow(rgb: Rgb, box: tuple[float, float, float, float], size: tuple[int, int]) -> Rgb:
    from PIL import Image

    return np.asarray(Image.fromarray(rgb).resize(size, Image.Resampling.LANCZOS, box=box))


def encode_jpeg(pixels: Rgb, quality: int) -> bytes:
    """Return pixels as JPEG with full colour resolution and without ICC profile or EXIF.

    At half the colour resolution thin labels blur. imagecodecs takes 0.75 times Pillow's time for a tile of 256 px and
    lets other threads run meanwhile, which Pillow's encoder does not.

    Args:
        pixels: uint8 RGB, shape (height_px, width_px, 3).
        quality: 1 to 95, on libjpeg's scale.
    """
    import imagecodecs

    return bytes(
        imagecodecs.jpeg8_encode(
            np.ascontiguousarray(pixels),
            level=quality,
            colorspace="rgb",
            outcolorspace="ycbcr",
            subsampling="444",
        )
    )
