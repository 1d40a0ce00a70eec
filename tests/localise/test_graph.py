"""The state machine against a real server: each thing a model can do wrong gets a reply, and the episode ends well."""

import json

import numpy as np
import pytest

from pathnav.cohort.protocol import max_steps
from pathnav.cohort.query import Query
from pathnav.errors import ModelError
from pathnav.geometry import Box
from pathnav.localise import Outcome
from pathnav.slide import Slide
from support.chat_server import Answer, Request, call, calls, failure, say
from support.playing import ANSWER, LOOK, Played, report


def test_an_episode_looks_and_reports(slide: Slide, query: Query) -> None:
    played = Played(slide, query, [call("get_image_info", {}), call("extract_roi", LOOK), report()])
    assert played.outcome is Outcome.FINISHED
    assert played.environment.rois_used == 1
    assert played.environment.steps == 3
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
    ):
        assert line in first.text.splitlines()
    captions = [part["text"] for part in first.parts if part["type"] == "text" and "level-0 box" in part["text"]]
    assert captions == ["Overview of the search region: 1024 x 1024 px at 40x, level-0 box [0, 0, 1024, 1024]"]
    assert first.tool_names == ["get_image_info", "extract_roi", "finish_and_report"]


def test_the_image_that_arrives_is_the_box_that_was_asked_for(slide: Slide, query: Query) -> None:
    played = Played(slide, query, [call("extract_roi", LOOK), report()], guides=False)
    arrived = np.asarray(played.requests[1].images[1]).astype(int)
    truth = slide.read(Box(100, 200, 300, 200), magnification=40.0).astype(int)
    assert arrived.shape == truth.shape
    assert np.abs(arrived - truth).mean() < 2 and np.abs(arrived - truth).max() < 40


MISTAKES: dict[str, tuple[Answer, str]] = {
    "malformed": (call("extract_roi", '{"x": 1, "y":'), "not a valid JSON object"),
    "not-an-object": (call("extract_roi", "[1, 2]"), "not a valid JSON object"),
    "nan": (call("extract_roi", '{"x": NaN, "y": 0, "w": 5, "h": 5}'), "not a valid JSON object"),
    "unknown-tool": (call("zoom_in", {}), "available: get_image_info, extract_roi, finish_and_report"),
    "missing": (call("extract_roi", {"x": 1, "y": 2, "w": 3}), "h is missing"),
    "not-a-number": (call("extract_roi", {**LOOK, "x": "left"}), "x: "),
    "infinite": (call("extract_roi", '{"x": 0, "y": 0, "w": 1e999, "h": 5, "reason": ""}'), "search region"),
    "outside": (call("extract_roi", {**LOOK, "x": 5000}), "x from 0 to 1024"),
    "negative": (call("extract_roi", {**LOOK, "w": -3}), "x from 0 to 1024"),
    "bad-report": (call("finish_and_report", {**ANSWER, "bbox": [5000, 5000, 10, 10]}), "x from 0 to 1024"),
    "short-report": (call("finish_and_report", {**ANSWER, "bbox": [1, 2, 3]}), "bbox"),
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


def test_numbers_and_boxes_written_as_text_are_taken(slide: Slide, query: Query) -> None:
    look = {name: str(value) for name, value in LOOK.items()}
    played = Played(slide, query, [call("extract_roi", look), report(bbox="[1, 2, 30, 40]", confidence="high")])
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
    both = calls(
        ("finish_and_report", ANSWER), ("extract_roi", LOOK), ("finish_and_report", {**ANSWER, "bbox": [0, 0, 1, 1]})
    )
    played = Played(slide, query, [both])
    assert played.outcome is Outcome.FINISHED
    assert played.environment.rois_used == 0 and played.environment.steps == 1
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


def test_a_report_beside_the_last_look_is_a_free_one(slide: Slide, query: Query) -> None:
    last = calls(("extract_roi", LOOK), ("finish_and_report", ANSWER))
    played = Played(slide, query, [call("extract_roi", LOOK)] * 2 + [last])
    assert played.outcome is Outcome.FINISHED


def test_a_forced_report_that_is_not_valid_gets_one_more_try(slide: Slide, query: Query) -> None:
    bad = report(bbox=[9000, 9000, 5, 5])
    looks = [call("extract_roi", LOOK)] * 3
    assert Played(slide, query, [*looks, bad, report()]).outcome is Outcome.FORCED
    assert Played(slide, query, [*looks, bad, bad]).outcome is Outcome.NO_REPORT


def test_three_answers_without_a_call_lead_to_the_forced_turn(slide: Slide, query: Query) -> None:
    played = Played(slide, query, [say("It is pink.")] * 3 + [report()])
    assert played.outcome is Outcome.FORCED
    assert [r.tool_names == ["finish_and_report"] for r in played.requests] == [False, False, False, True]
    assert "Your answer had no tool call." in played.requests[1].text
    assert played.environment.steps == 4


def test_a_model_that_never_calls_a_tool_ends_in_format_errors(slide: Slide, query: Query) -> None:
    played = Played(slide, query, [say("It is pink.")] * 5)
    assert played.outcome is Outcome.FORMAT_ERRORS
    assert len(played.requests) == 5


def test_a_call_between_silent_answers_starts_the_count_again(slide: Slide, query: Query) -> None:
    answers = [say("a"), say("b"), call("extract_roi", LOOK), say("c"), say("d"), report()]
    assert Played(slide, query, answers).outcome is Outcome.FINISHED


def test_steps_are_limited_and_the_last_one_is_the_report(slide: Slide, query: Query) -> None:
    played = Played(slide, query, lambda r: report() if len(r.tool_names) == 1 else call("get_image_info", {}))
    assert played.outcome is Outcome.FORCED
    assert played.environment.steps == max_steps(3)
    assert "One step is left." in played.requests[-1].text


def test_many_calls_in_one_turn_cannot_run_past_the_steps(slide: Slide, query: Query) -> None:
    def answer(request: Request) -> Answer:
        return report() if len(request.tool_names) == 1 else calls(*[("get_image_info", {})] * 40)

    played = Played(slide, query, answer)
    assert played.outcome is Outcome.FORCED
    assert played.environment.steps == max_steps(3)


def test_a_refusal_is_an_outcome_of_its_own(slide: Slide, query: Query) -> None:
    assert Played(slide, query, [say("", finish_reason="content_filter")]).outcome is Outcome.REFUSED


def test_a_context_that_overflows_is_an_outcome_of_its_own(slide: Slide, query: Query) -> None:
    said = "This model's maximum context length is 8192 tokens. However, you requested 9000 tokens."
    assert Played(slide, query, [failure(400, said)]).outcome is Outcome.CONTEXT_OVERFLOW


def test_an_endpoint_that_fails_is_not_the_models_answer(slide: Slide, query: Query) -> None:
    with pytest.raises(ModelError):
        Played(slide, query, [failure(401, "bad key")])


def test_requests_in_the_record_join_to_the_whole_conversation(slide: Slide, query: Query) -> None:
    played = Played(slide, query, [call("extract_roi", LOOK), say("hm"), report()])
    added = [event["messages_added"] for event in played.recorder.events.values() if event["kind"] == "request"]
    roles = [message["role"] for messages in added for message in messages]
    assert roles == ["system", "user", "assistant", "tool", "assistant", "user"]
    replies = [event for event in played.recorder.events.values() if event["kind"] == "reply"]
    assert replies[1]["images_sent"] == 2
    assert replies[1]["pixels_sent"] == 1024 * 1024 + 300 * 200
    assert replies[0]["tokens"] == {"input": 11, "output": 7}
