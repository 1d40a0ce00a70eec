"""A small real slide file for the tests of Mode A."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import tifffile

from pathnav.cohort.query import Query
from pathnav.geometry import Box
from pathnav.slide import Slide, open_slide

SIDE_PX = 2048


def tissue_pixels(side_px: int = SIDE_PX, seed: int = 3) -> np.ndarray:
    """Return pink-to-purple blocks of 64 px, each block its own shade."""
    shades = np.random.default_rng(seed).integers(0, 90, (side_px // 64, side_px // 64, 3))
    blocks = np.array([230, 170, 200]) - shades
    return np.repeat(np.repeat(blocks, 64, axis=0), 64, axis=1).astype(np.uint8)


@pytest.fixture(scope="session")
def slide_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a tiled JPEG pyramid of two levels."""
    path = tmp_path_factory.mktemp("slide") / "blocks.tiff"
    pixels = tissue_pixels()
    with tifffile.TiffWriter(path) as writer:
        for step in (1, 4):
            level = pixels[::step, ::step]
            kind = 0 if step == 1 else 1
            writer.write(level, tile=(256, 256), compression="jpeg", photometric="rgb", subfiletype=kind, metadata=None)
    return path


@pytest.fixture
def slide(slide_path: Path) -> Iterator[Slide]:
    """Open the slide at 40x."""
    with open_slide(slide_path, mpp=0.25) as opened:
        yield opened


@pytest.fixture
def query() -> Query:
    """Ask for a region of 512 px within a quarter of the slide."""
    return Query("slide-abc", 40.0, "a dark block", Box(0, 0, 1024, 1024), 512, 512, 3, "breast")
