"""Answers that no server should give: an episode takes them, and ends well within its steps."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pathnav.cohort.protocol import max_steps
from pathnav.cohort.query import Query
from pathnav.errors import PluginError
from pathnav.localise import Outcome
from pathnav.localise.vlm import VlmAgent
from pathnav.slide import Slide
from support.chat_server import call, calls, say
from support.playing import ANSWER, LOOK, Played, report

ABSURD = {
    "25 digits": '{"x": 1234567890123456789012345, "y": 0, "w": 5, "h": 5, "reason": ""}',
    "5,000 digits": '{"x": ' + "1" * 5000 + ', "y": 0, "w": 5, "h": 5}',
    "400 deep": '{"x": ' + "[" * 400 + "]" * 400 + ', "y": 0, "w": 5, "h": 5}',
    "100,000 deep": '{"x": ' + "[" * 100_000,
    "huge": '{"x": 1e308, "y": -1e308, "w": 1e308, "h": 1e308}',
}


@pytest.mark.parametrize("absurd", ABSURD)
@pytest.mark.parametrize("tool", ["extract_roi", "finish_and_report"])
def test_absurd_arguments_are_answered_and_never_break_the_episode(
    slide: Slide, query: Query, absurd: str, tool: str
) -> None:
    raw = ABSURD[absurd] if tool == "extract_roi" else ABSURD[absurd].replace('"x"', '"bbox"')
    played = Played(slide, query, [call(tool, raw), report()])
    assert played.outcome is Outcome.FINISHED
    assert "error" in played.replies()[0]


BOXES = [
    "[" * 3000,
    "[1e308, 0, 1, 1]",
    "[0, 0, 12345678901234567890123456, 9]",
    [0, 0, 10**30, 10**30],
    [True, 0, 9, 9],
]


@pytest.mark.parametrize("bbox", BOXES, ids=range(len(BOXES)))
def test_absurd_boxes_are_taken_or_refused_and_never_break_the_episode(slide: Slide, query: Query, bbox: Any) -> None:
    played = Played(slide, query, [report(bbox=bbox), report()])
    assert played.outcome is Outcome.FINISHED


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.text(max_size=30) | st.recursive(st.none() | st.integers() | st.floats() | st.text(), st.lists).map(json.dumps)
)
def test_any_argument_text_leaves_an_episode_that_ends(slide: Slide, query: Query, raw: str) -> None:
    played = Played(slide, query, [call("extract_roi", raw), call("extract_roi", f'{{"x": {raw}}}'), report()])
    assert played.outcome is Outcome.FINISHED


def test_a_confidence_that_is_no_number_is_none(slide: Slide, query: Query) -> None:
    for confidence in (True, "1e999", 10**400):
        made = Played(slide, query, [report(confidence=confidence)]).environment.report_made
        assert made is not None and made.confidence is None


def test_invalid_reports_cannot_run_past_the_steps(slide: Slide, query: Query) -> None:
    bad = ("finish_and_report", {**ANSWER, "bbox": [5000, 5000, 1, 1]})
    played = Played(slide, query, lambda request: calls(*[bad] * 30))
    assert played.environment.steps == max_steps(3)
    assert played.outcome is Outcome.NO_REPORT
    one_by_one = Played(slide, query, lambda request: calls(bad))
    assert one_by_one.environment.steps == max_steps(3)


def test_only_the_first_call_of_a_forced_turn_counts(slide: Slide, query: Query) -> None:
    bad = ("finish_and_report", {**ANSWER, "bbox": [5000, 5000, 1, 1]})
    forced = calls(bad, ("finish_and_report", ANSWER))
    played = Played(slide, query, [call("extract_roi", LOOK)] * 3 + [forced, calls(bad)])
    assert played.outcome is Outcome.NO_REPORT


def test_a_refusal_is_a_step(slide: Slide, query: Query) -> None:
    assert Played(slide, query, [say("", finish_reason="content_filter")]).environment.steps == 1


def test_the_last_silent_answer_is_told_one_thing_only(slide: Slide, query: Query) -> None:
    last = Played(slide, query, [say("It is pink.")] * 3 + [report()]).requests[-1]
    assert last.text.count("Your answer had no tool call.") == 2
    assert "3 answers in a row had no tool call." in last.text


def test_a_tool_that_fails_by_itself_is_named(slide: Slide, query: Query, tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(
        "from pydantic import BaseModel\n"
        "class Broken:\n"
        "    name = 'broken'\n"
        "    description = 'fails'\n"
        "    class Arguments(BaseModel):\n"
        "        pass\n"
        "    def call(self, environment, arguments):\n"
        "        return 1 / 0\n"
    )
    with pytest.raises(PluginError, match="tool 'broken' failed: ZeroDivisionError"):
        Played(slide, query, [call("broken", {})], tools=[f"{tmp_path / 'own.py'}:Broken"])


def test_the_prompt_hash_covers_the_tools(tmp_path: Path) -> None:
    own = (
        "from pydantic import BaseModel\n"
        "class Own:\n"
        "    name = 'own'\n"
        "    description = '{}'\n"
        "    class Arguments(BaseModel):\n"
        "        pass\n"
        "    def call(self, environment, arguments): ...\n"
    )
    hashes = []
    for number, text in enumerate(("one", "two")):
        path = tmp_path / f"own{number}.py"
        path.write_text(own.format(text))
        hashes.append(VlmAgent(tools=[f"{path}:Own"]).prompt_hash)
    assert len({*hashes, VlmAgent().prompt_hash}) == 3
