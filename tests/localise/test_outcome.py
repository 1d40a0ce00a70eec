"""The scored box: the target's size, where the report says, inside the slide."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pathnav.cohort.query import Query
from pathnav.geometry import Box, iou
from pathnav.localise import final_box, final_boxes

WHOLE = Box(0, 0, 4000, 3000)
OFFSET = Box(2304, 1792, 2048, 2816)
side = st.floats(1, 3000, allow_nan=False)
place = st.floats(-5000, 5000, allow_nan=False)


def query(region: Box = WHOLE, width: float = 400, height: float = 300) -> Query:
    return Query("slide-0", 10.0, "a finding", region, width, height, 7)


def test_a_report_of_the_target_scores_one_whatever_size_was_reported() -> None:
    target = Box(700, 800, 400, 300)
    assert iou(final_box(target, query(), WHOLE), target) == 1.0
    assert iou(final_box(Box(890, 940, 20, 20), query(), WHOLE), target) == 1.0


def test_a_centre_beyond_the_search_region_is_clamped_into_it() -> None:
    asked = query(region=Box(1000, 1000, 1000, 1000))
    assert final_box(Box(0, 1200, 1100, 100), asked, WHOLE).centre == (1000, 1250)


def test_a_box_at_the_edge_is_shifted_into_the_slide_and_keeps_its_size() -> None:
    assert final_box(Box(0, 0, 10, 10), query(), WHOLE) == Box(0, 0, 400, 300)
    assert final_box(Box(3990, 2990, 10, 10), query(), WHOLE) == Box(3600, 2700, 400, 300)
    asked = query(region=OFFSET, width=500, height=600)
    assert final_box(Box(2300, 1700, 10, 200), asked, OFFSET) == Box(2304, 1792, 500, 600)
    assert final_box(Box(3000, 3000, 100, 100), asked, OFFSET).centre == (3050, 3050)


def test_a_target_larger_than_the_slide_is_cut_per_side() -> None:
    assert final_box(Box(5, 5, 10, 10), query(width=5000, height=300), WHOLE) == Box(0, 0, 4000, 300)


def test_many_boxes_are_treated_as_one_at_a_time() -> None:
    rows = np.random.default_rng(1).uniform(-500, 4500, (50, 4))
    rows[:, 2:] = np.abs(rows[:, 2:]) + 1
    many = final_boxes(rows, query(), WHOLE)
    for row, found in zip(rows, many, strict=True):
        assert (
            final_box(Box.from_list(row.tolist()), query(), WHOLE).as_list() == Box.from_list(found.tolist()).as_list()
        )


@given(st.sampled_from([WHOLE, OFFSET]), place, place, side, side, side, side)
def test_final_boxes_lie_in_a_scanned_area_anywhere_with_the_targets_size(
    whole: Box, x: float, y: float, w: float, h: float, target_w: float, target_h: float
) -> None:
    box = final_box(Box(x, y, w, h), query(whole, target_w, target_h), whole)
    assert box.x >= whole.x and box.y >= whole.y
    assert box.right <= whole.right + 1e-9 and box.bottom <= whole.bottom + 1e-9
    assert (box.width, box.height) == (min(target_w, whole.width), min(target_h, whole.height))
