"""The state machine against a real server: each thing a model can do wrong gets a reply, and the episode ends well."""

import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pathnav.cohort.protocol import max_steps
from pathnav.cohort.query import Query
from pathnav.errors import ModelError
from pathnav.geometry import Box
from pathnav.localise import Outcome, prompts
from pathnav.localise.vlm import VlmAgent
from pathnav.slide import Slide
from support.chat_server import Answer, Request, call, calls, failure, say
from support.playing import ANSWER, LOOK, Played, report

BAD = ("finish_and_report", {**ANSWER, "bbox": [5000, 5000, 10, 10]})
PINNED = ("mode-a-2", "c58ee282e2079473")


def test_a_changed_prompt_needs_a_new_version_since_it_changes_every_result() -> None:
    assert (prompts.PROMPT_VERSION, prompts.prompt_hash()[:16]) == PINNED


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
    hashes = {VlmAgent().prompt_hash}
    for text in ("one", "two"):
        (tmp_path / f"{text}.py").write_text(own.format(text))
        hashes.add(VlmAgent(tools=[f"{tmp_path / text}.py:Own"]).prompt_hash)
    assert len(hashes) == 3


def test_an_episode_looks_and_reports(slide: Slide, query: Query) -> None:
    played = Played(slide, query, [call("get_image_info", {}), call("extract_roi", LOOK), report()])
    assert (played.outcome, played.environment.rois_used, played.environment.steps) == (Outcome.FINISHED, 1, 3)
    made = played.environment.report_made
    assert made is not None and (made.box, made.conclusion, made.confidence) == (Box(100, 200, 512, 512), "there", 0.7)
    info, roi, _ = played.replies()
    assert info["rois_left"] == 3 and info["search_region"] == [0, 0, 1024, 1024]
    assert roi["box"] == [100, 200, 300, 200] and roi["rois_left"] == 2


def test_the_task_states_all_of_the_query_and_the_overview_is_captioned(slide: Slide, query: Query) -> None:
    first = Played(slide, query, [report()]).requests[0]
    for line in (
        "Magnification: 40x",
        "Finding: a dark block",
        "Search region (level-0 px): [0, 0, 1024, 1024]",
        "Target size (level-0 px): 512 x 512",
        "ROI budget: 3",
        "Organ: breast",
        "Slide: slide-abc",
        "Overview of the search region: 1024 x 1024 px at 40x, level-0 box [0, 0, 1024, 1024]",
    ):
        assert line in first.text.splitlines()
    assert first.tool_names == ["get_image_info", "extract_roi", "finish_and_report"]


NOT_JSON = "not a valid JSON object"
MISTAKES: dict[str, tuple[Answer, str]] = {
    "malformed": (call("extract_roi", '{"x": 1, "y":'), NOT_JSON),
    "not-an-object": (call("extract_roi", "[1, 2]"), NOT_JSON),
    "nan": (call("extract_roi", '{"x": NaN, "y": 0, "w": 5, "h": 5}'), NOT_JSON),
    "5,000 digits": (call("extract_roi", '{"x": ' + "1" * 5000 + ', "y": 0, "w": 5, "h": 5}'), NOT_JSON),
    "100,000 deep": (call("finish_and_report", '{"bbox": ' + "[" * 100_000), NOT_JSON),
    "400 deep": (call("extract_roi", '{"x": ' + "[" * 400 + "]" * 400 + ', "y": 0, "w": 5, "h": 5}'), "x: "),
    "25 digits": (call("extract_roi", '{"x": 1234567890123456789012345, "y": 0, "w": 5, "h": 5}'), "x from 0 to 1024"),
    "huge": (call("extract_roi", '{"x": 1e308, "y": -1e308, "w": 1e308, "h": 1e308}'), "x from 0 to 1024"),
    "unknown-tool": (call("zoom_in", {}), "available: get_image_info, extract_roi, finish_and_report"),
    "missing": (call("extract_roi", {"x": 1, "y": 2, "w": 3}), "h is missing"),
    "not-a-number": (call("extract_roi", {**LOOK, "x": "left"}), "x: "),
    "infinite": (call("extract_roi", '{"x": 0, "y": 0, "w": 1e999, "h": 5, "reason": ""}'), "search region"),
    "outside": (call("extract_roi", {**LOOK, "x": 5000}), "x from 0 to 1024"),
    "negative": (call("extract_roi", {**LOOK, "w": -3}), "x from 0 to 1024"),
    "bad-report": (call(*BAD), "x from 0 to 1024"),
    "short-report": (report(bbox=[1, 2, 3]), "bbox"),
    "deep-report": (report(bbox="[" * 3000), "bbox"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_costs_no_roi_and_gets_a_reply_that_says_how_to_mend_it(
    slide: Slide, query: Query, mistake: str
) -> None:
    answer, said = MISTAKES[mistake]
    played = Played(slide, query, [answer, report()])
    assert played.outcome is Outcome.FINISHED
    assert played.environment.rois_used == 0
    assert said in played.replies()[0]["error"]
    assert said in next(m for m in played.requests[1].messages if m["role"] == "tool")["content"]


@pytest.mark.parametrize("bbox", ["[1e308, 0, 1, 1]", [0, 0, 10**30, 10**30], [True, 0, 9, 9]], ids=str)
def test_absurd_boxes_are_taken_or_refused_and_never_break_the_episode(
    slide: Slide, query: Query, bbox: object
) -> None:
    assert Played(slide, query, [report(bbox=bbox), report()]).outcome is Outcome.FINISHED


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.text(max_size=30) | st.recursive(st.none() | st.integers() | st.floats() | st.text(), st.lists).map(json.dumps)
)
def test_any_argument_text_leaves_an_episode_that_ends(slide: Slide, query: Query, raw: str) -> None:
    played = Played(slide, query, [call("extract_roi", raw), call("extract_roi", f'{{"x": {raw}}}'), report()])
    assert played.outcome is Outcome.FINISHED


@pytest.mark.parametrize("confidence", ["high", True, "1e999", 10**400])
def test_numbers_and_boxes_written_as_text_are_taken_and_a_confidence_that_is_none_is_none(
    slide: Slide, query: Query, confidence: object
) -> None:
    look = {name: str(value) for name, value in LOOK.items()}
    played = Played(slide, query, [call("extract_roi", look), report(bbox="[1, 2, 30, 40]", confidence=confidence)])
    assert played.environment.rois_used == 1
    made = played.environment.report_made
    assert made is not None and (made.box, made.confidence) == (Box(1, 2, 30, 40), None)


def test_several_calls_in_a_turn_run_in_order_against_one_budget(slide: Slide, query: Query) -> None:
    many = calls(*[("extract_roi", {**LOOK, "x": x}) for x in (0, 10, 20, 30, 40)])
    played = Played(slide, query, [many, report()])
    assert [roi.box.x for roi in played.environment.rois] == [0, 10, 20]
    assert ["error" in reply for reply in played.replies()] == [False, False, False, True, True, False]
    assert played.outcome is Outcome.FORCED


def test_calls_after_the_report_are_answered_and_count_for_nothing(slide: Slide, query: Query) -> None:
    both = calls(("finish_and_report", ANSWER), ("extract_roi", LOOK), BAD)
    played = Played(slide, query, [both])
    assert (played.outcome, played.environment.rois_used, played.environment.steps) == (Outcome.FINISHED, 0, 1)
    assert [reply.get("error", "")[-5:] for reply in played.replies()] == ["", "ended", "ended"]


def test_the_history_keeps_every_call_in_its_order_with_valid_json(slide: Slide, query: Query) -> None:
    broken = calls(("extract_roi", '{"x": 1,'), ("get_image_info", "{}"), ("extract_roi", LOOK))
    played = Played(slide, query, [broken, report()])
    assistant = next(m for m in played.requests[1].messages if m["role"] == "assistant")
    assert [c["function"]["name"] for c in assistant["tool_calls"]] == ["extract_roi", "get_image_info", "extract_roi"]
    assert all(isinstance(json.loads(c["function"]["arguments"]), dict) for c in assistant["tool_calls"])
    answered = [m["tool_call_id"] for m in played.requests[1].messages if m["role"] == "tool"]
    assert answered == [c["id"] for c in assistant["tool_calls"]]
    raw = [event["arguments"] for event in played.recorder.events.values() if event["kind"] == "tool"]
    assert raw[0] == '{"x": 1,'


def test_a_spent_budget_leads_to_a_turn_in_which_only_the_report_is_offered(slide: Slide, query: Query) -> None:
    played = Played(slide, query, [call("extract_roi", LOOK)] * 3 + [report()])
    assert played.outcome is Outcome.FORCED
    last = played.requests[-1]
    assert last.tool_names == ["finish_and_report"]
    assert last.body["tool_choice"] == {"type": "function", "function": {"name": "finish_and_report"}}
    assert "The ROI budget is spent." in last.text


LOOKS = [call("extract_roi", LOOK)] * 3


@pytest.mark.parametrize(
    ("answers", "outcome"),
    [
        pytest.param([*LOOKS, call(*BAD), report()], Outcome.FORCED, id="forced, one more try"),
        pytest.param([*LOOKS, call(*BAD), call(*BAD)], Outcome.NO_REPORT, id="forced, no third try"),
        pytest.param(
            [*LOOKS, calls(BAD, ("finish_and_report", ANSWER)), call(*BAD)],
            Outcome.NO_REPORT,
            id="forced, first call counts",
        ),
        pytest.param(
            [*LOOKS[:2], calls(("extract_roi", LOOK), ("finish_and_report", ANSWER))],
            Outcome.FINISHED,
            id="report beside the last look",
        ),
        pytest.param(
            [say("a"), say("b"), LOOKS[0], say("c"), say("d"), report()],
            Outcome.FINISHED,
            id="silent answers counted anew",
        ),
        pytest.param([say("It is pink.")] * 5, Outcome.FORMAT_ERRORS, id="never a call"),
        pytest.param([failure(400, "maximum context length is 8192 tokens")], Outcome.CONTEXT_OVERFLOW, id="overflow"),
    ],
)
def test_each_course_of_an_episode_has_its_outcome(
    slide: Slide, query: Query, answers: list[Answer], outcome: Outcome
) -> None:
    played = Played(slide, query, answers)
    assert played.outcome is outcome
    assert len(played.requests) == len(answers)


def test_three_answers_without_a_call_lead_to_the_forced_turn(slide: Slide, query: Query) -> None:
    played = Played(slide, query, [say("It is pink.")] * 3 + [report()])
    assert (played.outcome, played.environment.steps) == (Outcome.FORCED, 4)
    assert [r.tool_names == ["finish_and_report"] for r in played.requests] == [False, False, False, True]
    assert played.requests[-1].text.count("Your answer had no tool call.") == 2
    assert "3 answers in a row had no tool call." in played.requests[-1].text


@pytest.mark.parametrize("count", [1, 40])
def test_steps_are_limited_and_the_last_one_is_the_report(slide: Slide, query: Query, count: int) -> None:
    def answer(request: Request) -> Answer:
        return report() if len(request.tool_names) == 1 else calls(*[("get_image_info", {})] * count)

    played = Played(slide, query, answer)
    assert (played.outcome, played.environment.steps) == (Outcome.FORCED, max_steps(3))
    assert "One step is left." in played.requests[-1].text


@pytest.mark.parametrize("count", [1, 30])
def test_invalid_reports_cannot_run_past_the_steps(slide: Slide, query: Query, count: int) -> None:
    played = Played(slide, query, lambda request: calls(*[BAD] * count))
    assert (played.outcome, played.environment.steps) == (Outcome.NO_REPORT, max_steps(3))


def test_a_refusal_is_a_step_and_an_outcome_of_its_own(slide: Slide, query: Query) -> None:
    played = Played(slide, query, [say("", finish_reason="content_filter")])
    assert (played.outcome, played.environment.steps) == (Outcome.REFUSED, 1)


def test_an_endpoint_that_fails_is_not_the_models_answer(slide: Slide, query: Query) -> None:
    with pytest.raises(ModelError):
        Played(slide, query, [failure(401, "bad key")])


def test_requests_in_the_record_join_to_the_whole_conversation(slide: Slide, query: Query) -> None:
    played = Played(slide, query, [call("extract_roi", LOOK), say("hm"), report()])
    added = [event["messages_added"] for event in played.recorder.events.values() if event["kind"] == "request"]
    roles = [message["role"] for messages in added for message in messages]
    assert roles == ["system", "user", "assistant", "tool", "assistant", "user"]
    replies = [event for event in played.recorder.events.values() if event["kind"] == "reply"]
    assert (replies[1]["images_sent"], replies[1]["pixels_sent"]) == (2, 1024 * 1024 + 300 * 200)
    assert replies[0]["tokens"] == {"input": 11, "output": 7}
