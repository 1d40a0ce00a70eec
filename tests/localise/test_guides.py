"""Axis guides: round numbers, at the right place, in a colour no stain has."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pathnav.geometry import Box
from pathnav.localise.views import GUIDE_COLOUR, draw_guides, round_step, round_ticks


@pytest.mark.parametrize(
    ("span", "most", "step"),
    [(1000, 10, 100), (1001, 10, 200), (99, 10, 10), (3, 10, 1), (20000, 9, 5000), (7e6, 5, 2000000)],
)
def test_steps_are_one_two_or_five_times_a_power_of_ten(span: float, most: float, step: int) -> None:
    assert round_step(span, most) == step


@given(st.integers(0, 200_000), st.integers(1, 200_000), st.integers(64, 1024))
def test_every_axis_has_a_tick_inside_the_box(start: int, span: int, length_px: int) -> None:
    ticks = round_ticks(start, span, length_px, 110.0)
    assert ticks
    assert all(start <= tick < start + span for tick in ticks)
    assert len(ticks) <= 2 * max(length_px / 110.0, 1) + 4
    assert len({b - a for a, b in itertools.pairwise(ticks)}) <= 1


def test_ticks_stand_at_the_level_0_coordinates_they_name() -> None:
    box = Box(10_100, 20_000, 2_000, 1_000)
    drawn = draw_guides(np.full((500, 1000, 3), 200, np.uint8), box)
    top_edge = np.flatnonzero((drawn[2] == GUIDE_COLOUR).all(axis=1))
    named = [(tick - box.x) / 2 for tick in round_ticks(box.x, box.width, 1000, 110.0)]
    assert np.abs(top_edge - np.round(named)).max() <= 1
    left_edge = np.flatnonzero((drawn[:, 2] == GUIDE_COLOUR).all(axis=1))
    assert {0, 100, 200, 300, 400} <= set(left_edge.tolist())


def test_guides_leave_the_inside_of_the_picture_alone() -> None:
    pixels = np.random.default_rng(0).integers(0, 255, (700, 900, 3), np.uint8)
    drawn = draw_guides(pixels, Box(0, 0, 9000, 7000))
    assert (drawn[40:-12, 60:-12] == pixels[40:-12, 60:-12]).all()
    assert not np.shares_memory(drawn, pixels)
