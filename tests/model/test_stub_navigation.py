"""The stub navigates by what it sees, over HTTP, through the real client."""

from collections.abc import Sequence
from typing import Any

import pytest

from pathnav.geometry import Box, iou
from pathnav.model import STUB_MODEL, ChatClient, ChatSettings, Reply, StubServer
from support.painted_slide import TOOLS, Game, PaintedSlide

TARGET = (1024.0, 1024.0)
BLOB = Box(9216, 3072, 1024, 1024)
DECOY = Box(2048, 10240, 1024, 1024)


def slide_with(*boxes: Box, haematoxylin: float = 0.5, side: int = 16384) -> PaintedSlide:
    slide = PaintedSlide(side, side)
    for box in boxes:
        slide.stain(box, haematoxylin=haematoxylin)
    return slide


@pytest.mark.parametrize(
    "blob", [BLOB, Box(0, 0, 1024, 1024), Box(15360, 15360, 1024, 1024), Box(5000, 7000, 1024, 1024)]
)
def test_a_dense_region_is_found_and_reported_before_the_budget_is_spent(blob: Box) -> None:
    with Game(slide_with(blob), "dense lymphoid infiltrate", target=TARGET, budget=10) as game:
        report = game.play()
    assert iou(Box.from_list(report["bbox"]), blob) > 0.8
    assert 2 <= len(game.looks) < 10
    assert 0 <= report["confidence"] <= 1 and report["conclusion"]


def test_a_promising_place_is_looked_at_with_growing_zoom() -> None:
    with Game(slide_with(BLOB), "tumour", target=TARGET, budget=10) as game:
        game.play()
    wide, close = game.looks[:2]
    assert wide.holds(BLOB) and close.holds(Box.centred(BLOB.centre, 900, 900))
    assert wide.area > 4 * close.area


def test_a_disappointing_look_is_left_for_another_place() -> None:
    promised = slide_with(DECOY)
    promised.stain(BLOB, haematoxylin=0.3)
    with Game(slide_with(BLOB, haematoxylin=0.3), "tumour", target=TARGET, budget=10, overview=promised) as game:
        report = game.play()
    assert game.looks[0].meets(DECOY)
    assert any(look.meets(BLOB) for look in game.looks)
    assert iou(Box.from_list(report["bbox"]), BLOB) > 0.8


def test_the_finding_decides_what_is_looked_for() -> None:
    slide = slide_with(BLOB)
    slide.stain(DECOY, haematoxylin=0.0, eosin=0.0)
    for row in range(0, 1024, 128):  # membranes between vacuoles
        slide.stain(Box(DECOY.x, DECOY.y + row, 1024, 48), eosin=0.3)
    with Game(slide, "mature fat, empty vacuoles", target=TARGET, budget=10) as game:
        report = game.play()
    assert iou(Box.from_list(report["bbox"]), DECOY) > 0.6


def test_every_look_and_report_lies_in_the_search_region() -> None:
    for side, target in (
        (1600, (1024.0, 900.0)),
        (4096, (4096.0, 4096.0)),
        (512, (1024.0, 1024.0)),
        (8192, (32.0, 64.0)),
    ):
        slide = slide_with(Box(100, 100, 300, 300), side=side)
        with Game(slide, "tumour", target=target, budget=5) as game:
            report = game.play()
        for box in (*game.looks, Box.from_list(report["bbox"])):
            assert slide.box.holds(box) and not box.is_empty


@pytest.mark.parametrize("budget", [1, 2, 3, 20])
def test_no_budget_is_overspent_and_every_game_ends_with_a_report(budget: int) -> None:
    with Game(slide_with(BLOB, DECOY), "tumour", target=TARGET, budget=budget) as game:
        assert game.play()["bbox"]
    assert 1 <= len(game.looks) <= budget


def test_the_same_conversation_gets_the_same_answers_also_from_another_server() -> None:
    games = []
    for _ in range(2):
        with Game(slide_with(BLOB, DECOY), "tumour", target=TARGET, budget=10) as game:
            game.play()
        games.append([(reply.text, reply.calls, reply.tokens) for reply in game.replies])
    assert games[0] == games[1]


def test_the_forced_turn_is_answered_with_a_report_of_the_best_place_so_far() -> None:
    with Game(slide_with(BLOB), "tumour", target=TARGET, budget=10) as game:
        game.act(game.ask())
        reply = game.ask(tools=TOOLS[2:], required="finish_and_report")
    assert reply.calls[0].name == "finish_and_report" and reply.calls[0].arguments
    assert iou(Box.from_list(reply.calls[0].arguments["bbox"]), BLOB) > 0.8


def test_what_was_seen_in_images_that_are_gone_is_remembered_by_the_stubs_own_note() -> None:
    with Game(slide_with(BLOB), "tumour", target=TARGET, budget=10) as game:
        game.act(game.ask())
        game.act(game.ask())
        for message in game.messages[2:-1]:
            if message["role"] == "user":
                message["content"] = [part for part in message["content"] if part["type"] == "text"]
        last = game.ask()
        game.act(last)
        for message in game.messages:
            if isinstance(message["content"], list):
                message["content"] = [part for part in message["content"] if part["type"] == "text"]
        reply = game.ask(tools=TOOLS[2:], required="finish_and_report")
    assert reply.calls[0].arguments is not None
    assert iou(Box.from_list(reply.calls[0].arguments["bbox"]), BLOB) > 0.8


def test_without_any_image_the_calls_are_still_legal_and_the_game_ends() -> None:
    with Game(slide_with(BLOB), "tumour", target=TARGET, budget=5, images=False) as game:
        report = game.play()
    assert len(report["bbox"]) == 4
    assert len(set(game.looks)) == len(game.looks)


def test_refused_looks_do_not_lead_into_a_loop() -> None:
    with Game(slide_with(BLOB), "tumour", target=TARGET, budget=5) as game:
        names = []
        for _ in range(8):
            reply = game.ask()
            names.append(reply.calls[0].name)
            game.answer(reply, '{"error": "refused", "rois_left": 5}', [])
            if names[-1] == "finish_and_report":
                break
    assert names[-1] == "finish_and_report"


def test_a_refused_report_is_followed_by_another_box() -> None:
    with Game(slide_with(BLOB), "tumour", target=TARGET, budget=1) as game:
        first = game.ask(tools=TOOLS[2:], required="finish_and_report")
        game.answer(first, '{"error": "bbox must meet the search region"}', [])
        second = game.ask(tools=TOOLS[2:], required="finish_and_report")
    assert first.calls[0].arguments != second.calls[0].arguments


def test_without_tools_the_answer_is_text_with_a_box() -> None:
    with Game(slide_with(BLOB), "tumour", target=TARGET, budget=5) as game:
        reply = game.ask(tools=())
    assert not reply.calls and "I would report the box [" in reply.text


def ask_freely(content: str, tools: Sequence[dict[str, Any]] = (), required: str | None = None) -> Reply:
    with StubServer() as server, ChatClient(ChatSettings(base_url=server.base_url, model=STUB_MODEL)) as chat:
        return chat.ask([{"role": "user", "content": content}], tools, required)


def test_a_question_of_another_kind_is_answered_by_who_this_is() -> None:
    reply = ask_freely("Is there tumour? Answer Yes or No.")
    assert "not a model" in reply.text and not reply.calls


def test_tools_of_another_kind_are_called_only_when_required_and_then_by_their_schema() -> None:
    schema = {
        "type": "object",
        "properties": {"city": {"type": "string"}, "days": {"type": "integer"}, "unit": {"enum": ["C", "F"]}},
        "required": ["city", "days", "unit"],
    }
    tools = [{"type": "function", "function": {"name": "weather", "parameters": schema}}]
    assert not ask_freely("Weather?", tools).calls
    (call,) = ask_freely("Weather?", tools, "weather").calls
    assert call.arguments == {"city": "none", "days": 1, "unit": "C"}
