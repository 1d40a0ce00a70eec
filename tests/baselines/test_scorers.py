"""The scorers without a model, on tiles whose content is known."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from pathnav_baselines.nuclear_density_scorer import haematoxylin
from skimage.color import rgb2hed

from pathnav.errors import SlideError
from pathnav.explore import Scorer, Source, TileImage, TileScore, TileTree
from pathnav.geometry import Box
from pathnav.plugins import Kind, load, names
from pathnav.slide import TissueMask, TissueStatus, open_slide
from support.blot_slide import write_blot_slide

BLUE = (90, 70, 150)
BLOT = Box(512, 256, 500, 500)


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TileTree]:
    path = write_blot_slide(tmp_path_factory.mktemp("blot") / "blot.tiff", 1536, 1000, [BLOT])
    with open_slide(path, mpp=0.25) as slide:
        yield TileTree(slide, 64)


def scorer(name: str) -> Scorer:
    found = load(Kind.SCORER, name).create()
    assert isinstance(found, Scorer)
    return found


def images(tree: TileTree, level: int) -> list[TileImage]:
    return list(tree.images(level, np.arange(tree.count(level))))


def confidences(scores: list[TileScore]) -> list[float]:
    return [score.confidence for score in scores if score.confidence is not None]


def test_the_shipped_scorers_are_found_by_name() -> None:
    assert {"oracle", "random", "tissue-density", "nuclear-density"} <= set(names(Kind.SCORER))


@pytest.mark.parametrize("name", ["random", "tissue-density", "nuclear-density"])
def test_a_scorer_without_a_model_says_yes_to_every_tile(tree: TileTree, name: str) -> None:
    scores = list(scorer(name).score(images(tree, 1)))
    assert all(score.yes is True for score in scores)
    assert {score.source for score in scores} == {Source.COMPUTED}
    assert len(confidences(scores)) == tree.count(1)


def test_random_draws_evenly_and_by_seed_alone(tree: TileTree) -> None:
    tiles = images(tree, 2)
    draws = {
        seed: confidences(list(load(Kind.SCORER, "random").create({"seed": seed}).score(tiles))) for seed in (0, 1)
    }
    counts, _ = np.histogram(draws[0], bins=4, range=(0, 1))
    # 384 tiles over 4 bins: 96 each, standard deviation 8.5
    assert abs(counts - len(tiles) / 4).max() < 40
    assert draws[0] != draws[1]
    assert draws[0][::-1] == confidences(list(scorer("random").score(tiles[::-1])))


def test_tissue_density_is_the_tiles_tissue_share(tree: TileTree) -> None:
    for level in range(3):
        found = confidences(list(scorer("tissue-density").score(images(tree, level))))
        assert found == tree.tissue(level).tolist()


def test_tissue_density_refuses_a_slide_without_a_mask(tmp_path: Path) -> None:
    with open_slide(write_blot_slide(tmp_path / "a.tiff", 512, 512, []), mpp=0.25) as slide:
        mask = TissueMask(slide.bounds, np.zeros((4, 4), bool), TissueStatus.NOT_BRIGHTFIELD)
        with pytest.raises(SlideError, match="brightfield"):
            list(scorer("tissue-density").score(images(TileTree(slide, 64, mask=mask), 1)))


def test_haematoxylin_is_that_of_skimages_colour_deconvolution() -> None:
    rgb = np.random.default_rng(0).integers(1, 256, (40, 50, 3), dtype=np.uint8)
    theirs = rgb2hed(rgb)[..., 0] * 6  # in units of -ln(1e-6) / ln(10)
    ours = haematoxylin(rgb)
    assert np.allclose(np.clip(ours, 0, None), theirs * _norm(), atol=2e-3)


def _norm() -> float:
    """Return the length of skimage's haematoxylin vector: theirs are not of unit length."""
    return float(np.linalg.norm([0.65, 0.70, 0.29]))


def test_nuclear_density_prefers_blue_to_pink_and_glass_has_none(tree: TileTree) -> None:
    def flat(colour: tuple[int, int, int]) -> float:
        rgb = np.full((8, 8, 3), colour, np.uint8)
        return float(np.clip(haematoxylin(rgb), 0, 1).mean())

    assert flat((255, 255, 255)) == 0
    assert flat((240, 170, 200)) < 0.1 < flat(BLUE)


def test_the_white_beyond_the_slides_edge_does_not_dilute_a_tile(tree: TileTree) -> None:
    (last,) = tree.images(2, np.array([tree.count(2) - 1]))
    assert last.height_px < 64
    blue = np.full((64, 64, 3), 255, np.uint8)
    blue[: last.height_px, : last.width_px] = BLUE
    whole = replace(last, width_px=64, height_px=64, read=lambda: np.full((64, 64, 3), BLUE, np.uint8))
    cut = replace(last, read=lambda: blue)
    first, second = confidences(list(scorer("nuclear-density").score([whole, cut])))
    assert first == pytest.approx(second)
