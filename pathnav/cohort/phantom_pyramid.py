"""Writes a rendered plane as a pyramidal tiled JPEG TIFF, block by block in threads."""

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from tifffile import TiffWriter

TILE_PX = 256
STEP = 4  # downsample from one level to the next: 40x, 10x, 2.5x are native
BLOCK_PX = STEP * TILE_PX
_JPEG_QUALITY = 80  # of level 0
_COARSE_QUALITY = 90  # of the levels above: every pixel is detail there, 80 would be off by 4 of 255 on average
_UM_PER_CM = 10_000

RGB = NDArray[np.uint8]
RenderWindow = Callable[[int, int, int, int], RGB]


@dataclass(frozen=True, slots=True)
class PyramidText:
    """What the file says about itself."""

    description: str
    software: str
    mpp_um: float


@dataclass(frozen=True, slots=True)
class _Block:
    """What one rendered block adds: 4 x 4 tiles of level 0, one of level 1, and its pixels at level 2."""

    tiles: list[list[bytes]]
    reduced_tile: bytes
    reduced_twice: RGB


def write_pyramid(path: Path, side: int, render: RenderWindow, text: PyramidText, threads: int) -> None:
    """Write a square slide; its bytes do not depend on the number of threads.

    Args:
        path: The file to write.
        side: Width and height in level-0 pixels.
        render: Returns the RGB pixels of a window (x, y, width, height) of at most `BLOCK_PX` a side.
        text: Description, software and scale.
        threads: How many blocks are rendered at a time.
    """
    import tifffile

    rest = _Rest(side)
    with tifffile.TiffWriter(path, bigtiff=side > 2**15) as tiff:
        _write_level(tiff, side, 0, _level_0(side, render, rest, threads), text)
        _write_level(tiff, side, 1, iter(rest.reduced_tiles), text)
        pixels = rest.reduced_twice
        for level in range(2, _level_count(side)):
            _write_level(tiff, side, level, _tiles(pixels), text)
            pixels = _reduce(pixels)


def _write_level(tiff: "TiffWriter", side: int, level: int, tiles: Iterator[bytes], text: PyramidText) -> None:
    """Write one level as a page of encoded tiles."""
    level_side, per_cm = -(-side // STEP**level), _UM_PER_CM / (text.mpp_um * STEP**level)
    tiff.write(
        tiles,
        shape=(level_side, level_side, 3),
        dtype=np.uint8,
        tile=(TILE_PX, TILE_PX),
        compression="jpeg",
        photometric="ycbcr",
        subsampling=(2, 2),
        subfiletype=int(level > 0),
        description=text.description if level == 0 else None,
        software=text.software if level == 0 else None,
        resolution=(per_cm, per_cm),
        resolutionunit="CENTIMETER",
        metadata=None,
    )


def _level_count(side: int) -> int:
    """Return 3 levels (1, 4, 16), more while the last one is longer than 2,048 pixels."""
    count = 3
    while side // STEP ** (count - 1) > 2048:
        count += 1
    return count


class _Rest:
    """What the blocks leave for the coarser levels."""

    def __init__(self, side: int) -> None:
        self.reduced_tiles: list[bytes] = []
        self._twice_side = -(-side // STEP**2)
        rows = -(-side // BLOCK_PX)
        self._pixels = np.empty((rows * BLOCK_PX // STEP**2,) * 2 + (3,), dtype=np.uint8)

    def add(self, block: _Block, row: int, column: int) -> None:
        """Keep a block's coarser levels."""
        self.reduced_tiles.append(block.reduced_tile)
        part = block.reduced_twice.shape[0]
        self._pixels[row * part : (row + 1) * part, column * part : (column + 1) * part] = block.reduced_twice

    @property
    def reduced_twice(self) -> RGB:
        """The pixels of level 2."""
        return self._pixels[: self._twice_side, : self._twice_side]


def _level_0(side: int, render: RenderWindow, rest: _Rest, threads: int) -> Iterator[bytes]:
    """Yield the tiles of level 0 in file order, one row of blocks at a time."""
    blocks, tiles_across = -(-side // BLOCK_PX), -(-side // TILE_PX)
    places = [(row, column) for row in range(blocks) for column in range(blocks)]

    def job(place: tuple[int, int]) -> _Block:
        y, x = place[0] * BLOCK_PX, place[1] * BLOCK_PX
        return _encode_block(render(x, y, min(BLOCK_PX, side - x), min(BLOCK_PX, side - y)))

    with ThreadPoolExecutor(threads) as pool:
        finished = _in_order(pool, job, places, ahead=2 * threads)
        for row in range(blocks):
            strips: list[list[bytes]] = [[] for _ in range(STEP)]
            for column in range(blocks):
                block = next(finished)
                rest.add(block, row, column)
                for strip, tiles in zip(strips, block.tiles, strict=True):
                    strip += tiles
            rows_left = -(-side // TILE_PX) - row * STEP
            for strip in strips[:rows_left]:
                yield from strip[:tiles_across]


def _in_order(
    pool: ThreadPoolExecutor,
    job: Callable[[tuple[int, int]], _Block],
    places: list[tuple[int, int]],
    ahead: int,
) -> Iterator[_Block]:
    """Yield the blocks in order while at most `ahead` of them are begun: `map` would hold all in memory."""
    begun: deque[Future[_Block]] = deque()
    for place in places:
        begun.append(pool.submit(job, place))
        if len(begun) > ahead:
            yield begun.popleft().result()
    while begun:
        yield begun.popleft().result()


def _encode_block(rgb: RGB) -> _Block:
    full = _padded(rgb, BLOCK_PX)
    reduced = _reduce(full)
    starts = range(0, BLOCK_PX, TILE_PX)
    tiles = [[_jpeg(full[y : y + TILE_PX, x : x + TILE_PX], _JPEG_QUALITY) for x in starts] for y in starts]
    return _Block(tiles, _jpeg(reduced, _COARSE_QUALITY), _reduce(reduced))


def _tiles(pixels: RGB) -> Iterator[bytes]:
    """Yield the encoded tiles of a whole level in file order."""
    height, width = pixels.shape[:2]
    for y in range(0, height, TILE_PX):
        for x in range(0, width, TILE_PX):
            yield _jpeg(_padded(pixels[y : y + TILE_PX, x : x + TILE_PX], TILE_PX), _COARSE_QUALITY)


def _padded(rgb: RGB, side: int) -> RGB:
    """Return the pixels enlarged to a square by repeating the last row and column."""
    missing = ((0, side - rgb.shape[0]), (0, side - rgb.shape[1]), (0, 0))
    return np.pad(rgb, missing, mode="edge") if any(after for _, after in missing) else rgb


def _reduce(rgb: RGB) -> RGB:
    """Return the pixels averaged over 4 x 4, padded at the far edges."""
    from PIL import Image

    height, width = -(-rgb.shape[0] // STEP) * STEP, -(-rgb.shape[1] // STEP) * STEP
    whole = np.pad(rgb, ((0, height - rgb.shape[0]), (0, width - rgb.shape[1]), (0, 0)), mode="edge")
    return np.asarray(Image.fromarray(np.ascontiguousarray(whole)).reduce(STEP))


def _jpeg(rgb: RGB, quality: int) -> bytes:
    import imagecodecs

    return bytes(imagecodecs.jpeg8_encode(np.ascontiguousarray(rgb), level=quality, subsampling="420"))
