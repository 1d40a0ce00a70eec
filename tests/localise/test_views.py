"""Images as a model is sent them: enlarged, in true colours, with ticks at round numbers in a colour no stain has."""

import io
import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from pathnav.errors import ConfigError
from pathnav.geometry import Box
from pathnav.localise import ViewSettings
from pathnav.localise.views import GUIDE_COLOUR, draw_guides, encode_jpeg, round_ticks, whole_factor


@given(st.integers(1, 1024), st.integers(1, 1024))
def test_enlargement_brings_the_short_side_to_64_px_as_far_as_the_limit_allows(width_px: int, height_px: int) -> None:
    factor = whole_factor(width_px, height_px, 1024)
    assert factor >= 1 and factor * max(width_px, height_px) <= 1024
    if min(width_px, height_px) >= 64:
        assert factor == 1
    elif factor * min(width_px, height_px) < 64:
        assert (factor + 1) * max(width_px, height_px) > 1024


def test_colours_survive_the_jpeg_at_full_resolution() -> None:
    stripes = np.zeros((64, 64, 3), np.uint8)
    stripes[:, ::4] = (0, 140, 0)
    stripes[:, 1::4] = stripes[:, 2::4] = stripes[:, 3::4] = (230, 170, 200)
    decoded = np.asarray(Image.open(io.BytesIO(encode_jpeg(stripes, 90)))).astype(int)
    assert np.abs(decoded - stripes).mean() < 6


@pytest.mark.parametrize("bad", [{"view_px": 10}, {"jpeg_quality": 0}, {"jpeg_quality": 101}])
def test_settings_that_cannot_be_shown_are_refused(bad: dict[str, int]) -> None:
    with pytest.raises(ConfigError):
        ViewSettings(**bad)


@given(st.integers(0, 200_000), st.integers(1, 200_000), st.integers(64, 1024))
def test_every_axis_has_ticks_at_even_round_steps_inside_the_box(start: int, span: int, length_px: int) -> None:
    ticks = round_ticks(start, span, length_px, 110.0)
    assert 1 <= len(ticks) <= 2 * max(length_px / 110.0, 1) + 4
    assert all(start <= tick < start + span for tick in ticks)
    steps = {b - a for a, b in itertools.pairwise(ticks)}
    assert len(steps) <= 1 and all(str(step).rstrip("0") in ("1", "2", "5") for step in steps)


def test_ticks_stand_at_the_level_0_coordinates_they_name_and_leave_the_inside_alone() -> None:
    box, pixels = Box(10_100, 20_000, 2_000, 1_000), np.full((500, 1000, 3), 200, np.uint8)
    drawn = draw_guides(pixels, box)
    top_edge = np.flatnonzero((drawn[2] == GUIDE_COLOUR).all(axis=1))
    named = [(tick - box.x) / 2 for tick in round_ticks(box.x, box.width, 1000, 110.0)]
    assert np.abs(top_edge - np.round(named)).max() <= 1
    left_edge = np.flatnonzero((drawn[:, 2] == GUIDE_COLOUR).all(axis=1))
    assert {0, 100, 200, 300, 400} <= set(left_edge.tolist())
    assert (drawn[40:-12, 60:-12] == 200).all() and (pixels == 200).all()
