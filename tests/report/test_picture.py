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
from pathnav.report.picture import (
    BLUE,
    GREEN,
    YELLOW,
    badge_places,
    draw_episode,
    draw_trajectory,
    round_length,
    write_picture,
)
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
    """Draw a little smaller than by default."""
    return draw_trajectory(slide, query(), rois, final, max_side_px=1200, **changes)


def pixels_of(picture: Image.Image, colour: str) -> int:
    off = np.abs(np.asarray(picture).astype(int) - ImageColor.getrgb(colour))
    return int((off < 40).all(axis=2).sum())  # a line between two pixels is a little lighter


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


def test_a_reported_box_far_off_changes_nothing_beside_the_search_region(slide: Slide) -> None:
    far = draw(slide, [], REGION, reported=Box(-1e9, 300, 1e9 + 900, 300))
    near = draw(slide, [], REGION, reported=Box(500, 300, 400, 300))
    column = np.asarray(far).shape[1] - 300
    assert far.size == near.size
    assert (np.asarray(far)[:, column:] == np.asarray(near)[:, column:]).all()


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


def test_the_same_input_gives_the_same_bytes(slide: Slide, tmp_path: Path) -> None:
    rois = [Box(300 + 10 * i, 200, 100, 100) for i in range(20)]
    for name in ("a.png", "b.png"):
        write_picture(tmp_path / name, draw(slide, rois, None))
    assert (tmp_path / "a.png").read_bytes() == (tmp_path / "b.png").read_bytes()


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


def test_the_target_is_drawn_where_it_was_scored_and_declared_draws_have_no_final_box(run_folder: Path) -> None:
    path = run_folder / "episodes" / "key000" / "result.json"
    record = {**json.loads(path.read_text()), "scored_target": [2700, 500, 300, 300]}
    drawn = []
    for more in ({"target": [2900, 500, 300, 300]}, {"target": [2700, 500, 300, 300]}, {"draws": 9, "hit_share": 0.1}):
        path.write_text(json.dumps({**record, **more}))
        drawn.append(draw_episode(run_folder, "key000", max_side_px=700))
    assert drawn[0] == drawn[1]
    assert pixels_of(drawn[1], YELLOW) > 200 and pixels_of(drawn[2], YELLOW) == 0


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


def test_another_slide_in_the_place_of_the_recorded_one_is_refused(run_folder: Path, tmp_path: Path) -> None:
    other = write_blot_slide(tmp_path / "other.tif", 3000, 2000, [])
    with pytest.raises(RecordError, match="is not the slide that the episode was about"):
        draw_episode(run_folder, "key000", slide_path=other)


def test_an_episode_that_is_not_there_is_refused(run_folder: Path) -> None:
    with pytest.raises(RecordError, match="has no finished episode 'key009'"):
        draw_episode(run_folder, "key009")


boxes = st.builds(Box, st.floats(0, 900), st.floats(0, 900), st.floats(1, 900), st.floats(1, 900))


@given(st.lists(boxes, max_size=25))
def test_numbers_lie_inside_the_picture_and_never_on_each_other(found: list[Box]) -> None:
    frame = Box(0, 0, 1000, 1000)
    places = badge_places(found, 30, 24, frame)
    assert all(frame.holds(place) for place in places)
    assert all(a.intersection(b).area < 1e-6 for a, b in itertools.combinations(places, 2))


@pytest.mark.parametrize(("longest", "length"), [(101, 100), (99.9, 50), (49, 20), (19, 10), (1999, 1000), (0.3, 0.2)])
def test_scale_bars_have_round_lengths(longest: float, length: float) -> None:
    assert round_length(longest) == pytest.approx(length)


@pytest.mark.parametrize("finding", ["necrosis " * 200, "肿瘤 $x$ \\frac tumor_cells", "W" * 2000])
def test_any_finding_can_be_told_and_none_makes_the_picture_larger(slide: Slide, finding: str) -> None:
    picture = draw_trajectory(slide, query(finding=finding), [], None, max_side_px=400)
    assert max(picture.size) <= 400
    assert (np.asarray(picture)[:, -4:] == 255).all(), "nothing is cut at the right edge"
