"""Coordinates of a model's own: there and back within a pixel of the view, and nothing is guessed."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pathnav.errors import RoiError
from pathnav.geometry import Box
from pathnav.localise.coordinates import Coordinates, Shown
from pathnav.model.profile import BoxForm, Frame

WAYS = [Coordinates(frame, form) for frame in Frame for form in BoxForm]
SHOWN = Shown(2, Box(1000, 2000, 4000, 2000), 800, 400, 800, 400)


@st.composite
def looks(draw: st.DrawFn) -> tuple[Shown, Box]:
    """An image of a slide, and a box within it of at least three pixels."""
    width_px, height_px = draw(st.integers(64, 4096)), draw(st.integers(64, 4096))
    scale = draw(st.floats(0.25, 200))
    seen = Box(draw(st.integers(0, 10**6)), draw(st.integers(0, 10**6)), width_px * scale, height_px * scale)
    padded = (max(64, width_px + draw(st.integers(0, 30))), max(64, height_px + draw(st.integers(0, 30))))
    least = max(3.0, 3 / scale)
    wide, high = draw(st.floats(least, width_px)), draw(st.floats(least, height_px))
    left, top = draw(st.floats(0, width_px - wide)), draw(st.floats(0, height_px - high))
    box = Box(seen.x + left * scale, seen.y + top * scale, wide * scale, high * scale)
    return Shown(1, seen, width_px, height_px, *padded), box


@pytest.mark.parametrize("way", WAYS, ids=str)
@given(look=looks())
def test_a_box_comes_back_within_one_pixel_of_the_view(way: Coordinates, look: tuple[Shown, Box]) -> None:
    shown, box = look
    pixel = shown.box.width / shown.width_px
    back = way.to_level0(way.to_model(box, shown), shown)
    edges, truth = (back.x, back.y, back.right, back.bottom), (box.x, box.y, box.right, box.bottom)
    assert all(abs(ours - theirs) <= pixel * (1 + 1e-6) + 1e-5 for ours, theirs in zip(edges, truth, strict=True))


@pytest.mark.parametrize(
    ("frame", "form", "numbers"),
    [
        (Frame.LEVEL0, BoxForm.XYWH, [2000, 2500, 1000, 500]),
        (Frame.LEVEL0, BoxForm.XYXY, [2000, 2500, 3000, 3000]),
        (Frame.VIEW_PX, BoxForm.XYWH, [200, 100, 200, 100]),
        (Frame.VIEW_PX, BoxForm.XYXY, [200, 100, 400, 200]),
        (Frame.UNIT, BoxForm.XYXY, [0.25, 0.25, 0.5, 0.5]),
        (Frame.THOUSAND, BoxForm.XYXY, [250, 250, 500, 500]),
        (Frame.THOUSAND, BoxForm.XYWH, [250, 250, 250, 250]),
        (Frame.THOUSAND_YX, BoxForm.XYXY, [250, 250, 500, 500]),
    ],
)
def test_each_frame_counts_what_it_says(frame: Frame, form: BoxForm, numbers: list[float]) -> None:
    way, box = Coordinates(frame, form), Box(2000, 2500, 1000, 500)
    assert way.to_model(box, SHOWN) == numbers
    assert way.to_level0(numbers, SHOWN) == box


def test_y_comes_first_where_the_frame_says_so() -> None:
    way = Coordinates(Frame.THOUSAND_YX, BoxForm.XYXY)
    assert way.to_level0([0, 500, 500, 1000], SHOWN) == Box(3000, 2000, 2000, 1000)
    assert way.order == "[y1, x1, y2, x2]"


def test_shares_of_a_padded_image_count_its_padding() -> None:
    shown = Shown(1, Box(0, 0, 640, 320), 64, 32, 64, 64)
    assert Coordinates(Frame.UNIT, BoxForm.XYXY).to_level0([0, 0, 1, 0.5], shown) == Box(0, 0, 640, 320)


@pytest.mark.parametrize(
    ("way", "numbers", "said"),
    [
        (Coordinates(Frame.THOUSAND, BoxForm.XYXY), [500, 500, 400, 600], "x2 > x1"),
        (Coordinates(Frame.THOUSAND), [500, 500, -5, 5], "w > 0"),
        (Coordinates(Frame.UNIT), [200, 300, 50, 50], "x runs from 0 to 1"),
        (Coordinates(Frame.VIEW_PX), [900, 0, 50, 50], "x runs from 0 to 800"),
        (Coordinates(Frame.THOUSAND), [1, 2, 3], "four finite numbers"),
        (Coordinates(Frame.THOUSAND), [1, 2, 3, math.inf], "four finite numbers"),
        (Coordinates(Frame.UNIT), [0.5, 0.5, 1e-6, 1e-6], "smaller than one pixel"),
    ],
)
def test_a_box_in_another_frame_is_refused_with_the_range(way: Coordinates, numbers: list[float], said: str) -> None:
    with pytest.raises(RoiError, match=said):
        way.to_level0(numbers, SHOWN)
