"""Loops that read the tiles of a slide and encode them as JPEG: pathnav's, and what one would write without it.

Every pass opens its file anew, so that no loop finds tiles in a cache that its last pass has filled.
"""

import io
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from pathnav.explore import TileTree
from pathnav.slide import Slide, TissueMask, open_slide
from pathnav.slide.pixels import encode_jpeg

QUALITY = 90


@dataclass(frozen=True)
class Region:
    """A tile as a plain loop needs it.

    Args:
        number: Its place in its level's grid.
        level: The pyramid level to read.
        origin: Level-0 pixel of its corner.
        read_px: Width and height in pixels of that level.
        shown_px: Width and height of the image.
    """

    number: int
    level: int
    origin: tuple[int, int]
    read_px: tuple[int, int]
    shown_px: tuple[int, int]


@dataclass(frozen=True)
class Work:
    """Some tiles of a slide, in reading order.

    Args:
        path: The slide's file.
        tile_px: Side of their images.
        tree_level: 0 for 2.5x, 1 for 10x, 2 for 40x.
        regions: The tiles.
        mask: The slide's tissue, found beforehand.
    """

    path: Path
    tile_px: int
    tree_level: int
    regions: tuple[Region, ...]
    mask: TissueMask


Encode = Callable[[Region], bytes]
Loop = Callable[[Work], AbstractContextManager[Encode]]


def middle_block(slide: Slide, tile_px: int, tree_level: int, most: int) -> Work:
    """Return the tiles of a square block in the middle of a slide's grid, row by row, at most so many.

    The level that pathnav reads is the level that the plain loops read, too: picking it is no part of this.
    """
    tree = TileTree(slide, tile_px, 0.0, mask := slide.tissue_mask())
    grid, side = tree.grid(tree_level), max(1, int(most**0.5))
    rows, columns = min(side, grid.rows), min(side, grid.columns)
    top, left = (grid.rows - rows) // 2, (grid.columns - columns) // 2
    regions = []
    for row in range(top, top + rows):
        for column in range(left, left + columns):
            tile = tree.tile(tree_level, row * grid.columns + column)
            found, box, shown_px = tree.reading(tile), tree.box(tile), tree.shown_px(tile)
            across, down = found.level_downsample
            read_px = round(box.width / across), round(box.height / down)
            regions.append(Region(tree.number(tile), found.level, (int(box.x), int(box.y)), read_px, shown_px))
    return Work(Path(slide.path), tile_px, tree_level, tuple(regions), mask)


@contextmanager
def pathnav_loop(work: Work) -> Any:
    """Read as a scorer does: `TileImage.read`, then JPEG."""
    with open_slide(work.path) as slide:
        tree = TileTree(slide, work.tile_px, 0.0, work.mask)
        _ = tree.fingerprint, tree.tissue_status  # found once for a slide; not part of what a tile costs

        def encode(region: Region) -> bytes:
            return encode_jpeg(tree.image(tree.tile(work.tree_level, region.number)).read(), QUALITY)

        yield encode


@contextmanager
def openslide_loop(work: Work) -> Any:
    """Read with OpenSlide as it comes, its own tile cache included."""
    from openslide import OpenSlide

    with OpenSlide(work.path) as handle:
        yield lambda region: plain_jpeg(handle.read_region(region.origin, region.level, region.read_px), region)


@contextmanager
def tiffslide_loop(work: Work) -> Any:
    """Read with TiffSlide."""
    from tiffslide import TiffSlide

    with TiffSlide(work.path) as handle:
        yield lambda region: plain_jpeg(handle.read_region(region.origin, region.level, region.read_px), region)


@contextmanager
def cucim_loop(work: Work) -> Any:
    """Read with cuCIM on the CPU."""
    from cucim import CuImage

    handle = CuImage(str(work.path))

    def encode(region: Region) -> bytes:
        pixels = np.asarray(handle.read_region(region.origin, region.read_px, region.level))
        return plain_jpeg(Image.fromarray(pixels), region)

    yield encode
    handle.close()


def plain_jpeg(image: Image.Image, region: Region) -> bytes:
    """Return what a plain loop encodes: RGB, rescaled with Lanczos where the level's pixels are not the image's."""
    rgb = image.convert("RGB")
    if rgb.size != region.shown_px:
        rgb = rgb.resize(region.shown_px, Image.Resampling.LANCZOS)
    buffer = io.BytesIO()
    rgb.save(buffer, "JPEG", quality=QUALITY, subsampling=0)
    return buffer.getvalue()


def wall_s(loop: Loop, work: Work, threads: int) -> float:
    """Return the wall time of one pass over all tiles, opening the file not included."""
    with loop(work) as encode, ThreadPoolExecutor(threads) as pool:
        start = time.perf_counter()
        list(pool.map(encode, work.regions))
        return time.perf_counter() - start


def best_s(loops: Sequence[Loop], work: Work, threads: int, repeats: int) -> list[float]:
    """Return each loop's best of some passes; the loops take turns, so that a busy machine is busy for all of them."""
    passes = [[wall_s(loop, work, threads) for loop in loops] for _ in range(repeats)]
    return [min(times) for times in zip(*passes, strict=True)]
