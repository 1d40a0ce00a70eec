"""The baselines as agents: on a slide whose tissue is known, through the environment that any agent gets."""

from collections.abc import Iterator

import numpy as np
import pytest
from pathnav_baselines.windows import weighted_windows

from pathnav.cohort.protocol import RANDOM_DRAWS
from pathnav.cohort.query import Query
from pathnav.errors import BudgetExhausted
from pathnav.geometry import Box
from pathnav.localise import Environment, Report
from pathnav.plugins import Kind, load
from pathnav.slide import Slide, open_slide
from support.blot_slide import write_blot_slide

REGION = Box(256, 128, 1024, 768)
BLOT = Box(768, 512, 256, 256)
TARGET_WIDTH, TARGET_HEIGHT = 128, 64
BASELINES = ("random", "grid-centroid", "tissue-density", "tissue-weighted", "parent-centre")


@pytest.fixture(scope="module")
def slide(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Slide]:
    path = write_blot_slide(tmp_path_factory.mktemp("blot") / "blot.tiff", 1536, 1024, [BLOT])
    with open_slide(path, mpp=0.5) as opened:
        yield opened


@pytest.fixture(scope="module")
def bare_slide(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Slide]:
    path = write_blot_slide(tmp_path_factory.mktemp("bare") / "bare.tiff", 1536, 1024, [])
    with open_slide(path, mpp=0.5) as opened:
        yield opened


def query(region: Box = REGION) -> Query:
    return Query("slide-000000", 10.0, "anything", region, TARGET_WIDTH, TARGET_HEIGHT, budget=7)


def environment_of(slide: Slide, name: str, seed: int = 0) -> Environment:
    """Return the environment after the agent has run in it."""
    plugin = load(Kind.AGENT, name)
    environment = Environment(slide, query(), seed=seed, unbudgeted=getattr(plugin.cls, "unbudgeted", False))
    plugin.create().run(environment)
    return environment


def report_of(slide: Slide, name: str, seed: int = 0) -> Report:
    made = environment_of(slide, name, seed).report_made
    assert made is not None
    return made


@pytest.mark.parametrize("name", BASELINES)
def test_a_baseline_reports_boxes_of_the_targets_size_centred_in_the_region(slide: Slide, name: str) -> None:
    made = report_of(slide, name)
    boxes = np.array([made.box.as_list()]) if made.draws is None else made.draws
    assert np.allclose(boxes[:, 2:], [TARGET_WIDTH, TARGET_HEIGHT])
    assert all(REGION.holds_point(Box.from_list(box).centre) for box in boxes.tolist())


@pytest.mark.parametrize("name", BASELINES)
def test_a_baseline_spends_no_roi_and_says_whether_it_surveys(slide: Slide, name: str) -> None:
    environment = environment_of(slide, name)
    assert environment.rois_used == 0
    surveyed_mm2 = slide.area_mm2(REGION.area) if name not in ("random", "parent-centre") else 0.0
    assert environment.examined_mm2 == pytest.approx(surveyed_mm2)


@pytest.mark.parametrize("name", ["grid-centroid", "tissue-density", "tissue-weighted"])
def test_a_survey_that_was_not_granted_is_refused(slide: Slide, name: str) -> None:
    with pytest.raises(BudgetExhausted, match="unbudgeted"):
        load(Kind.AGENT, name).create().run(Environment(slide, query()))


@pytest.mark.parametrize("name", BASELINES)
def test_a_baseline_repeats_itself_under_a_seed(slide: Slide, name: str) -> None:
    first, again = report_of(slide, name, seed=3), report_of(slide, name, seed=3)
    assert first.box == again.box
    assert (first.draws is None) == (again.draws is None)
    if first.draws is not None and again.draws is not None:
        assert (first.draws == again.draws).all()


def test_random_declares_a_thousand_even_draws_that_fill_the_region(slide: Slide) -> None:
    made = report_of(slide, "random")
    assert made.draws is not None
    assert made.weights is not None
    assert made.draws.shape == (RANDOM_DRAWS, 4)
    assert np.allclose(made.weights, 1 / RANDOM_DRAWS)
    centres = made.draws[:, :2] + made.draws[:, 2:] / 2
    in_thirds = ((centres - [REGION.x, REGION.y]) / [REGION.width, REGION.height] * 3).astype(int)
    _, counts = np.unique(in_thirds, axis=0, return_counts=True)
    # 1,000 draws over 9 cells: 111 each, standard deviation 10
    assert len(counts) == 9
    assert counts.min() > 60
    assert counts.max() < 160


def test_random_differs_between_seeds(slide: Slide) -> None:
    first, second = report_of(slide, "random", seed=1).draws, report_of(slide, "random", seed=2).draws
    assert first is not None
    assert second is not None
    assert not (first[:, :2] == second[:, :2]).any()


def test_parent_centre_is_the_centre_of_the_region(slide: Slide) -> None:
    assert report_of(slide, "parent-centre").box == Box.centred(REGION.centre, TARGET_WIDTH, TARGET_HEIGHT)


def test_grid_centroid_takes_the_cell_at_the_middle_of_the_tissue(slide: Slide) -> None:
    cell = report_of(slide, "grid-centroid").box
    assert (cell.x - REGION.x) % TARGET_WIDTH == (cell.y - REGION.y) % TARGET_HEIGHT == 0
    away = np.abs(np.subtract(cell.centre, BLOT.centre))
    assert away[0] <= TARGET_WIDTH / 2 + 2
    assert away[1] <= TARGET_HEIGHT / 2 + 2


def test_tissue_density_finds_a_window_full_of_tissue(slide: Slide) -> None:
    grown = Box.centred(BLOT.centre, BLOT.width + 8, BLOT.height + 8)  # the mask's edge may lie a cell or two outside
    assert all(grown.holds(report_of(slide, "tissue-density", seed=seed).box) for seed in range(2))


def test_tissue_weighted_declares_the_windows_that_touch_tissue(slide: Slide) -> None:
    made = report_of(slide, "tissue-weighted")
    boxes, weights = weighted_windows(slide.tissue_mask(REGION), TARGET_WIDTH, TARGET_HEIGHT)
    assert made.draws is not None
    assert made.weights is not None
    assert (made.draws == boxes).all()
    assert np.allclose(made.weights, weights)


def test_without_tissue_grid_centroid_takes_the_middle(bare_slide: Slide) -> None:
    assert report_of(bare_slide, "grid-centroid").box == Box.centred(REGION.centre, TARGET_WIDTH, TARGET_HEIGHT)


def test_without_tissue_all_windows_are_equal(bare_slide: Slide) -> None:
    made = report_of(bare_slide, "tissue-weighted")
    assert made.draws is not None
    assert made.weights is not None
    assert np.allclose(made.weights, 1 / len(made.draws))
    assert len({tuple(report_of(bare_slide, "tissue-density", seed=seed).box.as_list()) for seed in range(2)}) == 2
