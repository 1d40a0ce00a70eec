"""Reads below native resolution: the right level, at the right place, as sharp as the pyramid allows."""

import statistics
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from pathnav.geometry import Box
from pathnav.slide import Slide, open_slide
from pathnav.slide.openslide_reader import OpenSlideReader
from pathnav.slide.pixels import Window
from pathnav.slide.sampling import choose_level, level_downsamples
from support.coordinates import layout, offsets, write_pyramid

Floats = NDArray[np.float64]

SLIDES = ["svs-40x-3levels.svs", "virtual-hgsc-groundtruth.svs", "tiff-pyramid-0.5um.tif", "mirax-sparse-bounds.mrxs"]


def area_average(slide: Slide, box: Box, width_px: int, height_px: int) -> Floats:
    """Return the exact mean of level 0 over each pixel's area: grey, shape (height_px, width_px)."""
    native = slide.read(box, max_side_px=10**6).mean(2)

    def weights(pixels: int, wanted: int) -> Floats:
        edges = np.linspace(0, pixels, wanted + 1)
        cells = np.arange(pixels)
        overlap = np.minimum(edges[1:, None], cells + 1) - np.maximum(edges[:-1, None], cells)
        return np.clip(overlap, 0, None) / (pixels / wanted)

    return weights(native.shape[0], height_px) @ native @ weights(native.shape[1], width_px).T


def shift_px(shown: Floats, expected: Floats) -> tuple[float, float]:
    """Return by how many pixels an image is displaced, by least squares on the gradient."""
    inner = np.s_[4:-4, 4:-4]
    down, across = (part[inner].ravel() for part in np.gradient(expected))
    design = np.stack([across, down, np.ones(across.size)], 1)
    found = np.linalg.lstsq(design, (shown - expected)[inner].ravel(), rcond=None)[0]
    return -float(found[0]), -float(found[1])


def sharpness(grey: Floats) -> float:
    """Return the mean length of the gradient."""
    down, across = np.gradient(grey[3:-3, 3:-3])
    return float(np.hypot(across, down).mean())


@pytest.mark.parametrize(("magnification", "side", "allowed_px"), [(10, 1024, 0.5), (2.5, 2000, 1.0)])
@pytest.mark.parametrize("name", SLIDES)
def test_a_level_read_is_in_place_and_sharp(
    shared: Path, name: str, magnification: float, side: int, allowed_px: float
) -> None:
    rng = np.random.default_rng(3)
    ratios = []
    with open_slide(shared / "slides" / name) as slide:
        for _ in range(6):
            left = int(slide.bounds.x + rng.integers(0, slide.bounds.width - side))
            top = int(slide.bounds.y + rng.integers(0, slide.bounds.height - side))
            box = Box(left, top, side, side)
            found = slide.reading(box, magnification=magnification)
            expected = area_average(slide, box, found.rgb.shape[1], found.rgb.shape[0])
            if expected.std() < 6:  # blank glass has no place
                continue
            shown = found.rgb.mean(2)
            step = side / found.rgb.shape[1]
            assert max(abs(miss) * step for miss in shift_px(shown, expected)) <= allowed_px
            ratios.append(sharpness(shown) / sharpness(expected))
    assert len(ratios) >= 3 and min(ratios) >= 0.75 and statistics.mean(ratios) >= 0.8, ratios


def test_openslides_interpolation_is_placed_right_where_it_cannot_be_avoided(tmp_path: Path) -> None:
    path = write_pyramid(tmp_path / "pyramid.tif", layout(1777, 1403, (2,), "deflate"))
    reader = OpenSlideReader(str(path))
    with open_slide(path, reader="openslide") as slide:
        patch = reader.read(1, Window(500, 480, 200, 200))
        assert patch.shift != (0.0, 0.0)
        for left in range(960, 980):
            found = slide.reading(Box(left, left - 40, 400, 400), magnification=20)
            miss = offsets(found.rgb, found.box, 1777, 1403)
            assert found.level == 1 and abs(miss.x or 0) < 0.5 and abs(miss.y or 0) < 0.5
    reader.close()


@pytest.mark.parametrize("downsample", [2, 4, 4.003])
def test_openslide_copies_level_pixels_wherever_a_whole_one_is_near(tmp_path: Path, downsample: float) -> None:
    plan = layout(2000, 2000, (downsample,), "deflate")
    path = str(write_pyramid(tmp_path / "pyramid.tif", plan))
    reader = OpenSlideReader(path)
    whole = reader.read(1, Window(0, 0, *plan.dimensions[1])).rgb
    for left, top in ((5, 9), (100, 31), (201, 277)):
        patch = reader.read(1, Window(left, top, 100, 100))
        assert patch.shift == (0.0, 0.0)
        assert np.array_equal(patch.rgb, whole[top : top + 100, left : left + 100])
    reader.close()


def test_pixels_of_whole_level_pixels_are_their_mean(tmp_path: Path) -> None:
    path = write_pyramid(tmp_path / "pyramid.tif", layout(1777, 1403, (), "deflate"))
    with open_slide(path) as slide:
        for side in (2, 3, 5):
            box = Box(40, 60, 90 * side, 80 * side)
            found = slide.reading(box, magnification=40 / side)
            native = slide.read(box, magnification=40).astype(float)
            mean = native.reshape(80, side, 90, side, 3).mean((1, 3))
            assert found.rgb.shape == mean.shape and np.abs(found.rgb - mean).max() <= 0.56  # Pillow: 5/9 to 0


def test_a_level_within_two_percent_serves() -> None:
    ratios = level_downsamples(((4443, 3567), (1110, 891), (277, 222)))
    assert [choose_level(ratios, (step, step)) for step in (0.5, 1, 3.9, 3.97, 4, 15.7, 16, 100)] == [
        0, 0, 0, 1, 1, 1, 2, 2,
    ]  # fmt: skip


def test_no_level_coarser_than_the_target_is_read_on_either_axis() -> None:
    ratios = level_downsamples(((4000, 4000), (1000, 800)))
    assert ratios[1] == (4.0, 5.0)
    assert choose_level(ratios, (4, 4)) == 0
    assert choose_level(ratios, (5, 4.8)) == 0
    assert choose_level(ratios, (4, 5)) == 1
