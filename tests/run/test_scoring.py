"""Scores of one answer, against an arithmetic that shares no code with ours."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pathnav.cohort.query import Query, Target
from pathnav.geometry import Box
from pathnav.localise.outcome import Report
from pathnav.run.case import Case, SlideFacts, SlideSource
from pathnav.run.scoring import Score, score

WHOLE = Box(0, 0, 1000, 1000)
QUERY = Query("slide-1", 10.0, "tumour", Box(100, 100, 800, 800), 200, 200, budget=3)
TARGET = Target(Box(300, 300, 200, 200), (Box(300, 300, 200, 200), Box(600, 600, 200, 200)))


def pixel_iou(first: Box, second: Box) -> float:
    """Count pixels of two boxes with whole numbers."""
    masks = []
    for box in (first, second):
        mask = np.zeros((2000, 2000), dtype=bool)
        mask[int(box.y) : int(box.bottom), int(box.x) : int(box.right)] = True
        masks.append(mask)
    return float((masks[0] & masks[1]).sum() / (masks[0] | masks[1]).sum())


def test_a_box_is_scored_by_position_not_by_extent() -> None:
    found = score(Report(Box(390, 390, 20, 20)), QUERY, TARGET, WHOLE)
    assert found == Score(iou=1.0, iou_fallback=1.0, iou_any=1.0)


def test_the_iou_is_that_of_the_final_box() -> None:
    found = score(Report(Box(350, 340, 200, 200)), QUERY, TARGET, WHOLE)
    assert found.iou == pytest.approx(pixel_iou(Box(350, 340, 200, 200), TARGET.box))


def test_iou_any_is_the_best_over_nodes_with_the_same_words() -> None:
    found = score(Report(Box(600, 600, 200, 200)), QUERY, TARGET, WHOLE)
    assert (found.iou, found.iou_any) == (0.0, 1.0)


def test_no_report_scores_zero_and_falls_back_to_the_centre() -> None:
    centre = Box(400, 400, 200, 200)
    found = score(None, QUERY, TARGET, WHOLE)
    assert found == Score(iou=0.0, iou_fallback=pytest.approx(pixel_iou(centre, TARGET.box)), iou_any=0.0)


def test_draws_are_scored_by_their_expectation() -> None:
    draws = np.array([[300, 300, 200, 200], [400, 300, 200, 200], [700, 700, 200, 200]], dtype=np.float64)
    weights = np.array([0.5, 0.3, 0.2])
    each = [1.0, pixel_iou(Box(400, 300, 200, 200), TARGET.box), 0.0]
    report = Report(Box(300, 300, 200, 200), draws=draws, weights=weights)
    found = score(report, QUERY, TARGET, WHOLE)
    assert found.iou == pytest.approx(sum(w * iou for w, iou in zip(weights, each, strict=True)))
    assert found.hit_share == pytest.approx(0.8)
    assert found.iou_fallback == found.iou
    best = [1.0, each[1], pixel_iou(Box(700, 700, 200, 200), TARGET.equivalents[1])]
    assert found.iou_any == pytest.approx(sum(w * iou for w, iou in zip(weights, best, strict=True)))


def test_a_target_wider_than_the_slide_can_be_hit_exactly() -> None:
    target = Target(Box(0, 300, 1500, 200), cut=True)
    query = Query("slide-1", 2.5, "tumour", WHOLE, 1000, 200, budget=3)
    assert score(Report(target.box), query, target, WHOLE).iou == 1.0


def test_nothing_is_scored_where_nobody_knows_the_target() -> None:
    assert score(Report(Box(300, 300, 200, 200)), QUERY, None, WHOLE) == Score(None, None, None, None)


def clipped_iou(reported: Box, target: Box, region: Box, whole: Box) -> float:
    """Score one box by the words of the protocol, per side and with plain numbers, for boxes that fit the slide."""
    overlap = 1.0
    sides = [
        (reported.centre[0], target.x, target.width, region.x, region.right, whole.x, whole.right),
        (reported.centre[1], target.y, target.height, region.y, region.bottom, whole.y, whole.bottom),
    ]
    for centre, start, side, region_from, region_to, from_, to in sides:
        answer = min(max(min(max(centre, region_from), region_to) - side / 2, from_), to - side)
        truth = min(max(start, from_), to - side)
        overlap *= max(0.0, min(answer, truth) + side - max(answer, truth))
    return overlap / (2 * target.width * target.height - overlap)


offsets = st.integers(-3, 3).map(lambda n: n * 700)
positions = st.integers(-60, 460)


@given(x=offsets, y=offsets, truth=st.tuples(positions, positions), said=st.tuples(positions, positions))
def test_the_scanned_area_may_lie_anywhere_on_the_plane(
    x: int, y: int, truth: tuple[int, int], said: tuple[int, int]
) -> None:
    whole = Box(x, y, 500, 400)
    region = Box(x + 20, y + 30, 470, 360)
    target = Box(x + truth[0], y + truth[1], 90, 70)
    query = Query("slide-1", 10.0, "tumour", region, 90, 70, budget=3)
    report = Report(Box.centred((x + said[0], y + said[1]), 30, 20))
    case = Case(SlideSource("a.mrxs"), SlideFacts("f", (0.5, 0.5), "openslide", whole, False), query, Target(target))
    found = score(report, query, case.target, whole)
    assert found.iou == pytest.approx(clipped_iou(report.box, target, region, whole), abs=1e-9)
    assert case.scored_target is not None
    assert whole.holds(case.scored_target)
    assert (case.scored_target == target) == whole.holds(target)
