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
LEAST_TILES = 4
SIDE_PX = 32_768
REPEATS = 5

GOAL, GOAL_OTHERS = 2.0, 0.75
NOISE = 1.1
"""Of two runs on a quiet machine the means of a slide differ by up to so much."""

Cell = tuple[int, str, int]


def ratios(path: Path, plain: Loop) -> dict[Cell, float]:
    """Return pathnav's throughput as a multiple of a plain loop's, by tile side, magnification and threads."""
    found = {}
    with open_slide(path) as slide:
        for tile_px, most in MOST_TILES.items():
            for level in (2, 1, 0):
                work = middle_block(slide, tile_px, level, most)
                if len(work.regions) < LEAST_TILES:  # a single read of a small slide says nothing
                    continue
                for threads in (1, 2):
                    mine, theirs = best_s([pathnav_loop, plain], work, threads, REPEATS)
                    cell = tile_px, MAGNIFICATIONS[level], threads
                    found[cell] = theirs / mine
                    sys.stdout.write(
                        f"\n{path.name[-24:]}: {len(work.regions)} tiles of {tile_px} px at {MAGNIFICATIONS[level]}, "
                        f"{threads} threads: {theirs / mine:.2f}"
                    )
    return found


TILED_JPEG = [
    ("virtual-hgsc-groundtruth.svs", "a.svs", SIDE_PX, 0.25),
    ("virtual-hgsc-groundtruth.svs", "b.svs", SIDE_PX + 3, 0.25),
    ("CMU-1-Small-Region.svs", "c.svs", SIDE_PX, 0.25),
    ("tiff-pyramid-0.5um.tif", "d.tif", SIDE_PX, 0.25),
    ("svs-40x-3levels.svs", "e.svs", SIDE_PX, 0.252),
    ("tiff-pyramid-0.5um.tif", "f.tif", SIDE_PX, 0.5),
]
"""Made of the tiles of a real slide; the last number is um per pixel. No level of `e` and `f` has the pixels of a tile
of exactly 40x, 10x or 2.5x. The levels of `b` are 4.0004 and 16.0015 times as coarse, as
those of a scanner that cuts off what is less than a pixel. The tiles in the file of `c` have 240 px.
"""


@pytest.mark.parametrize(("source", "name", "side_px", "mpp_um"), TILED_JPEG)
def test_tiles_of_a_tiled_jpeg_slide_are_ready_twice_as_fast_as_in_a_plain_loop(
    shared: Path, tmp_path: Path, source: str, name: str, side_px: int, mpp_um: float
) -> None:
    found = ratios(write_mosaic(tmp_path / name, shared / "slides" / source, side_px, mpp_um), openslide_loop)
    assert summary(f"{name} of {source}", found, GOAL) >= GOAL / NOISE


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
    assert summary(name, found, GOAL_OTHERS) >= GOAL_OTHERS / NOISE


def summary(name: str, found: dict[Cell, float], goal: float) -> float:
    """Print and return the geometric mean of all ratios: single ones scatter by a third on a shared machine."""
    mean = statistics.geometric_mean(found.values())
    sys.stdout.write(f"\n{name}: geometric mean {mean:.2f} (goal {goal}), from {min(found.values()):.2f}\n")
    return mean
