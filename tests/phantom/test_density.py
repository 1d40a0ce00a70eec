"""Nuclear density alone must neither fail nor solve a phantom: its AUROC for tumour tiles is 0.75 to 0.95.

A tile is shown at 10x and positive if more than 5 % of its area is tumour (docs/protocol.md, section 3). Nuclear
density is the share of its pixels whose haematoxylin, unmixed from the colour, exceeds Otsu's threshold over the tissue
of the slide.
"""

from pathlib import Path

import numpy as np
import openslide
import pytest
import shapely
from numpy.typing import NDArray
from scipy.stats import mannwhitneyu
from skimage.filters import threshold_otsu

from pathnav.phantom import PhantomFiles
from support.phantoms import annotated, phantom

# Haematoxylin, eosin and residual after Ruifrok and Johnston (2001), as red, green and blue optical density.
STAINS = np.array([[0.65, 0.70, 0.29], [0.07, 0.99, 0.11], [0.27, 0.57, 0.78]])
LIGHT = 245  # of glass


def tile_scores(files: PhantomFiles, tile_px: int) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Return nuclear density and truth of the tiles of `tile_px` pixels at 10x that hold 1 % tissue."""
    with openslide.OpenSlide(files.slide) as slide:
        rgb = np.asarray(slide.read_region((0, 0), 1, slide.level_dimensions[1]).convert("RGB"), dtype=float)
    unmixing = np.linalg.inv(STAINS / np.linalg.norm(STAINS, axis=1, keepdims=True))
    haematoxylin = -np.log10((rgb + 1) / LIGHT) @ unmixing[:, 0]
    tissue = rgb.mean(axis=2) < 230
    dark = haematoxylin > threshold_otsu(haematoxylin[tissue])
    tumour = annotated(files, "tumor")
    scores, positive = [], []
    for top in range(0, rgb.shape[0], tile_px):
        for left in range(0, rgb.shape[1], tile_px):
            tile = (slice(top, top + tile_px), slice(left, left + tile_px))
            if tissue[tile].mean() >= 0.01:
                box = shapely.box(4 * left, 4 * top, 4 * (left + tile_px), 4 * (top + tile_px))
                scores.append(float(dark[tile].mean()))
                positive.append(tumour.intersection(box).area > 0.05 * box.area)
    return np.array(scores), np.array(positive)


def auroc(scores: NDArray[np.float64], positive: NDArray[np.bool_]) -> float:
    wins = mannwhitneyu(scores[positive], scores[~positive]).statistic
    return float(wins / (positive.sum() * (~positive).sum()))


def check(files: PhantomFiles, tile_px: int) -> None:
    scores, positive = tile_scores(files, tile_px)
    assert positive.sum() >= 40
    assert 0.75 <= auroc(scores, positive) <= 0.95


@pytest.mark.parametrize("seed", [1, 2, pytest.param(3, marks=pytest.mark.slow)])
def test_nuclear_density_alone_finds_tumour_tiles_but_not_too_well(seed: int, phantom_folder: Path) -> None:
    check(phantom(phantom_folder, seed, 4096), tile_px=64)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_the_same_holds_on_slides_of_the_quickstart(seed: int, phantom_folder: Path) -> None:
    check(phantom(phantom_folder, seed, 8192), tile_px=128)
