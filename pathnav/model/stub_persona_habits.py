"""Personas with a model's bad habits: they decide about what is said."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pathnav.geometry import Box
from pathnav.model.stub_answers import Spoken, completion, offered
from pathnav.model.stub_conversation import Task, texts_of
from pathnav.model.stub_persona import Persona, checked, turns
from pathnav.model.stub_questions import Call
from pathnav.model.stub_text_tools import action

CUT_EVERY = 3  # turns; never two in a row, so that the second try of a forced turn is whole
LOOKS_PER_TURN = 3
_SIDE = 4  # fields along a side of the raster that the greedy one looks through
_LAST_TURN = re.compile(r"\blast turn\b", re.IGNORECASE)
_ACTION = re.compile(r'\{"tool": ".*', re.DOTALL)
_PROSE = (
    "What a fascinating section! The architecture invites many thoughts, and one could speak at length about the "
    "stroma, the nuclei and their neighbours. I would say that further examination is always worth the while."
)


class TruncatedJson(Persona):
    """Runs out of tokens in every third turn, in the middle of a call's arguments."""

    name = "truncated-json"
    summary = "cuts the arguments of a call in the middle, with finish_reason length, every third turn"

    def complete(self, request: object) -> dict[str, Any]:
        """Answer, or begin to."""
        _, messages = checked(request)
        answer = self.reader.complete(request)
        if (turns(messages) + self.seed) % CUT_EVERY == 1:
            _cut(answer["choices"][0])
        return answer


class TextOnly(Persona):
    """Has no tool calling: ignores the tools field, and writes actions, in fences, where the text explains how."""

    name = "text-only"
    summary = "no tool calling: ignores the tools field, follows the text protocol where it is explained"

    def complete(self, request: object) -> dict[str, Any]:
        """Answer in text."""
        given, _ = checked(request)
        body = {name: value for name, value in given.items() if name not in ("tools", "tool_choice")}
        task = self.reader.read(body)
        spoken = self.reader.answer(body, task)
        fenced = [f"```json\n{action(*call)}\n```" for call in spoken.calls]
        return completion(body, task, Spoken("\n".join([spoken.text, *fenced]), logprobs=spoken.logprobs))


class Garrulous(Persona):
    """Talks, whatever it is asked."""

    name = "garrulous"
    summary = "never a tool call, never a Yes or No, only prose"

    def complete(self, request: object) -> dict[str, Any]:
        """Answer with prose."""
        body, _ = checked(request)
        return completion(body, self.reader.read(body), Spoken(_PROSE))


class Overbudget(Persona):
    """Looks and looks: three looks a turn, whatever is left, until it is told that this is the last turn."""

    name = "overbudget"
    summary = "several looks a turn, more than were granted, until it is told that this is the last turn"

    def complete(self, request: object) -> dict[str, Any]:
        """Answer with looks, with the report at the very end."""
        body, messages = checked(request)
        task = self.reader.read(body)
        spoken = self.reader.answer(body, task)
        if task.region is not None and offered(body) and not _is_last(messages):
            spoken = Spoken(spoken.text, tuple(_looks(task, task.region, spoken)))
        return completion(body, task, spoken)


def _cut(choice: dict[str, Any]) -> None:
    """End the last call of an answer in its middle; an answer without a call stays whole."""
    message = choice["message"]
    if message.get("tool_calls"):
        function = message["tool_calls"][-1]["function"]
        function["arguments"] = function["arguments"][: len(function["arguments"]) // 2]
    elif written := _ACTION.search(message["content"]):
        message["content"] = message["content"][: (written.start() + written.end()) // 2]
    else:
        return
    choice["finish_reason"] = "length"


def _is_last(messages: Sequence[Mapping[str, Any]]) -> bool:
    return messages[-1]["role"] == "user" and any(_LAST_TURN.search(text) for text in texts_of(messages[-1:], "user"))


def _looks(task: Task, region: Box, spoken: Spoken) -> Iterator[Call]:
    """Yield the looks of a turn: the pixel reader's own, then the next fields of a raster over the region."""
    own = [call for call in spoken.calls if call[0] == "extract_roi"]
    yield from own
    width, height = max(1, region.width // _SIDE), max(1, region.height // _SIDE)
    for number in range(task.calls, task.calls + LOOKS_PER_TURN - len(own)):
        row, column = divmod(number % _SIDE**2, _SIDE)
        place = {"x": region.x + column * width, "y": region.y + row * height, "w": width, "h": height}
        yield "extract_roi", {**place, "reason": "one more look cannot hurt"}
