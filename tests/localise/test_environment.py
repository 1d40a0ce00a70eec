"""The environment: it alone reads, counts, refuses and takes the report."""

import io
import math
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

from pathnav.cohort.protocol import max_steps
from pathnav.cohort.query import Query
from pathnav.errors import BudgetExhausted, ConfigError, RoiError
from pathnav.geometry import Box
from pathnav.localise import Environment, MemoryRecorder, ViewSettings
from pathnav.localise.coordinates import Coordinates, Shown
from pathnav.model import ChatClient, ChatSettings, image_part, text_part
from pathnav.slide import Slide
from support.chat_server import ChatServer, say

INSIDE = Box(100, 200, 300, 200)


@pytest.fixture
def environment(slide: Slide, query: Query) -> Environment:
    return Environment(slide, query)


def test_a_look_costs_one_roi_and_says_what_it_shows(environment: Environment) -> None:
    view = environment.extract_roi(INSIDE, "dark")
    assert (environment.rois_used, environment.rois_left) == (1, 2)
    assert view.box == INSIDE
    assert view.rgb.shape == (200, 300, 3)
    assert view.magnification == pytest.approx(40)
    assert environment.rois[0].reason == "dark"
    assert not environment.rois[0].cut


@pytest.mark.parametrize(
    "box",
    [
        Box(1100, 0, 50, 50),
        Box(0, 0, 0, 10),
        Box(0, 0, 0.5, 10),
        Box(-50, -50, 50, 50),
        Box(1024, 0, 9, 9),
        Box(1023.9, 0, 50, 50),
        Box(-99, 0, 99.5, 50),
    ],
)
def test_a_refused_roi_costs_nothing_and_tells_the_legal_range(environment: Environment, box: Box) -> None:
    with pytest.raises(RoiError, match=r"x from 0 to 1024, y from 0 to 1024"):
        environment.extract_roi(box)
    assert environment.rois_used == 0


@pytest.mark.parametrize("numbers", [[1, 2, 3], [0, 0, -5, 5], [math.nan, 0, 5, 5], [0, 0, math.inf, 5], [0, 0, 0, 5]])
def test_numbers_that_are_no_box_are_refused_with_the_legal_range(
    environment: Environment, numbers: list[float]
) -> None:
    with pytest.raises(RoiError, match="search region"):
        environment.box(numbers)


def test_a_roi_across_the_edge_is_cut_to_the_search_region_and_marked(environment: Environment) -> None:
    view = environment.extract_roi(Box(900.5, 900.5, 500, 500))
    assert view.box == Box(900, 900, 124, 124)
    assert environment.rois[0].cut


def test_the_budget_is_the_end_of_looking(environment: Environment) -> None:
    for _ in range(3):
        environment.extract_roi(INSIDE)
    with pytest.raises(BudgetExhausted, match="3 ROIs"):
        environment.extract_roi(INSIDE)
    assert environment.rois_used == 3
    environment.report(INSIDE)


def test_overview_is_free_and_shows_the_search_region(environment: Environment) -> None:
    assert environment.overview().box == environment.query.region
    assert environment.overview() is environment.overview()
    assert environment.rois_used == 0


def test_one_report_is_taken_and_nothing_comes_after_it(environment: Environment) -> None:
    environment.report(INSIDE, "there", 0.5)
    with pytest.raises(RoiError, match="one report"):
        environment.report(INSIDE)
    with pytest.raises(RoiError, match="ended"):
        environment.extract_roi(INSIDE)
    assert environment.report_made is not None
    assert environment.report_made.confidence == 0.5


@pytest.mark.parametrize("confidence", [1.5, -0.1, math.nan, None, "high", True])
def test_confidence_out_of_range_is_recorded_as_none(environment: Environment, confidence: float) -> None:
    environment.report(INSIDE, "", confidence)
    assert environment.report_made is not None
    assert environment.report_made.confidence is None


def test_a_report_that_misses_the_search_region_is_refused(environment: Environment) -> None:
    with pytest.raises(RoiError, match="not valid"):
        environment.report(Box(1500, 1500, 100, 100))
    assert not environment.finished


def test_survey_is_only_for_those_who_declare_it(slide: Slide, query: Query) -> None:
    with pytest.raises(BudgetExhausted, match="unbudgeted"):
        _ = Environment(slide, query).survey
    survey = Environment(slide, query, unbudgeted=True).survey
    assert survey.tissue_mask().region == query.region


def test_a_survey_shows_nothing_beyond_the_search_region(slide: Slide, query: Query) -> None:
    pixels = Environment(slide, query, unbudgeted=True).survey.read(Box(1000, 500, 48, 24), 40.0)
    assert (pixels[:, 24:] == 255).all()
    assert not (pixels[:, :24] == 255).all()


def test_draws_are_checked_and_their_weights_normalised(environment: Environment) -> None:
    with pytest.raises(RoiError, match="meets the region"):
        environment.report_draws(np.array([[3000.0, 0, 10, 10]]))
    with pytest.raises(RoiError, match="weights"):
        environment.report_draws(np.array([[0.0, 0, 10, 10]]), np.array([-1.0]))
    environment.report_draws(np.array([[0.0, 0, 10, 10], [5, 5, 10, 10]]), np.array([0.0, 4.0]))
    report = environment.report_made
    assert report is not None and report.weights is not None
    assert report.weights.tolist() == [0, 1]
    assert report.box == Box(5, 5, 10, 10)


def test_blank_images_are_white_whoever_looks(slide: Slide, query: Query) -> None:
    environment = Environment(slide, query, unbudgeted=True, views=ViewSettings(blank_images=True, guides=False))
    assert (environment.extract_roi(INSIDE).rgb == 255).all()
    assert (np.asarray(Image.open(io.BytesIO(environment.overview().jpeg))) == 255).all()
    assert (environment.survey.read(INSIDE, 10.0) == 255).all()
    assert environment.survey.tissue_mask().share == 0


def test_small_images_are_enlarged_by_a_whole_factor_and_slivers_padded(slide: Slide, query: Query) -> None:
    environment = Environment(slide, query, views=ViewSettings(guides=False))
    small = environment.extract_roi(Box(128, 128, 20, 30))
    assert (small.enlarged, small.image_size_px) == (4, (80, 120))
    sliver = environment.extract_roi(Box(0, 128, 1000, 2))
    assert (sliver.image_size_px, sliver.padded_size_px) == ((1000, 2), (1000, 64))
    assert sliver.rgb.shape == (2, 1000, 3)
    shown = Shown.of(1, sliver)
    caption = Coordinates().caption("ROI", shown, sliver, shown)
    assert caption.startswith("ROI: 1000 x 2 px (padded with white to 1000 x 64 px)")


def test_images_stay_within_the_limit_and_carry_no_metadata(slide: Slide, query: Query) -> None:
    environment = Environment(slide, query, views=ViewSettings(view_px=300))
    image = Image.open(io.BytesIO(environment.overview().jpeg))
    assert max(image.size) == 300
    assert "icc_profile" not in image.info and not image.getexif()


def test_rng_depends_on_seed_and_query_but_not_on_the_budget(slide: Slide, query: Query) -> None:
    draws = [Environment(slide, query, budget, seed=seed).rng.random() for budget, seed in ((1, 0), (9, 0), (1, 1))]
    assert draws[0] == draws[1] != draws[2]


def test_a_budget_below_one_is_refused(slide: Slide, query: Query) -> None:
    with pytest.raises(ConfigError, match="at least 1"):
        Environment(slide, query, 0)


def test_everything_that_happened_is_on_record_once(slide: Slide, query: Query) -> None:
    recorder = MemoryRecorder()
    environment = Environment(slide, query, recorder=recorder)
    view = environment.extract_roi(INSIDE, "why")
    environment.report(INSIDE)
    assert list(recorder.events) == ["roi:1", "report"]
    assert recorder.events["roi:1"]["box"] == INSIDE.as_list()
    assert recorder.load_image(view.sha256) == view.jpeg


def test_examined_area_is_the_union_of_the_looks(slide: Slide, query: Query) -> None:
    environment = Environment(slide, query)
    environment.extract_roi(Box(0, 0, 400, 400))
    environment.extract_roi(Box(200, 0, 400, 400))
    assert environment.examined_mm2 == pytest.approx(600 * 400 * 0.25**2 / 1e6)


def test_an_agent_cannot_grant_itself_more(environment: Environment) -> None:
    for name, value in (("budget", 99), ("query", None), ("steps", 0), ("report_made", None), ("rois_left", 9)):
        with pytest.raises(AttributeError):
            setattr(environment, name, value)
    assert not hasattr(environment, "restore")


def test_steps_are_limited_for_every_agent_but_a_report_is_always_taken(environment: Environment) -> None:
    for _ in range(max_steps(3)):
        environment.slide_facts()
    with pytest.raises(BudgetExhausted, match="15 steps"):
        environment.slide_facts()
    with pytest.raises(BudgetExhausted, match="15 steps"):
        environment.extract_roi(INSIDE)
    environment.report(INSIDE)


def test_whole_numbers_seed_alike_however_they_are_written(slide: Slide, query: Query) -> None:
    written = [replace(query, target_width=size, magnification=m) for size, m in ((512, 40), (512.0, 40.0))]
    first, second = (Environment(slide, one).rng.random() for one in written)
    assert first == second


def test_what_an_agent_asks_a_model_by_itself_is_on_record(slide: Slide, query: Query) -> None:
    recorder = MemoryRecorder()
    with (
        ChatServer([say("yes")]) as server,
        ChatClient(ChatSettings(base_url=server.base_url, model="canned")) as client,
    ):
        environment = Environment(slide, query, recorder=recorder, chat=client)
        view = environment.overview()
        assert environment.chat is not None
        question = {"role": "user", "content": [text_part("dark?"), image_part(view.jpeg)]}
        assert environment.chat.ask([question]).text == "yes"
    asked, replied = recorder.events["request:chat:0"], recorder.events["reply:chat:0"]
    assert asked["messages_added"][0]["content"][1] == {"image": view.sha256}
    assert (replied["images_sent"], replied["pixels_sent"]) == (1, 1024 * 1024)
    assert replied["tokens"] == {"input": 11, "output": 7}
