"""Pixels through OpenSlide: most formats, scales with threads, goes on after a damaged tile."""

import os
import threading
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from pathnav.slide.pixels import WHITE, Rgb, Window
from pathnav.slide.reader import LevelDimensions, Patch, read_around_damage, reader_errors, unreadable

if TYPE_CHECKING:
    from openslide import OpenSlide, OpenSlideCache
    from PIL import Image

SNAP_TOLERANCE_PX = 1 / 512  # level px; cairo copies pixels unchanged below half of 1/256 px and interpolates above
SNAP_REACH_PX = 384  # level px; an interpolated read costs 4.4-6 times a copied one, so a detour of this size pays
DEFAULT_TILE = (256, 256)
CACHE_BYTES = 64 * 1024 * 1024  # of all slides together: 40 open ones hold 104 MB, with a cache each 1,323 MB

_caches: dict[int, "OpenSlideCache"] = {}
"""By process: a forked child gets one of its own, since the parent's mutex may have been held at the fork, and the
parent's entry stays, since releasing it in the child would take that mutex."""


class OpenSlideReader:
    """An open OpenSlide handle that is replaced when a damaged tile has made it unusable.

    Args:
        path: The slide's file.

    Raises:
        OpenSlideError: (and others, see `reader_errors`) If OpenSlide cannot open it.
    """

    name = "openslide"

    def __init__(self, path: str) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._handle = self._open()
        self.level_dimensions: LevelDimensions = tuple(self._handle.level_dimensions)
        self.properties: Mapping[str, str] = dict(self._handle.properties)
        self._downsamples = tuple(self._handle.level_downsamples)
        self._damaged: dict[int, set[Window]] = {}

    def read(self, level: int, window: Window) -> Patch:
        """Return the pixels of a window that lies inside the level."""
        left, frac_x = _snap(window.left, self._downsamples[level])
        top, frac_y = _snap(window.top, self._downsamples[level])
        asked = Window(left, top, window.right - left, window.bottom - top)
        rgb, failed = read_around_damage(partial(self._attempt, level), asked, self._tile(level))
        if failed:
            self._remember(level, failed)
        cropped = rgb[window.top - top :, window.left - left :]
        lost = (window.intersection(part) for part in failed)
        return Patch(cropped, (frac_x, frac_y), tuple(part for part in lost if part.area))

    def close(self) -> None:
        """Release the handle."""
        self._handle.close()

    def _open(self) -> "OpenSlide":
        from openslide import OpenSlide, OpenSlideCache

        handle = OpenSlide(self._path)
        if os.getpid() not in _caches:
            _caches.setdefault(os.getpid(), OpenSlideCache(CACHE_BYTES))
        handle.set_cache(_caches[os.getpid()])
        return handle

    def _open_again(self) -> "OpenSlide":
        try:
            return self._open()
        except reader_errors() as error:
            raise unreadable(self._path, error) from error

    def _attempt(self, level: int, part: Window) -> Rgb | None:
        """Return a part's pixels, None where it holds a damaged tile."""
        from openslide import OpenSlideError

        if any(part.intersection(tile).area for tile in self._damaged.get(level, ())):
            return None
        shared = self._handle
        try:
            return self._paint(shared, level, part)
        except OpenSlideError:
            self._replace(shared)
        own = self._open_again()  # the shared handle may have failed of what another thread reads
        try:
            return self._paint(own, level, part)
        except OpenSlideError:
            return None
        finally:
            own.close()

    def _paint(self, handle: "OpenSlide", level: int, window: Window) -> Rgb:
        downsample = self._downsamples[level]
        origin = (round(window.left * downsample), round(window.top * downsample))
        return _on_white(handle.read_region(origin, level, (window.width, window.height)))

    def _replace(self, dead: "OpenSlide") -> None:
        """Put a fresh handle in the place of one that has failed; the dead one is closed when its last user lets go."""
        with self._lock:
            if self._handle is dead:
                self._handle = self._open_again()

    def _remember(self, level: int, failed: tuple[Window, ...]) -> None:
        """Note the tiles that failed, so that later reads go round them without losing a handle."""
        tile = self._tile(level)
        with self._lock:
            known = set(self._damaged.get(level, ()))
            for part in failed:
                left, top = part.left // tile[0] * tile[0], part.top // tile[1] * tile[1]
                known.add(Window(left, top, tile[0], tile[1]))
            self._damaged = {**self._damaged, level: known}

    def _tile(self, level: int) -> tuple[int, int]:
        def side(axis: str, default: int) -> int:
            return int(self.properties.get(f"openslide.level[{level}].tile-{axis}", default)) or default

        return side("width", DEFAULT_TILE[0]), side("height", DEFAULT_TILE[1])


def library_version() -> str:
    """Return the version of the OpenSlide library itself, which openslide-bin brings."""
    import openslide

    return str(openslide.__library_version__)


def _snap(start: int, downsample: float) -> tuple[int, float]:
    """Return a level pixel at or before `start` that OpenSlide can be asked for, and by how much it misses it.

    OpenSlide takes whole level-0 pixels and resamples unless they fall on a whole level pixel: sharpness 0.43 of the
    original. With a downsample of 4 every level pixel will do, with 4.003 one in 330.

    Args:
        start: The level pixel wanted.
        downsample: OpenSlide's own downsample of the level (one number for both axes).

    Returns: The level pixel to begin at, and where OpenSlide's pixels then lie minus that, in level pixels.
    """
    for candidate in range(start, max(-1, start - SNAP_REACH_PX - 1), -1):
        miss = round(candidate * downsample) / downsample - candidate
        if abs(miss) <= SNAP_TOLERANCE_PX:
            return candidate, 0.0
    return start, round(start * downsample) / downsample - start


def _on_white(image: "Image.Image") -> Rgb:
    """Return RGBA pixels laid on white: outside the scanned area OpenSlide gives (0, 0, 0, 0)."""
    from PIL import Image

    if image.getchannel("A").getextrema() == (WHITE, WHITE):
        return np.asarray(image.convert("RGB"))
    canvas = Image.new("RGB", image.size, (WHITE, WHITE, WHITE))
    canvas.paste(image, mask=image.getchannel("A"))
    return np.asarray(canvas)
