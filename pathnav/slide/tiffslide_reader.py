"""Pixels through TiffSlide: striped files, OME-TIFF whose levels are sub-images, and URLs."""

import itertools
import math
import threading
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pathnav.errors import SlideError
from pathnav.slide.pixels import WHITE, Rgb, Window, cut, white
from pathnav.slide.reader import (
    LevelDimensions,
    Patch,
    decoded_tiles,
    decoding_errors,
    read_around_damage,
    reader_errors,
    unreadable,
)

DEFAULT_TILE = (256, 256)  # a striped file has no tiles: the finest part that is told apart when one fails
KEPT_BYTES = 8 * 1024 * 1024  # windows that meet more than this in tiles are read whole: they would empty the cache

_numbers = itertools.count(-1, -1)  # names readers in the cache; those of direct decoders count upwards


class TiffSlideReader:
    """An open TiffSlide; its reads take turns, since zarr holds the interpreter lock anyway (2 threads: 1.0-1.15x).

    Args:
        path: The slide's file, or a URL that fsspec can open.

    Raises:
        SlideError: If the pixels are not 8-bit grey or RGB.
        TiffFileError: (and others, see `reader_errors`) If TiffSlide cannot open it.
    """

    name = "tiffslide"

    def __init__(self, path: str) -> None:
        from tiffslide import TiffSlide

        self._path = path
        self._number = next(_numbers)
        self._lock = threading.Lock()
        self._slide = TiffSlide(path)
        refusals: tuple[type[Exception], ...] = (SlideError, *reader_errors())
        try:
            found = self._slide.properties
            self.properties: Mapping[str, str] = {k: str(v) for k, v in found.items() if v is not None}
            self.level_dimensions: LevelDimensions = tuple(
                (int(width), int(height)) for width, height in self._slide.level_dimensions
            )
            self._downsamples = tuple(float(number) for number in self._slide.level_downsamples)
            self._absent = tuple(self._absent_tiles(level) for level in range(len(self.level_dimensions)))
            _check_pixels(path, self._raw(0, Window(0, 0, 1, 1)))
        except refusals:
            self._slide.close()
            raise

    def read(self, level: int, window: Window) -> Patch:
        """Return the pixels of a window that lies inside the level."""
        rgb, failed = self._from_tiles(level, window), tuple[Window, ...]()
        if rgb is None:
            rgb, failed = read_around_damage(lambda part: self._attempt(level, part), window, self._tile(level))
        absent = self._absent[level]
        if absent is not None:
            _whiten(rgb, window, absent, self._tile(level))
        return Patch(rgb, failed=failed)

    def close(self) -> None:
        """Release the file."""
        self._slide.close()
        decoded_tiles().drop(self._number)

    def _attempt(self, level: int, window: Window) -> Rgb | None:
        """Return a window's pixels, None where one of its tiles is damaged."""
        try:
            return _as_rgb(self._raw(level, window))
        except decoding_errors():
            return None
        except reader_errors() as error:
            raise unreadable(self._path, error) from error

    def _from_tiles(self, level: int, window: Window) -> Rgb | None:
        """Return a window put together from whole tiles, which neighbours then find in the cache.

        A window with the margin that rescaling needs meets up to four tiles for one that it shows, and TiffSlide
        decodes all of them for each window: that made tiles of 256 px take 1.5 times a plain loop's time, now 0.8.

        Returns: None where a tile is damaged, or where the tiles would fill the cache.
        """
        (width, height), extent = self._tile(level), self.level_dimensions[level]
        tiles = [
            Window(part.left // width * width, part.top // height * height, width, height).intersection(
                Window(0, 0, *extent)
            )
            for part in window.tiles((width, height))
        ]
        if sum(tile.area for tile in tiles) * 3 > KEPT_BYTES:
            return None
        cache = decoded_tiles()
        keys = {tile: (self._number, level, tile.top * extent[0] + tile.left) for tile in tiles}
        found = {tile: cache.get(key) for tile, key in keys.items()}
        missing = [tile for tile, rgb in found.items() if rgb is None]
        if missing:
            around = _hull(missing)
            pixels = self._attempt(level, around)
            if pixels is None:
                return None
            for tile in missing:
                kept = cut(pixels, around, tile).copy()
                found[tile] = kept
                cache.put(keys[tile], kept)
        canvas = white(window)
        for tile, rgb in found.items():
            part = window.intersection(tile)
            if rgb is not None:
                cut(canvas, window, part)[:] = cut(rgb, tile, part)
        return canvas

    def _raw(self, level: int, window: Window) -> np.ndarray[Any, Any]:
        downsample = self._downsamples[level]
        origin = (_base(window.left, downsample), _base(window.top, downsample))
        with self._lock:
            return np.asarray(self._slide.read_region(origin, level, (window.width, window.height), as_array=True))

    def _tile(self, level: int) -> tuple[int, int]:
        def side(axis: str, default: int) -> int:
            return int(self.properties.get(f"tiffslide.level[{level}].tile-{axis}", default)) or default

        return side("width", DEFAULT_TILE[0]), side("height", DEFAULT_TILE[1])

    def _absent_tiles(self, level: int) -> NDArray[np.bool_] | None:
        """Return which tiles (row, column) the file leaves out: TiffSlide shows them black. None if it has them all."""
        pages: Any = self._slide.ts_tifffile.series[int(self.properties["tiffslide.series-index"])].levels[level].pages
        if len(pages) != 1 or pages[0] is None or not pages[0].is_tiled:
            return None
        width, height = self._tile(level)
        columns, rows = (-(-n // side) for n, side in zip(self.level_dimensions[level], (width, height), strict=True))
        absent = np.asarray(pages[0].databytecounts) == 0
        return absent.reshape(rows, columns) if absent.any() and absent.size == rows * columns else None


def _hull(windows: list[Window]) -> Window:
    """Return the smallest window that holds some."""
    left, top = min(each.left for each in windows), min(each.top for each in windows)
    return Window(left, top, max(each.right for each in windows) - left, max(each.bottom for each in windows) - top)


def _whiten(rgb: Rgb, window: Window, absent: NDArray[np.bool_], tile: tuple[int, int]) -> None:
    """Paint the absent tiles of a window white."""
    columns = np.arange(window.left, window.right) // tile[0]
    rows = np.arange(window.top, window.bottom) // tile[1]
    rgb[absent[np.ix_(rows, columns)]] = WHITE


def _base(start: int, downsample: float) -> int:
    """Return the level-0 pixel that TiffSlide turns into the level pixel `start` (it cuts off after dividing)."""
    base = math.ceil(start * downsample)
    while int(base / downsample) < start:
        base += 1
    return base


def _check_pixels(path: str, sample: np.ndarray[Any, Any]) -> None:
    if sample.dtype != np.uint8 or sample.ndim != 3 or sample.shape[2] not in (1, 3, 4):
        raise SlideError(
            f"{path} holds {sample.dtype} pixels of shape {sample.shape[2:]}; expected 8-bit grey, RGB or RGBA"
        )


def _as_rgb(raw: np.ndarray[Any, Any]) -> Rgb:
    if raw.shape[2] == 1:
        return np.repeat(raw, 3, axis=2)
    if raw.shape[2] == 4:
        share = raw[..., 3:].astype(np.uint16)
        return ((raw[..., :3] * share + WHITE * (WHITE - share) + WHITE // 2) // WHITE).astype(np.uint8)
    return np.array(raw)
