"""The trajectory picture shows what it should, where it should, within its limit."""

import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image, ImageColor

from pathnav.cohort.query import Query
from pathnav.errors import RecordError
from pathnav.geometry import Box
from pathnav.report.canvas import BLUE, GREEN, YELLOW, font, scale_label, scale_length_um, text_extent, wrapped
from pathnav.report.labels import place_badges
from pathnav.report.picture import draw_episode, draw_trajectory
from pathnav.slide import Slide, open_slide
from support.blot_slide import write_blot_slide
from support.records import result, write_run

REGION = Box(200, 100, 1200, 900)


@pytest.fixture
def slide(tmp_path: Path) -> Slide:
    return open_slide(write_blot_slide(tmp_path / "s.tif", 3000, 2000, [Box(300, 300, 800, 600)]), mpp=0.5)


def query(region: Box = REGION, finding: str = "dense infiltrate") -> Query:
    return Query("slide-3fa9c1", 10, finding, region, 300, 300, 7)


def draw(slide: Slide, rois: list[Box], final: Box | None, **changes: Any) -> Image.Image:
    """Draw small, which is what most claims need."""
    return draw_trajectory(slide, query(), rois, final, max_side_px=700, **changes)


def pixels_of(picture: Image.Image, colour: str) -> int:
    return int((np.asarray(picture) == ImageColor.getrgb(colour)).all(axis=2).sum())


@pytest.mark.parametrize("side_px", [400, 900, 1600])
@pytest.mark.parametrize("region", [REGION, Box(0, 0, 3000, 2000), Box(0, 0, 3000, 60), Box(500, 0, 40, 2000)])
def test_the_long_side_stays_within_its_limit(slide: Slide, region: Box, side_px: int) -> None:
    picture = draw_trajectory(slide, query(region), [region], None, max_side_px=side_px)
    assert max(picture.size) <= side_px and picture.mode == "RGB"


def test_rois_answer_and_target_are_drawn_in_their_colours(slide: Slide) -> None:
    rois, final, target = [Box(300, 200, 400, 300)], Box(600, 400, 300, 300), Box(900, 500, 300, 300)
    whole = draw(slide, rois, final, target=target)
    assert all(pixels_of(whole, colour) > 200 for colour in (BLUE, YELLOW, GREEN))
    assert pixels_of(draw(slide, [], final, target=target), BLUE) == 0
    assert pixels_of(draw(slide, rois, None, target=target), YELLOW) == 0
    assert pixels_of(draw(slide, rois, final), GREEN) == 0


def test_a_reported_box_that_is_the_final_one_is_not_drawn_twice(slide: Slide) -> None:
    final = Box(600, 400, 300, 300)
    assert draw(slide, [], final, reported=final) == draw(slide, [], final)
    assert draw(slide, [], final, reported=Box(650, 450, 200, 200)) != draw(slide, [], final)


def test_a_small_region_gets_an_inset_with_the_whole_slide(slide: Slide) -> None:
    small = draw_trajectory(slide, query(), [], None)
    tissue = (170, 90, 160)
    column = np.asarray(small)[:, -400:]
    assert (abs(column.astype(int) - tissue) < 25).all(axis=2).sum() > 1000


def test_the_final_box_is_drawn_around_its_pixels(slide: Slide) -> None:
    blot = Box(300, 300, 800, 600)
    picture = np.asarray(draw_trajectory(slide, query(), [], blot))
    rows, columns = np.nonzero((picture == ImageColor.getrgb(YELLOW)).all(axis=2))
    rows, columns = rows[columns < 1150], columns[columns < 1150]  # left of the legend
    outside = [
        picture[rows.min() - 14, columns.mean().astype(int)],
        picture[rows.max() + 14, columns.mean().astype(int)],
    ]
    inside = [
        picture[rows.min() + 14, columns.mean().astype(int)],
        picture[rows.max() - 14, columns.mean().astype(int)],
    ]
    assert all(pixel[1] > 230 for pixel in outside) and all(pixel[1] < 150 for pixel in inside)


def test_drawing_is_deterministic(slide: Slide) -> None:
    rois = [Box(300 + 10 * i, 200, 100, 100) for i in range(20)]
    assert draw(slide, rois, None) == draw(slide, rois, None)


def test_real_slides_can_be_drawn(shared: Path) -> None:
    for name in ("CMU-1-Small-Region.svs", "mirax-sparse-bounds.mrxs"):
        with open_slide(shared / "slides" / name) as real:
            picture = draw_trajectory(real, query(real.bounds), [real.bounds], None, max_side_px=600)
            assert max(picture.size) <= 600


@pytest.fixture
def run_folder(tmp_path: Path, slide: Slide) -> Path:
    record = result(
        slide__path=slide.path,
        slide__fingerprint=slide.fingerprint,
        query__region=REGION.as_list(),
        rois=[[300, 200, 400, 300]],
        rois_used=1,
        box=[600, 400, 300, 300],
        target=[900, 500, 300, 300],
        scored_target=None,
        reported=[600, 400, 300, 300],
        model="qwen",
    )
    return write_run(tmp_path / "run", [record])


def test_a_recorded_episode_draws_as_it_did_live(run_folder: Path, slide: Slide) -> None:
    drawn = draw_episode(run_folder, "key000", max_side_px=700)
    live = draw_trajectory(
        slide,
        Query("slide-3fa9c1", 10, "dense inflammatory infiltrate", REGION, 1000, 1000, 7),
        [Box(300, 200, 400, 300)],
        Box(600, 400, 300, 300),
        target=Box(900, 500, 300, 300),
        title="s.tif, parent-centre (qwen)",
        max_side_px=700,
    )
    assert drawn == live


def test_the_target_is_drawn_where_it_was_scored(run_folder: Path, slide: Slide) -> None:
    path = run_folder / "episodes" / "key000" / "result.json"
    record = json.loads(path.read_text())
    drawn = []
    for target in ([2900, 500, 300, 300], [2700, 500, 300, 300]):
        path.write_text(json.dumps({**record, "target": target, "scored_target": [2700, 500, 300, 300]}))
        drawn.append(draw_episode(run_folder, "key000", max_side_px=700))
    assert drawn[0] == drawn[1]


def test_declared_draws_have_no_final_box_in_the_picture(run_folder: Path) -> None:
    path = run_folder / "episodes" / "key000" / "result.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "draws": 1000, "hit_share": 0.1}))
    assert pixels_of(draw_episode(run_folder, "key000", max_side_px=700), YELLOW) == 0


def test_another_slide_in_the_place_of_the_recorded_one_is_refused(run_folder: Path, tmp_path: Path) -> None:
    other = write_blot_slide(tmp_path / "other.tif", 3000, 2000, [])
    with pytest.raises(RecordError, match="is not the slide that the episode was about"):
        draw_episode(run_folder, "key000", slide_path=other)


def test_an_episode_that_is_not_there_is_refused(run_folder: Path) -> None:
    with pytest.raises(RecordError, match="has no finished episode 'key009'"):
        draw_episode(run_folder, "key009")


boxes = st.builds(Box, st.floats(0, 900), st.floats(0, 900), st.floats(1, 900), st.floats(1, 900))


@given(st.lists(boxes, max_size=25))
def test_badges_lie_inside_the_picture_and_never_on_each_other(found: list[Box]) -> None:
    frame = Box(0, 0, 1000, 1000)
    places = [badge.place for badge in place_badges(found, [(30, 24)] * len(found), frame)]
    assert all(frame.holds(place) for place in places)
    assert all(a.intersection(b).area < 1e-6 for a, b in itertools.combinations(places, 2))


def test_a_lone_badge_stands_on_the_top_left_corner_of_its_box() -> None:
    (badge,) = place_badges([Box(100, 100, 50, 50)], [(30, 24)], Box(0, 0, 500, 500))
    assert badge.place == Box(100, 76, 30, 24) and not badge.is_detached


def test_twenty_looks_at_one_small_box_are_told_apart_by_lines() -> None:
    badges = place_badges([Box(500, 500, 10, 10)] * 20, [(30, 24)] * 20, Box(0, 0, 1000, 1000))
    assert sum(badge.is_detached for badge in badges) >= 10


@pytest.mark.parametrize(("longest", "length"), [(100, 100), (99.9, 50), (49, 20), (19, 10), (1999, 1000), (0.3, 0.2)])
def test_scale_bars_have_round_lengths(longest: float, length: float) -> None:
    assert scale_length_um(longest) == pytest.approx(length)


def test_scale_labels_turn_to_mm_at_1000_um() -> None:
    assert [scale_label(500), scale_label(1000), scale_label(2000)] == ["500 µm", "1 mm", "2 mm"]


@given(st.text(st.characters(categories=["L", "Zs", "Po"]), max_size=300))
def test_wrapped_text_stays_within_its_width_or_breaks_into_short_lines(text: str) -> None:
    face = font(20)
    lines = wrapped(text, face, 400, 2)
    assert len(lines) <= 2
    assert all(text_extent(line, face)[0] <= 400 or len(line) <= 12 for line in lines)
