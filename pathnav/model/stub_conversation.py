"""What a conversation tells the stub: the task, what was shown, what was asked; all from the messages alone."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pathnav.geometry import Box
from pathnav.model.stub_rules import content_parts
from pathnav.model.stub_text_tools import actions, is_result
from pathnav.model.stub_vision import Eyes, Sight

_NUMBER = r"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?"
_BOX = rf"\[\s*({_NUMBER})\s*,\s*({_NUMBER})\s*,\s*({_NUMBER})\s*,\s*({_NUMBER})\s*\]"
_CAPTION = re.compile(rf"level-0 box\s*{_BOX}", re.IGNORECASE)
_REGION = re.compile(rf"search region[^\[\n]*:\s*{_BOX}", re.IGNORECASE)
_TARGET = re.compile(rf"target size[^:\n]*:\s*({_NUMBER})\s*[x×]\s*({_NUMBER})", re.IGNORECASE)
_BUDGET = re.compile(r"ROI budget[^:\n]*:\s*(\d+)", re.IGNORECASE)
_FINDING = re.compile(r"^\s*finding\s*:\s*(.+)$", re.IGNORECASE | re.MULTILINE)
_LEFT = re.compile(r'"rois_left"\s*:\s*(\d+)')
_NOTE = re.compile(rf"best so far {_BOX} at (\d+\.\d+)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Look:
    """One box that was shown.

    Args:
        box: Level-0 pixels.
        sight: What is in the image; None where the image has been replaced by text.
    """

    box: Box
    sight: Sight | None


@dataclass(frozen=True, slots=True)
class Task:
    """Everything the stub knows when it decides.

    Args:
        region: The search region; None where the conversation is none of pathnav's.
        target: Width and height of the box looked for, level-0 pixels.
        finding: The finding's text in lower case.
        budget: ROIs granted.
        rois_left: ROIs left.
        overview: The image that came with the task.
        looks: What `extract_roi` has shown, oldest first.
        asked: Boxes that `extract_roi` was called with, shown or refused.
        reports: How often `finish_and_report` was called.
        noted: The best box and its worth that the stub itself wrote down earlier.
        calls: Calls made so far.
        images: What is in each image, in order.
    """

    region: Box | None = None
    target: tuple[float, float] | None = None
    finding: str = ""
    budget: int = 1
    rois_left: int = 1
    overview: Look | None = None
    looks: tuple[Look, ...] = ()
    asked: tuple[Box, ...] = ()
    reports: int = 0
    noted: tuple[Box, float] | None = None
    calls: int = 0
    images: tuple[Sight, ...] = ()


@dataclass(slots=True)
class _Shown:
    """Boxes in the order in which they were first mentioned, with their images."""

    sights: dict[Box, Sight | None] = field(default_factory=dict)
    loose: list[Sight] = field(default_factory=list)  # images without a caption

    def add(self, box: Box, sight: Sight | None) -> None:
        if self.sights.get(box) is None:
            self.sights[box] = sight


def read_task(messages: Sequence[Mapping[str, Any]], eyes: Eyes) -> Task:
    """Return what a legal conversation says; images are analysed on the way."""
    first_turn = next((i for i, message in enumerate(messages) if message["role"] == "assistant"), len(messages))
    before, after = _Shown(), _Shown()
    for index, message in enumerate(messages):
        _collect(message, before if index < first_turn else after, eyes)
    brief = "\n".join(texts_of(messages[:first_turn], "user"))
    said = "\n".join(texts_of(messages, "assistant"))
    calls = list(_calls(messages))
    asked = tuple(box for name, arguments in calls if name == "extract_roi" and (box := _asked_box(arguments)))
    budget = int(found.group(1)) if (found := _BUDGET.search(brief)) else 1
    left = _LEFT.findall("\n".join(_results(messages)))
    target = _TARGET.search(brief)
    finding = _FINDING.search(brief)
    notes = [(box, float(match.group(5))) for match in _NOTE.finditer(said) if (box := _box(match))]
    everything = [*before.sights.values(), *before.loose, *after.sights.values(), *after.loose]
    overview = next((Look(box, sight) for box, sight in before.sights.items()), None)
    region = _box(match) if (match := _REGION.search(brief)) else None
    return Task(
        region=region or (overview.box if overview else None),
        target=(float(target.group(1)), float(target.group(2))) if target else None,
        finding=finding.group(1).lower() if finding else "",
        budget=budget,
        rois_left=int(left[-1]) if left else max(0, budget - len(after.sights)),
        overview=overview,
        looks=tuple(Look(box, sight) for box, sight in after.sights.items()),
        asked=asked,
        reports=sum(1 for name, _ in calls if name == "finish_and_report"),
        noted=max(notes, key=lambda note: note[1], default=None),
        calls=len(calls),
        images=tuple(sight for sight in everything if sight is not None),
    )


def _collect(message: Mapping[str, Any], shown: _Shown, eyes: Eyes) -> None:
    """Pair captions with the images that follow them; a caption without an image still tells what was shown."""
    if message["role"] not in ("user", "tool"):
        return
    waiting: Box | None = None
    for part in content_parts(message):
        if part["type"] == "text":
            for match in _CAPTION.finditer(part["text"]):
                waiting = _box(match)
                if waiting is not None:
                    shown.add(waiting, None)
            continue
        sight = eyes.look(part["image_url"]["url"])
        if waiting is None:
            shown.loose.append(sight)
        else:
            shown.add(waiting, sight)
        waiting = None


def texts_of(messages: Sequence[Mapping[str, Any]], role: str) -> Iterator[str]:
    """Yield the text parts of all messages of a role."""
    for message in messages:
        if message["role"] == role:
            yield from (part["text"] for part in content_parts(message) if part["type"] == "text")


def _results(messages: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the texts that tell what calls came to, oldest first."""
    for message in messages:
        for text in texts_of([message], message["role"]):
            if message["role"] == "tool" or (message["role"] == "user" and is_result(text)):
                yield text


def _calls(messages: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the calls so far: those in the API's field, and those that the stub wrote into its text."""
    for message in messages:
        for call in message.get("tool_calls") or []:
            yield call["function"]["name"], json.loads(call["function"]["arguments"])
        for text in texts_of([message], "assistant"):
            yield from actions(text)


def _asked_box(arguments: Mapping[str, Any]) -> Box | None:
    try:
        return Box(*(float(arguments[name]) for name in "xywh"))
    except (KeyError, TypeError, ValueError):
        return None


def _box(match: re.Match[str]) -> Box | None:
    try:
        box = Box(*(float(number) for number in match.groups()[:4]))
    except ValueError:
        return None
    return None if box.is_empty else box
