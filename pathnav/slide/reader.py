"""What a reader of slide files offers: exact pixels of whole level windows; and what all readers need.

Choosing levels, rescaling and everything beyond the slide's edge is `sampling.py`'s business.
"""

import os
import struct
import sys
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from pathnav.errors import SlideError
from pathnav.slide.pixels import Rgb, Window, cut, white

LevelDimensions = tuple[tuple[int, int], ...]

DECODED_BYTES = 32 * 1024 * 1024  # 170 tiles of 256 px: a row of tiles across 43,000 px, so that the next row finds it


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


TileKey = tuple[int, int, int]
"""A decoder's number, a level and a tile's index."""


class DecodedTiles:
    """The decoded tiles used last, of all slides; threads may share it.

    A 40x tile is a whole tile of the file only where the grids agree. At 0.252 um per pixel, or with the margin that
    rescaling needs, it meets four, and each of those is met by four neighbours: decoding once instead of four times
    takes a tile of 254 px from 1.29 to 0.4 ms.

    Args:
        limit_bytes: The most that it holds.
    """

    def __init__(self, limit_bytes: int = DECODED_BYTES) -> None:
        self._limit_bytes = limit_bytes
        self._held_bytes = 0
        self._tiles: OrderedDict[TileKey, Rgb] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: TileKey) -> Rgb | None:
        """Return a tile, not to be written to; None if it is not held."""
        with self._lock:
            tile = self._tiles.get(key)
            if tile is not None:
                self._tiles.move_to_end(key)
            return tile

    def put(self, key: TileKey, tile: Rgb) -> None:
        """Hold a tile, and let go of those used longest ago."""
        with self._lock:
            if key in self._tiles:
                return
            self._tiles[key] = tile
            self._held_bytes += tile.nbytes
            while self._held_bytes > self._limit_bytes:
                self._held_bytes -= self._tiles.popitem(last=False)[1].nbytes

    def drop(self, decoder: int) -> None:
        """Let go of a decoder's tiles."""
        with self._lock:
            for key in [key for key in self._tiles if key[0] == decoder]:
                self._held_bytes -= self._tiles.pop(key).nbytes


_decoded = DecodedTiles()


def decoded_tiles() -> DecodedTiles:
    """Return the process's cache of tiles decoded directly; a forked child begins with an empty one."""
    return _decoded


def _forget_tiles() -> None:
    """Replace the cache, whose lock a thread of the parent may have held at the fork."""
    global _decoded
    _decoded = DecodedTiles()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_tiles)


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
    canvas, failed = white(window), []
    for part in window.tiles(tile):
        rgb = read(part)
        if rgb is None:
            failed.append(part)
        else:
            cut(canvas, window, part)[:] = rgb
    return canvas, tuple(failed)


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
