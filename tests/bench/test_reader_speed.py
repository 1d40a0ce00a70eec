"""The table of docs/reader-speed.md: pathnav beside OpenSlide, TiffSlide and, where it is installed, cuCIM on the CPU.

Run with `pytest -o addopts= -s --import-mode=importlib tests/bench/test_reader_speed.py`; needs the real slides.
"""

import importlib.util
import sys
from pathlib import Path

from pathnav.slide import open_slide
from support.mosaic import write_mosaic
from support.tile_loops import best_s, cucim_loop, middle_block, openslide_loop, pathnav_loop, tiffslide_loop

MAGNIFICATIONS = ("2.5x", "10x", "level 0")
TILES = 64
REPEATS = 5
SIDE_PX = 32_771  # levels 4.0004 and 16.0015 times as coarse, as scanners write them
SLIDES = [
    ("svs-40x-3levels.svs", "a.svs", 0.252),
    ("virtual-hgsc-groundtruth.svs", "b.svs", 0.25),
    ("CMU-1-Small-Region.svs", "c.svs", 0.25),
    ("tiff-pyramid-0.5um.tif", "d.tif", 0.25),
]

PLAIN = {"OpenSlide": openslide_loop, "TiffSlide": tiffslide_loop}
if importlib.util.find_spec("cucim") is not None:
    PLAIN["cuCIM"] = cucim_loop


def test_the_table_of_readers(shared: Path, tmp_path: Path) -> None:
    sys.stdout.write(f"\n| tiles of | shown at | threads | {' | '.join(PLAIN)} |\n|{'---|' * (3 + len(PLAIN))}\n")
    faster = 0
    for source, name, mpp_um in SLIDES:
        path = write_mosaic(tmp_path / name, shared / "slides" / source, SIDE_PX, mpp_um)
        with open_slide(path) as slide:
            for level in (2, 1, 0):
                work = middle_block(slide, 256, level, TILES)
                for threads in (1, 2):
                    mine, *others = best_s([pathnav_loop, *PLAIN.values()], work, threads, REPEATS)
                    faster += mine < others[0]
                    ratios = " | ".join(f"{other / mine:.1f}" for other in others)
                    sys.stdout.write(f"| {source} | {MAGNIFICATIONS[level]} | {threads} | {ratios} |\n")
    assert faster >= 6 * len(SLIDES) - 2, "a level or two of one slide may fall to noise, no more"
