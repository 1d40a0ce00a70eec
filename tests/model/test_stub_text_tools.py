"""The stub reads and follows the text protocol."""

from typing import Any

import pytest

from pathnav.geometry import Box, iou
from pathnav.model import STUB_MODEL, ChatClient, ChatSettings
from pathnav.model.json_action import parse_actions
from pathnav.model.profile import load_profile
from pathnav.model.stub_answers import Stub
from pathnav.model.stub_text_tools import action, actions
from pathnav.model.text_tools import text_messages
from support.painted_slide import TOOLS, Game, PaintedSlide


class TextGame(Game):
    """The same game in words."""

    def __enter__(self) -> "TextGame":
        self._server.start()
        self._chat = ChatClient(ChatSettings(self._server.base_url, STUB_MODEL, profile=load_profile("text")))
        return self

    def ask(self, *, tools: Any = TOOLS, required: str | None = None) -> Any:
        described = [{**tool, "function": {**tool["function"], "description": "A tool."}} for tool in tools]
        return super().ask(tools=described, required=required)


@pytest.mark.parametrize("budget", [1, 4, 10])
def test_the_stub_plays_the_same_in_words_as_with_tools(budget: int) -> None:
    slide, blob = PaintedSlide(16384, 16384), Box(9216, 3072, 1024, 1024)
    slide.stain(blob, haematoxylin=0.5)
    games = []
    for kind_of_game in (Game, TextGame):
        with kind_of_game(slide, "dense infiltrate", target=(1024.0, 1024.0), budget=budget) as game:
            games.append((game.play(), game.looks))
    assert games[0] == games[1]
    assert iou(Box.from_list(games[0][0]["bbox"]), blob) > 0.8


def test_a_tool_in_words_that_must_be_called_gets_what_its_description_asks_for() -> None:
    schema = {
        "type": "object",
        "properties": {
            "days": {"type": "integer"},
            "city": {"type": "string"},
            "boxes": {"type": "array", "items": {}},
        },
    }
    tool = {"type": "function", "function": {"name": "finish_and_report", "description": "w", "parameters": schema}}
    messages = text_messages([{"role": "user", "content": "Weather?"}], [tool])
    answer = Stub().complete({"model": STUB_MODEL, "messages": messages})
    (action,) = parse_actions(answer["choices"][0]["message"]["content"], ["finish_and_report"]).actions
    assert action.arguments == {"days": 1, "city": "none", "boxes": []}


def test_its_own_calls_are_read_back_and_one_that_was_cut_off_is_none() -> None:
    written = action("look", {"x": 1, "why": "} dense {"})
    assert list(actions(f"Hm.\n{written}\n```json\n{written}\n```")) == [("look", {"x": 1, "why": "} dense {"})] * 2
    assert list(actions(f"Hm. {written[:-5]}")) == []
