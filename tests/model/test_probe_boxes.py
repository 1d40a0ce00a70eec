"""In what coordinates a model answers is told from its boxes, or said to be undecided."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pathnav.model.probe_boxes import decide, four_numbers, level0_off
from pathnav.model.probe_pictures import BOARD_BOX, BOARD_PX, board_picture, number_picture
from pathnav.model.profile import Frame
from support.chat_server import Request
from support.eyes import find_square, read_number
from support.model_kinds import written

DECLARABLE = [(frame, form) for frame in ("view_px", "unit", "thousand", "thousand_yx") for form in ("xywh", "xyxy")]


def corners(box):
    return box.x, box.y, box.right, box.bottom


def answers_in(frame, form, seed=0, error_px=0.0):
    """Return a board and what a model with such coordinates says about it."""
    rng = np.random.default_rng(seed)
    board = board_picture(rng, ticks=False)
    said = {}
    for colour, box in board.squares.items():
        moved = tuple(edge + rng.normal(0, error_px) for edge in corners(box))
        said[colour] = four_numbers(written(moved, BOARD_PX, frame, form))
    return board, said


@pytest.mark.parametrize(("frame", "form"), DECLARABLE)
@settings(max_examples=25)
@given(seed=st.integers(0, 10_000))
def test_every_frame_and_form_is_told_apart_on_every_board(frame, form, seed) -> None:
    board, said = answers_in(frame, form, seed, error_px=4)
    decision = decide(said, board.squares, BOARD_PX)
    assert (decision.counting.frame, decision.counting.form) == (Frame(frame), form)


@pytest.mark.parametrize(("frame", "name"), [("px_yx", "pixels of the image, y"), ("percent", "hundredths")])
def test_a_frame_that_no_profile_has_is_named(frame, name) -> None:
    board, said = answers_in(frame, "xyxy")
    decision = decide(said, board.squares, BOARD_PX)
    assert decision.counting.frame is None
    assert decision.counting.name.startswith(name)


@settings(max_examples=25)
@given(seed=st.integers(0, 10_000))
def test_random_boxes_are_undecided(seed) -> None:
    rng = np.random.default_rng(seed)
    board = board_picture(rng, ticks=False)
    said = {colour: list(rng.uniform(0, 1000, 4)) for colour in board.squares}
    assert decide(said, board.squares, BOARD_PX).counting is None


def test_too_few_readable_boxes_are_undecided() -> None:
    board, said = answers_in("view_px", "xyxy")
    said |= {"red": None, "blue": None}
    decision = decide(said, board.squares, BOARD_PX)
    assert (decision.counting, decision.off, decision.read) == (None, None, 2)


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("[1, 2, 3, 4]", [1, 2, 3, 4]),
        ("red: (0.1, .2, 0.3, 4.)", [0.1, 0.2, 0.3, 4]),
        ("x1=5, y1=6, x2=70, y2=80", [5, 6, 70, 80]),
        ('{"bbox_2d": [10, 20, 30, 40], "label": "square 1"}', [10, 20, 30, 40]),
        ("1. The box is [10, 20, 30, 40].", [10, 20, 30, 40]),
        ("[1, 2], [3, 4]", [1, 2, 3, 4]),
        ("draft [1,2,3,4], no: [5,6,7,8]", [5, 6, 7, 8]),
        ("10 20 30 40", [10, 20, 30, 40]),
        ("between 10 and 20", None),
        ("", None),
        ("1e999 1 2 3", None),
    ],
)
def test_four_numbers_are_read_from_what_models_write(text, numbers) -> None:
    assert four_numbers(text) == numbers


@given(st.text())
def test_reading_numbers_never_fails(text) -> None:
    found = four_numbers(text)
    assert found is None or len(found) == 4


def test_level0_answers_are_measured_in_shares_of_a_side() -> None:
    board, _ = answers_in("view_px", "xywh")
    square = board.squares["red"]
    right = [BOARD_BOX.x + square.x * 8, BOARD_BOX.y + square.y * 8, square.width * 8, square.height * 8]
    assert level0_off([(right, square)] * 3, BOARD_PX, BOARD_BOX) == pytest.approx(0)
    moved = [right[0] + 512, *right[1:]]
    assert level0_off([(moved, square)] * 3, BOARD_PX, BOARD_BOX) == pytest.approx(0.1)
    assert level0_off([(None, square)] * 3, BOARD_PX, BOARD_BOX) == float("inf")


@pytest.mark.parametrize("seed", range(5))
def test_pictures_show_what_they_say_and_the_same_seed_draws_the_same(seed) -> None:
    for digits, extent in ((5, (1024, 1024)), (3, (224, 160))):
        picture = number_picture(np.random.default_rng(seed), digits, extent)
        assert picture == number_picture(np.random.default_rng(seed), digits, extent)
        (image,) = images_of(picture)
        assert (image.size, read_number(image)) == (extent, picture.number)
    for ticks in (False, True):
        board = board_picture(np.random.default_rng(seed), ticks)
        (image,) = images_of(board)
        for colour, box in board.squares.items():
            assert np.abs(np.subtract(find_square(image, colour), corners(box))).max() <= 2


def images_of(picture):
    body = json.dumps({"messages": [{"role": "user", "content": [picture.part()]}]})
    return Request("", {}, body.encode(), 0.0).images
