"""An endpoint that fails while the doctor asks says nothing of its model: what it did not answer is undecided."""

from collections.abc import Callable
from functools import cache

import pytest

from pathnav.model.probe import Examination
from pathnav.model.probe_finding import Result
from pathnav.model.probe_tools import probe_tools
from support.chat_server import Answer, Request, dropped, failure, html, say
from support.model_kinds import Kind
from support.probing import examined, finding, probed, results

KINDS = {
    "able": Kind(),
    "by text": Kind(tools="refused", logprobs="refused"),
    "blind": Kind(images="refused", refuses=("seed",)),
}
FAILURES = {
    "dropped": dropped(),
    "a web page": html(200),
    "busy": failure(429, "slow down", headers={"Retry-After": "1"}),
    "wrong key": failure(401, "key expired"),
    "forbidden": failure(403, "no credit"),
    "broken": failure(500, "CUDA error"),
    "bad gateway": html(502),
    "empty": Answer(body=b""),
    "refusing all": failure(400, "no"),
}


def fails_after(count: int, kind: Kind, fails: Answer) -> Callable[[Request], Answer]:
    """Return a server that answers as often as it says."""
    asked: list[Request] = []

    def answer(request: Request) -> Answer:
        asked.append(request)
        return kind.answer(request) if len(asked) <= count else fails

    return answer


@cache
def healthy(kind: str) -> Examination:
    """Return the examination of a server that never fails."""
    return examined(KINDS[kind])


def check(found: Examination, whole: Examination, refuses_key: bool) -> None:
    """Check that nothing is said but what was seen before the endpoint failed."""
    said = {one.probe: one for one in whole.findings}
    for one in found.findings:
        if one.probe == "steadiness":
            assert one.result is Result.NO and "the endpoint failed after" in one.seen
        elif one.result is Result.UNDECIDED and one != said.get(one.probe):
            assert (one.change, one.facts) == (None, {})
        else:
            assert (one.result, one.change) == (said[one.probe].result, said[one.probe].change)
    assert set(said) - {"placement_text"} <= set(results(found)) | {"placement_text"}
    assert found.chart.fields.items() <= whole.chart.fields.items()
    assert {name for name in whole.chart.fields if name not in found.chart.fields} <= set(found.chart.undecided)
    assert not found.usable and found.verdict.startswith("the endpoint failed after ")
    assert found.refuses_key is refuses_key is ("check the key" in found.verdict)


@pytest.mark.parametrize("fails", FAILURES)
@pytest.mark.parametrize("count", [3, 12])
def test_what_a_failing_endpoint_did_not_answer_is_undecided(fails: str, count: int) -> None:
    found = examined(fails_after(count, KINDS["able"], FAILURES[fails]))
    check(found, healthy("able"), fails in ("wrong key", "forbidden"))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("part", range(8))
def test_wherever_an_endpoint_fails_nothing_is_said_of_its_model(kind: str, part: int) -> None:
    whole = healthy(kind)
    asked = len(whole.chart.line.evidence)
    names = ("dropped", "wrong key", "broken")
    for count in range(2 + part, asked, 8):
        fails = names[count % len(names)]
        found = examined(fails_after(count, KINDS[kind], FAILURES[fails]))
        check(found, whole, fails == "wrong key")


def test_an_endpoint_that_fails_after_its_first_answer_leaves_all_undecided() -> None:
    found = examined(fails_after(1, KINDS["able"], FAILURES["broken"]))
    assert found.verdict.startswith("the endpoint failed after 1 answer: it answered HTTP 500")
    assert finding(found, "token_limit").result is Result.UNDECIDED


def test_a_refusal_by_an_endpoint_that_answers_all_else_is_a_refusal() -> None:
    for status in (400, 404, 422, 500, 501):
        able = Kind()

        def answer(request: Request, status: int = status, able: Kind = able) -> Answer:
            return failure(status, "image input is off") if request.images else able.answer(request)

        found = examined(answer)
        assert finding(found, "sight").result is Result.NO
        assert found.verdict == "the model does not see images: a run would measure nothing"


def test_pictures_that_time_out_leave_open_whether_the_model_sees() -> None:
    able = Kind()
    found = examined(
        lambda request: (
            failure(503, "busy") if len(request.images) == 1 and not request.tool_names else able.answer(request)
        )
    )
    assert finding(found, "sight").result is Result.UNDECIDED
    assert found.verdict.startswith("whether it can be run is undecided: sight got no answer; ")
    assert not found.usable
    assert "pixels_per_token" in found.chart.undecided


def test_a_placement_that_goes_unanswered_does_not_hide_the_one_that_is_seen() -> None:
    able = Kind()

    def answer(request: Request) -> Answer:
        in_tool = any(
            message["role"] == "tool" and isinstance(message["content"], list) for message in request.messages
        )
        return failure(503, "busy") if in_tool else able.answer(request)

    found = examined(answer)
    assert "tool: undecided (the question fails" in finding(found, "placement").seen
    assert found.usable and found.profile.placement == "user_after_tools"


def test_a_check_that_rests_on_an_undecided_one_is_undecided() -> None:
    def answer(request: Request) -> Answer:
        return failure(503, "busy") if request.tool_names else say("hello")

    chart = probed(answer, probe_tools)
    assert set(results(chart).values()) <= {"undecided", "no", "partly"}
    assert finding(chart, "tool_choice").seen == "it was not asked: tools is undecided"
    assert "tools" in chart.undecided and "tools" not in chart.fields
