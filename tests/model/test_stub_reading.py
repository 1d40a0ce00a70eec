"""What the stub reads in plain pictures, and what it answers to plain questions."""

import base64
import re
from typing import Any

import numpy as np
import pytest

from pathnav.model.parts import image_part, text_part
from pathnav.model.probe_pictures import COLOURS, board_picture, number_picture
from pathnav.model.stub_answers import STUB_MODEL, Stub
from pathnav.model.stub_reading import find_square, pixels_of, read_number
from support.painted_slide import jpeg, stained


def pixels(encoded: bytes) -> np.ndarray:
    return pixels_of("data:image/jpeg;base64," + base64.b64encode(encoded).decode())


def answer(*parts: Any, **fields: Any) -> dict[str, Any]:
    body = {"model": STUB_MODEL, "messages": [{"role": "user", "content": list(parts)}], **fields}
    found: dict[str, Any] = Stub().complete(body)["choices"][0]
    return found


def said(*parts: Any, **fields: Any) -> str:
    text: str = answer(*parts, **fields)["message"]["content"]
    return text


@pytest.mark.parametrize(
    ("digits", "extent_px"), [(5, (1024, 1024)), (3, (224, 160)), (5, (256, 256)), (8, (900, 300))]
)
def test_every_number_is_read(digits: int, extent_px: tuple[int, int]) -> None:
    rng = np.random.default_rng(0)
    for _ in range(12):
        picture = number_picture(rng, digits, extent_px)
        assert read_number(pixels(picture.jpeg)) == picture.number


def test_what_is_no_number_is_not_read_as_one() -> None:
    rng = np.random.default_rng(0)
    tissue = jpeg(stained(rng.random((256, 256)), rng.random((256, 256))))
    assert read_number(pixels(tissue)) is None
    assert read_number(np.full((64, 64, 3), 255, np.uint8)) is None
    assert read_number(pixels(board_picture(rng, ticks=True).jpeg)) is None


@pytest.mark.parametrize("ticks", [True, False])
def test_every_square_is_found_to_within_two_pixels(ticks: bool) -> None:
    rng = np.random.default_rng(1)
    for _ in range(12):
        board = board_picture(rng, ticks)
        for colour in COLOURS:
            box, found = board.squares[colour], find_square(pixels(board.jpeg), colour)
            assert found == pytest.approx((box.x, box.y, box.right, box.bottom), abs=2)
    assert find_square(np.full((64, 64, 3), 255, np.uint8), "red") is None


def test_a_question_about_a_picture_that_did_not_come_is_answered_with_that() -> None:
    assert said(text_part("The picture shows a number of 5 digits. Which?")) == "I see no picture."
    assert said(text_part("Where is the red square in the picture?")) == "I see no picture."
    white = image_part(jpeg(np.full((64, 64, 3), 255, np.uint8)))
    assert said(white, text_part("Where is the red square in the picture?")) == "I see no red square."
    assert said(white, text_part("It shows a number of 3 digits. Which?")) == "?"


def test_a_limit_of_new_tokens_cuts_words() -> None:
    for field in ("max_tokens", "max_completion_tokens"):
        cut = answer(text_part("Count from 1 to 100."), **{field: 3})
        assert (cut["message"]["content"], cut["finish_reason"]) == ("1 2 3 4 5 6 ", "length")
    whole = answer(text_part("Count from 8 to 11."), max_tokens=3)
    assert (whole["message"]["content"], whole["finish_reason"]) == ("8 9 10 11", "stop")


def test_calls_that_it_is_told_to_make_are_made_once_in_the_order_of_the_words() -> None:
    tool = {"type": "function", "function": {"name": "take", "parameters": {"type": "object"}}}
    task = "Call the tool take first with the place “left” and, once that is done, with the place “right”."
    messages: list[dict[str, Any]] = [{"role": "user", "content": task}]
    places = []
    for turn in range(2):
        message = Stub().complete({"model": STUB_MODEL, "messages": messages, "tools": [tool]})["choices"][0]["message"]
        (made,) = message["tool_calls"]
        places += re.findall("left|right", made["function"]["arguments"])
        messages += [message, {"role": "tool", "tool_call_id": made["id"], "content": f"done {turn}"}]
    last = Stub().complete({"model": STUB_MODEL, "messages": messages, "tools": [tool]})["choices"][0]["message"]
    assert places == ["left", "right"] and "tool_calls" not in last
