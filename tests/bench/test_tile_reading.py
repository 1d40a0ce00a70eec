"""Tiles read and encoded for a model, beside the loop that one would write without pathnav; ratios within one run.

Run with `pytest -o addopts= -s --import-mode=importlib tests/bench/test_tile_reading.py`; needs the real slides.
"""

import statistics
import sys
from pathlib import Path

import pytest

from pathnav.slide import open_slide
from support.mosaic import write_mosaic
from support.tile_loops import Loop, best_s, middle_block, openslide_loop, pathnav_loop, tiffslide_loop

MAGNIFICATIONS = ("2.5x", "10x", "40x")
MOST_TILES = {256: 64, 1024: 9}
SIDE_PX = 32_768
REPEATS = 5

Cell = tuple[int, str, int]


def ratios(path: Path, plain: Loop) -> dict[Cell, float]:
    """Return pathnav's throughput as a multiple of a plain loop's, by tile side, magnification and threads."""
    found = {}
    with open_slide(path) as slide:
        for tile_px, most in MOST_TILES.items():
            for level in (2, 1, 0):
                work = middle_block(slide, tile_px, level, most)
                for threads in (1, 2):
                    mine, theirs = best_s([pathnav_loop, plain], work, threads, REPEATS)
                    cell = tile_px, MAGNIFICATIONS[level], threads
                    found[cell] = theirs / mine
                    sys.stdout.write(
                        f"\n{path.name[-24:]}: {len(work.regions)} tiles of {tile_px} px at {MAGNIFICATIONS[level]}, "
                        f"{threads} threads: {theirs / mine:.2f}"
                    )
    return found


TILED = [
    ("virtual-hgsc-groundtruth.svs", "a.svs", 0.25),
    ("svs-40x-3levels.svs", "b.svs", 0.252),
    ("tiff-pyramid-0.5um.tif", "c.tif", 0.5),
    ("CMU-1-Small-Region.svs", "d.svs", 0.25),
    ("tiff-pyramid-0.5um.tif", "e.tif", 0.25),
]


@pytest.mark.parametrize(("source", "name", "mpp_um"), TILED)
def test_tiles_of_a_tiled_jpeg_slide_are_ready(
    shared: Path, tmp_path: Path, source: str, name: str, mpp_um: float
) -> None:
    path = write_mosaic(tmp_path / name, shared / "slides" / source, SIDE_PX, mpp_um)
    found = ratios(path, openslide_loop)
    sys.stdout.write(f"\n{name}: geometric mean {statistics.geometric_mean(found.values()):.2f}\n")


OTHERS = [
    ("mirax-sparse-bounds.mrxs", openslide_loop),
    ("CMU-1-Small-Region-dicom", openslide_loop),
    ("ome-subifd.ome.tif", tiffslide_loop),
    ("tiff-striped-not-tiled.tif", tiffslide_loop),
]


@pytest.mark.parametrize(("name", "plain"), OTHERS)
def test_tiles_of_other_slides_are_not_held_up(shared: Path, name: str, plain: Loop) -> None:
    path = shared / "slides" / name
    found = ratios(min(path.glob("*.dcm")) if path.is_dir() else path, plain)
    sys.stdout.write(f"\n{name}: geometric mean {statistics.geometric_mean(found.values()):.2f}\n")
