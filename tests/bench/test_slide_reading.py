"""How reading compares with what one would write without it; ratios within one run, nothing absolute is asserted.

Run with `pytest tests/bench/test_slide_reading.py -s`; needs the folder of real slides.
"""

import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import openslide
import pytest
from numpy.typing import NDArray

from pathnav.geometry import Box
from pathnav.slide import open_slide

Read = Callable[[Box], NDArray[np.uint8]]

SLIDES = ["svs-40x-3levels.svs", "virtual-hgsc-groundtruth.svs", "tiff-pyramid-0.5um.tif"]
THREADS = (1, 2)
READS = 40


def seconds(read: Read, boxes: list[Box], threads: int) -> float:
    """Return the best of three wall times for reading all boxes."""

    def once() -> float:
        start = time.perf_counter()
        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(read, boxes))
        return time.perf_counter() - start

    return min(once() for _ in range(3))


def say(line: str) -> None:
    """Show one line of results."""
    sys.stdout.write(f"\n{line}")


def boxes_of(width: int, height: int, side: int) -> list[Box]:
    """Return seeded boxes inside the plane."""
    rng = np.random.default_rng(11)
    return [
        Box(int(rng.integers(0, width - side)), int(rng.integers(0, height - side)), side, side) for _ in range(READS)
    ]


def plain(handle: openslide.OpenSlide, level: int, side_px: int) -> Read:
    """Return the usual loop body: `read_region`, then RGB; without a tile cache, which real slides outgrow."""
    handle.set_cache(openslide.OpenSlideCache(0))

    def read(box: Box) -> NDArray[np.uint8]:
        image = handle.read_region((int(box.x), int(box.y)), level, (side_px, side_px))
        return np.asarray(image.convert("RGB"))

    return read


@pytest.mark.parametrize("name", SLIDES)
def test_native_reads(shared: Path, name: str) -> None:
    path = shared / "slides" / name
    with open_slide(path) as slide, openslide.OpenSlide(path) as handle:
        boxes = boxes_of(slide.width, slide.height, 512)
        for threads in THREADS:
            mine = seconds(lambda box: slide.read(box, max_side_px=512), boxes, threads)
            theirs = seconds(plain(handle, 0, 512), boxes, threads)
            say(f"{name}: level 0, 512 px, {threads} threads: {theirs / mine:.1f} x OpenSlide's speed")


@pytest.mark.parametrize("name", SLIDES)
def test_level_reads(shared: Path, name: str) -> None:
    path = shared / "slides" / name
    with open_slide(path) as slide, openslide.OpenSlide(path) as handle:
        side = round(256 * max(slide.level_downsamples[1]))
        boxes = boxes_of(slide.width, slide.height, side)
        for threads in THREADS:
            mine = seconds(lambda box: slide.read(box, max_side_px=256), boxes, threads)
            theirs = seconds(plain(handle, 1, 256), boxes, threads)
            say(f"{name}: level 1, 256 px, {threads} threads: {theirs / mine:.1f} x OpenSlide's speed")
        ratios = [
            _sharpness(slide.read(box, max_side_px=256)) / _sharpness(plain(handle, 1, 256)(box)) for box in boxes
        ]
        say(f"{name}: level 1: {np.median(ratios):.2f} x the sharpness of OpenSlide's own read")


def _sharpness(rgb: NDArray[np.uint8]) -> float:
    """Return the mean length of the grey gradient."""
    down, across = np.gradient(rgb.mean(2))
    return float(np.hypot(across, down).mean())
