"""Plain questions that the stub can answer, as `pathnav doctor` and people who try a server ask them.

What it says of a picture it reads in that picture's pixels; where a server loses the picture, it sees none and says so.
"""

import re
from collections.abc import Collection, Mapping
from typing import Any

from pathnav.model.stub_conversation import Task, texts_of
from pathnav.model.stub_reading import COLOURS, find_square, pixels_of, read_number
from pathnav.model.stub_rules import content_parts

Call = tuple[str, dict[str, Any]]

_RULE = re.compile(r"answer with the single word (\w+)", re.IGNORECASE)
_COUNT = re.compile(r"\bcount from (\d{1,3}) to (\d{1,3})\b", re.IGNORECASE)
_CALL = re.compile(r"\bcall the tool (\w+)", re.IGNORECASE)
_ARGUMENT = re.compile(r"\bthe (\w+) [“\"]([^“”\"]*)[”\"]")
_DIGITS = re.compile(r"\bnumber of \d+ digits\b", re.IGNORECASE)
_SQUARE = re.compile(rf"\bwhere is the ({'|'.join(COLOURS)}) square", re.IGNORECASE)
_SHOWN = re.compile(r"\bbox x=(\d+), y=(\d+), w=(\d+), h=(\d+)")
_BLIND = "I see no picture."


def plain_answer(body: Mapping[str, Any], task: Task, offered: Collection[str]) -> tuple[str, tuple[Call, ...]] | None:
    """Return the words and calls that answer a plain question; None where none is asked.

    Args:
        body: A legal request.
        task: What its conversation says.
        offered: The tools on offer.
    """
    rule = _RULE.search("\n".join(texts_of(body["messages"], "system")))
    if rule:
        return rule[1], ()
    asked = "\n".join(texts_of(body["messages"], "user"))
    if found := _COUNT.search(asked):
        return " ".join(map(str, range(int(found[1]), int(found[2]) + 1))), ()
    if (found := _CALL.search(asked)) and found[1] in offered:
        return _called(found[1], asked, task.calls)
    if _DIGITS.search(asked):
        return " ".join(read_number(pixels_of(url)) or "?" for url in _pictures(body)) or _BLIND, ()
    if found := _SQUARE.search(asked):
        return _pointed(body, found[1].lower(), asked), ()
    return None


def _called(name: str, asked: str, made: int) -> tuple[str, tuple[Call, ...]]:
    """Return all calls where they are wanted in one answer, else the next one."""
    wanted: list[Call] = [(name, {argument: value}) for argument, value in _ARGUMENT.findall(asked)] or [(name, {})]
    due = wanted if "in one answer" in asked and not made else wanted[made : made + 1]
    return ("As told." if due else "That is done."), tuple(due)


def _pointed(body: Mapping[str, Any], colour: str, asked: str) -> str:
    """Return the box of a square: two corners in pixels, or as the question says where the picture lies on a slide."""
    pictures = _pictures(body)
    if not pictures:
        return _BLIND
    rgb = pixels_of(pictures[-1])
    corners = find_square(rgb, colour)
    if corners is None:
        return f"I see no {colour} square."
    left, top, right, bottom = corners
    shown = _SHOWN.search(asked)
    if shown is None:
        return str([left, top, right, bottom])
    x, y, width, height = map(int, shown.groups())
    across, down = width / rgb.shape[1], height / rgb.shape[0]
    box = (x + left * across, y + top * down, (right - left) * across, (bottom - top) * down)
    return str([round(number) for number in box])


def _pictures(body: Mapping[str, Any]) -> list[str]:
    """Return the URLs of the pictures of a legal request, in order."""
    parts = [part for message in body["messages"] for part in content_parts(message)]
    return [part["image_url"]["url"] for part in parts if part["type"] == "image_url"]
