"""Draws a phantom slide into files: a pyramidal TIFF, its regions as QuPath GeoJSON and its diagnostic tree."""

import json
import os
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import repeat
from pathlib import Path
from typing import Any

import numpy as np
import shapely
from numpy.typing import NDArray
from PIL import Image

from pathnav.errors import ConfigError
from pathnav.phantom.layout import Layout, Tissue, as_shape
from pathnav.phantom.noise import BLOCK_PX
from pathnav.phantom.render import GLASS, render
from pathnav.phantom.scene import Scene
from pathnav.phantom.tree import MPP_UM, tree_document

GENERATOR_VERSION = 2  # goes up whenever the same seed gives other pixels
LEAST_SIDE_PX = 1024
LARGEST_SIDE_PX = 32_768  # the maps in memory take 0.5 GB there
_MOST_THREADS = 4
_TILE_PX = 256
_STEP = BLOCK_PX // _TILE_PX  # downsample from one level to the next, 4: 40x, 10x, 2.5x are native
_JPEG_QUALITY = (80, 90, 90)  # above level 0 every pixel is detail: 80 would be off by 4 of 255 on average
_COLOURS = {
    "tumor": [200, 0, 0],
    "glands": [0, 160, 90],
    "lymphoid": [90, 60, 200],
    "fat": [230, 200, 60],
    "stroma": [150, 200, 150],
}

RGB = NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class PhantomFiles:
    """The three files of a phantom."""

    slide: Path  # the pyramidal TIFF
    annotation: Path  # its regions as QuPath GeoJSON, the tumour with the class `tumor`
    tree: Path  # its diagnostic tree, `pathnav-tree-1`


def make_phantom(
    path: str | Path,
    *,
    seed: int = 0,
    side: int = 8192,
    pen: bool = False,
    threads: int | None = None,
    force: bool = False,
) -> PhantomFiles:
    """Draw a phantom slide and write it with its annotation and its diagnostic tree.

    The same seed, side and pen give the same bytes, whatever the number of threads. The files appear under their
    names only when all are complete.

    Args:
        path: The slide to write, `NAME.tif` or `NAME.tiff`; `NAME.geojson` and `NAME.tree.json` go beside it.
        seed: Which phantom, 0 or more.
        side: Width and height in level-0 pixels of 0.25 um, 1,024 to 32,768.
        pen: Whether a pen mark is drawn on the glass.
        threads: Blocks rendered at a time; None for one a core, at most 4.
        force: Whether files that exist are replaced.

    Raises:
        ConfigError: If the path, the seed or the side is not usable; then nothing is written.
    """
    files = phantom_files(path)
    _check(files, seed, side, force)
    scene = Scene(seed, side, pen=pen)
    about = f"seed={seed} side={side} pen={'yes' if pen else 'no'} mpp={MPP_UM} generator={GENERATOR_VERSION}"
    try:
        with tempfile.TemporaryDirectory(dir=files.slide.parent, prefix=f".{files.slide.name}.") as folder:
            growing = phantom_files(Path(folder) / files.slide.name)
            growing.annotation.write_text(json.dumps(_annotation(scene.layout)) + "\n", encoding="utf-8")
            tree = tree_document(seed, scene, files.slide.name)
            growing.tree.write_text(json.dumps(tree, indent=1) + "\n", encoding="utf-8")
            _write_slide(growing.slide, scene, about, threads or min(_MOST_THREADS, os.cpu_count() or 1))
            growing.annotation.replace(files.annotation)
            growing.tree.replace(files.tree)
            growing.slide.replace(files.slide)  # last: whoever finds it finds its truth too
    except OSError as error:
        raise ConfigError(f"the phantom {str(files.slide)!r} cannot be written: {error.strerror or error}") from error
    return files


def phantom_files(path: str | Path) -> PhantomFiles:
    """Return the names of a phantom's three files for the name of its slide.

    Raises:
        ConfigError: If the path names no file.
    """
    slide = Path(path)
    if not slide.name:
        raise ConfigError(f"a phantom needs a file name such as demo.tiff, got {str(path)!r}")
    return PhantomFiles(slide, slide.with_suffix(".geojson"), slide.with_suffix(".tree.json"))


def _check(files: PhantomFiles, seed: int, side: int, force: bool) -> None:
    """Refuse what cannot be drawn, before anything is written."""
    slide = files.slide
    if slide.suffix.lower() not in (".tif", ".tiff"):
        raise ConfigError(f"a phantom is a TIFF file: its name must end in .tif or .tiff, got {str(slide)!r}")
    if type(seed) is not int or seed < 0:
        raise ConfigError(f"seed must be a whole number of 0 or more, got {seed!r}")
    if type(side) is not int or not LEAST_SIDE_PX <= side <= LARGEST_SIDE_PX:
        raise ConfigError(
            f"side must be a whole number of pixels in [{LEAST_SIDE_PX}, {LARGEST_SIDE_PX}], got {side!r}"
        )
    if not slide.parent.is_dir():
        raise ConfigError(f"the folder {str(slide.parent)!r} for the phantom does not exist; create it first")
    for place in (files.slide, files.annotation, files.tree):
        if place.is_dir():
            raise ConfigError(f"{str(place)!r} is a folder; a phantom writes a file of that name")
        if place.exists() and not force:
            raise ConfigError(f"{str(place)!r} exists: name another file, or give --force to replace it")


def _annotation(layout: Layout) -> dict[str, Any]:
    """Return a FeatureCollection: every region, and as `stroma` what of the section no region covers."""
    stroma = layout.outline.difference(shapely.union_all([shape for _, shape in layout.regions]))
    features: list[dict[str, Any]] = []
    for tissue, shape in [*reversed(layout.regions), (Tissue.STROMA, as_shape(stroma))]:
        name = "tumor" if tissue.is_tumour else tissue.name.lower()
        properties = {
            "objectType": "annotation",
            "name": tissue.name.lower(),
            "classification": {"name": name, "color": _COLOURS[name]},
        }
        geometry = shapely.geometry.mapping(shape)
        features.append(
            {"type": "Feature", "id": f"{len(features):08d}", "geometry": geometry, "properties": properties}
        )
    return {"type": "FeatureCollection", "features": features}


def _write_slide(path: Path, scene: Scene, about: str, threads: int) -> None:
    """Write a scene as a tiled JPEG TIFF of three levels; its bytes do not depend on the number of threads."""
    import tifffile

    side = scene.layout.side
    blocks = -(-side // BLOCK_PX)
    reduced_tiles: list[bytes] = []
    tiles_across = [-(-side // (_TILE_PX * _STEP**level)) for level in range(3)]
    coarsest = np.full((tiles_across[2] * _TILE_PX,) * 2 + (3,), GLASS, dtype=np.uint8)

    def level_0() -> Iterator[bytes]:
        """Yield the tiles in file order, one row of blocks at a time, and keep what the other levels need."""
        with ThreadPoolExecutor(threads) as pool:
            for row in range(blocks):
                drawn = list(pool.map(_block, repeat(scene), repeat(row), range(blocks)))
                reduced_tiles.extend(reduced for _, reduced, _ in drawn)
                pixels = np.concatenate([twice for _, _, twice in drawn], axis=1)
                coarsest[row * len(pixels) : (row + 1) * len(pixels), : pixels.shape[1]] = pixels
                for line in range(min(_STEP, tiles_across[0] - row * _STEP)):
                    yield from [tile for tiles, _, _ in drawn for tile in tiles[line]][: tiles_across[0]]

    def level_2() -> Iterator[bytes]:
        for y, x in np.ndindex(tiles_across[2], tiles_across[2]):
            yield _jpeg(coarsest[y * _TILE_PX :, x * _TILE_PX :][:_TILE_PX, :_TILE_PX], 2)

    text = f"pathnav phantom: synthetic image, no tissue and no patient; {about}"
    with tifffile.TiffWriter(path) as tiff:
        for level, tiles in enumerate((level_0(), iter(reduced_tiles), level_2())):
            level_side, per_cm = -(-side // _STEP**level), 10_000 / (MPP_UM * _STEP**level)
            tiff.write(
                tiles,
                shape=(level_side, level_side, 3),
                dtype=np.uint8,
                tile=(_TILE_PX, _TILE_PX),
                compression="jpeg",
                photometric="ycbcr",
                subsampling=(2, 2),
                subfiletype=int(level > 0),
                description=None if level else text,
                software=None if level else "pathnav",
                resolution=(per_cm, per_cm),
                resolutionunit="CENTIMETER",
                metadata=None,
            )


def _block(scene: Scene, row: int, column: int) -> tuple[list[list[bytes]], bytes, RGB]:
    """Return what a block adds: 4 x 4 tiles of level 0, one of level 1, and its pixels at level 2."""
    full = np.ascontiguousarray(render(scene, column * BLOCK_PX, row * BLOCK_PX))
    starts = range(0, BLOCK_PX, _TILE_PX)
    tiles = [[_jpeg(full[y : y + _TILE_PX, x : x + _TILE_PX], 0) for x in starts] for y in starts]
    reduced = Image.fromarray(full).reduce(_STEP)
    return tiles, _jpeg(np.asarray(reduced), 1), np.asarray(reduced.reduce(_STEP))


def _jpeg(rgb: RGB, level: int) -> bytes:
    import imagecodecs

    quality = _JPEG_QUALITY[level]
    return bytes(imagecodecs.jpeg8_encode(np.ascontiguousarray(rgb), level=quality, subsampling="420"))
