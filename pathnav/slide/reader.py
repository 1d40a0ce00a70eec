"""What a reader of slide files offers: exact pixels of whole level windows, and nothing else.

A *level pixel* is a pixel of one pyramid level; a `Window` is a rectangle of whole level pixels inside that level.
Choosing levels, rescaling and everything beyond the slide's edge is `sampling.py`'s business.
"""

import struct
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from pathnav.errors import SlideError

Rgb = NDArray[np.uint8]
LevelDimensions = tuple[tuple[int, int], ...]

WHITE = 255


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

    @property
    def area(self) -> int:
        """The number of level pixels inside."""
        return self.width * self.height


@dataclass(frozen=True, slots=True)
class Patch:
    """The pixels of a window.

    Args:
        rgb: uint8, shape (height, width, 3) of the window, in level pixels; white where nothing was scanned or decoded.
        shift: Where the first pixel's corner really lies minus where the window has it, (x, y) in level pixels; not
            zero only where OpenSlide cannot be asked for whole level pixels.
        failed: The parts that could not be decoded, disjoint.
    """

    rgb: Rgb
    shift: tuple[float, float] = (0.0, 0.0)
    failed: tuple[Window, ...] = ()


class Reader(Protocol):
    """An open slide file; every method may be called from several threads at once."""

    name: str
    level_dimensions: LevelDimensions
    properties: Mapping[str, str]

    def read(self, level: int, window: Window) -> Patch:
        """Return the pixels of a window that lies inside the level."""

    def close(self) -> None:
        """Release the file; no other call may be under way."""


def white(window: Window) -> Rgb:
    """Return a white uint8 RGB image of a window's extent."""
    return np.full((window.height, window.width, 3), WHITE, np.uint8)


def cut(rgb: Rgb, shown: Window, part: Window) -> Rgb:
    """Return a part of an image as a view, given the window that the image shows."""
    left, top = part.left - shown.left, part.top - shown.top
    return rgb[top : top + part.height, left : left + part.width]


def read_around_damage(
    read: Callable[[Window], Rgb | None], window: Window, tile: tuple[int, int]
) -> tuple[Rgb, tuple[Window, ...]]:
    """Return a window's pixels with those tiles left white that cannot be decoded.

    Args:
        read: Returns the pixels of a window, or None where it holds a tile that cannot be decoded.
        window: The window, in level pixels.
        tile: Width and height of the level's tiles, in level pixels: the finest part that is told apart.

    Returns: uint8 RGB of the window's extent, and the parts that failed.
    """
    rgb = read(window)
    if rgb is not None:
        return rgb, ()
    pieces = _split(window, tile)
    if len(pieces) == 1:
        return white(window), (window,)
    canvas = white(window)
    failed: list[Window] = []
    for piece in pieces:
        part, lost = read_around_damage(read, piece, tile)
        top, left = piece.top - window.top, piece.left - window.left
        canvas[top : top + piece.height, left : left + piece.width] = part
        failed.extend(lost)
    return canvas, tuple(failed)


def _split(window: Window, tile: tuple[int, int]) -> list[Window]:
    """Return the window cut in two along the tile grid at its longer side; itself where it lies in one tile."""
    across = _middle_edge(window.left, window.right, tile[0])
    down = _middle_edge(window.top, window.bottom, tile[1])
    if across is not None and (down is None or window.width >= window.height):
        first = Window(window.left, window.top, across - window.left, window.height)
        return [first, Window(across, window.top, window.right - across, window.height)]
    if down is not None:
        first = Window(window.left, window.top, window.width, down - window.top)
        return [first, Window(window.left, down, window.width, window.bottom - down)]
    return [window]


def _middle_edge(start: int, end: int, side: int) -> int | None:
    """Return the tile edge nearest to the middle of (start, end), None where there is none inside."""
    first = (start // side + 1) * side
    if first >= end:
        return None
    return first + (end - first - 1) // side // 2 * side


def decoding_errors() -> tuple[type[Exception], ...]:
    """Return what slide libraries raise for a tile whose bytes are damaged.

    Not among them is what says that the bytes could not be had (OSError, a network client's errors): those are no
    damage of the slide, and must not be shown as white.
    """
    import tifffile

    return RuntimeError, ValueError, ArithmeticError, LookupError, TypeError, EOFError, tifffile.TiffFileError


def unreadable(path: str, error: Exception) -> SlideError:
    """Return the error for an open slide whose file can no longer be read."""
    return SlideError(f"{path} can no longer be read: {reason_of(error)}; check its disk or network, then try again")


def reason_of(error: Exception) -> str:
    """Return a slide library's complaint in one line."""
    text = " ".join(str(error).split())
    return f"{type(error).__name__} ({text})" if text else type(error).__name__


def reader_errors() -> tuple[type[Exception], ...]:
    """Return what slide libraries are known to raise for a file they cannot handle.

    OpenSlide raises its own error, tifffile and zarr theirs (`ValueError`, bare `Exception` subclasses), and damaged
    headers surface as ZeroDivisionError, IndexError, KeyError, NotImplementedError, struct.error, or, from XML,
    SyntaxError. One list, so that no caller needs a broad except.
    """
    found: list[type[Exception]] = [
        OSError, ValueError, ArithmeticError, LookupError, RuntimeError, TypeError, AttributeError, AssertionError,
        EOFError, MemoryError, SyntaxError, ImportError, struct.error,
    ]  # fmt: skip
    for module, name in (("openslide", "OpenSlideError"), ("tifffile", "TiffFileError"), ("aiohttp", "ClientError")):
        if module in sys.modules:
            found.append(getattr(sys.modules[module], name))
    return tuple(found)
