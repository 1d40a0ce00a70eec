"""Whose failure it was, which key stands nowhere, and what a result says of slide, target and agent."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pathnav.commands.locate import drawn_record
from pathnav.geometry import Box, iou
from pathnav.localise.environment import Environment
from pathnav.run.agent_choice import AgentChoice
from pathnav.run.case import SlideSource
from pathnav.run.open_slides import OpenSlides
from pathnav.run.question import Question
from pathnav.run.request import Request, locate
from support.chat_server import ChatServer, call, failure, say
from support.commands import Bench
from support.episodes import ask, endpoint, events, stored
from support.trees import tree_document, write_json, write_slide


def test_a_server_that_repeats_the_key_does_not_bring_it_into_any_file(bench: Bench) -> None:
    key = "sk-very-secret"
    with ChatServer([say("hm"), failure(401, f"Incorrect API key provided: {key}.")]) as server:
        lost = ask(bench, "vlm", model=replace(endpoint(server), api_key=key))
    assert (lost["outcome"], "[key]" in lost["reason"]) == ("infra_error", True)
    (error,) = [event for event in events(bench.folder / "out") if event["kind"] == "error"]
    assert "provided: [key]" in error["traceback"]
    files = [path for path in (bench.folder / "out").rglob("*") if path.is_file()]
    assert [path for path in files if key.encode() in path.read_bytes()] == []


class AsksItself:
    """Ask the endpoint without pathnav's conversation."""

    uses_model = True

    def run(self, environment: Environment) -> None:
        """Ask twice and report."""
        assert environment.chat is not None
        for _ in range(2):
            environment.chat.ask([{"role": "user", "content": "Where?"}])
        environment.report(environment.query.region)


@pytest.mark.parametrize(
    ("usage", "tokens"), [({"prompt_tokens": 5, "completion_tokens": 2}, {"input": 16, "output": 9}), (None, None)]
)
def test_what_an_agent_asks_by_itself_is_recorded_and_counted(
    bench: Bench, usage: dict[str, int] | None, tokens: dict[str, int] | None
) -> None:
    with ChatServer([say("there"), say("here", usage=usage)]) as server:
        result = ask(bench, AsksItself, model=endpoint(server))
    assert (result["outcome"], result["calls"], result["tokens"]) == ("finished", 2, tokens)
    replies = [event["id"] for event in events(bench.folder / "out") if event["kind"] == "reply"]
    assert replies == ["reply:chat:0", "reply:chat:1"]


def test_a_context_that_overflows_in_a_users_agent_is_its_own_outcome(bench: Bench) -> None:
    with ChatServer([failure(400, "This model's maximum context length is 4096 tokens")]) as server:
        result = ask(bench, AsksItself, model=endpoint(server))
    assert (result["outcome"], result["iou"]) == ("context_overflow", 0)
    assert "context length" in result["reason"]


def test_what_fails_before_the_agent_runs_is_not_the_agents(bench: Bench) -> None:
    class FailsWhenMade:
        """Be made once, while planning."""

        made = 0

        def __init__(self) -> None:
            type(self).made += 1
            if self.made > 1:
                raise ZeroDivisionError("not again")

        def run(self, environment: Environment) -> None:
            """Report."""
            environment.report(environment.query.region)

    result = ask(bench, FailsWhenMade)
    assert (result["outcome"], result["iou"]) == ("infra_error", None)
    assert "not again" in result["reason"]


def test_a_tool_that_breaks_is_named_and_not_scored(bench: Bench) -> None:
    (bench.folder / "tool.py").write_text(
        "from pydantic import BaseModel\n"
        "class Arguments(BaseModel):\n    x: int = 0\n"
        "class Zoom:\n"
        "    name, description, Arguments = 'zoom', 'Zoom.', Arguments\n"
        "    def call(self, environment, arguments): return 1 / 0\n"
    )
    with ChatServer([call("zoom", {"x": 1})]) as server:
        result = ask(bench, "vlm", options={"tools": ["tool.py:Zoom"]}, model=endpoint(server))
    assert (result["outcome"], result["iou"]) == ("infra_error", None)
    assert "zoom" in result["reason"]
    assert "ZeroDivisionError" in result["reason"]


def test_a_result_says_how_often_pixels_were_enlarged(bench: Bench) -> None:
    assert ask(bench, "parent-centre", question={"query_id": "a1i"})["upsampled"] is None
    write_slide(bench.folder / "coarse.tif", 0.5)
    question = Question("tumour", 40)
    request = Request(SlideSource(str(bench.folder / "coarse.tif")), question, "parent-centre")
    with OpenSlides() as slides:
        result = request.run(slides).result
    assert result["native_magnification"] == pytest.approx(20, rel=1e-3)
    assert result["upsampled"] == pytest.approx(2, rel=1e-3)


def test_a_target_that_was_shifted_into_the_scanned_area_stands_beside_the_annotated_one(
    shared: Path, tmp_path: Path
) -> None:
    slide = shared / "slides" / "mirax-sparse-bounds.mrxs"
    with SlideSource(str(slide)).open() as opened:
        whole = opened.bounds
    assert whole.x > 20
    annotated, scored = [whole.x - 20, whole.y + 10, 300, 200], [whole.x, whole.y + 10, 300, 200]
    tree = tree_document(slide.name, mpp=None)
    tree["slides"][0] |= {"nodes": [{**tree["slides"][0]["nodes"][0], "box": annotated}], "paths": []}
    asked: dict[str, Any] = {"tree": write_json(tmp_path / "tree.json", tree), "query_id": "a"}
    locate(slide, agent="parent-centre", out=tmp_path / "out", **asked)
    result = stored(tmp_path / "out")
    assert (result["target"], result["scored_target"]) == (annotated, scored)
    assert result["iou"] == pytest.approx(iou(Box.from_list(result["box"]), Box.from_list(scored)))
    assert drawn_record(result).target == tuple(scored)
    assert locate(slide, agent="oracle", **asked)["iou"] == 1


def test_a_result_names_its_configuration_and_origin(bench: Bench) -> None:
    result = ask(bench, bench.agent("Looker"))
    assert result["configuration"] == AgentChoice.of(bench.agent("Looker")).configuration
    assert result["origin"] == str(bench.folder / "agents.py")
    assert result["scored_target"] == result["target"]
