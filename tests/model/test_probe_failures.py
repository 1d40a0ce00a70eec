"""Whatever an endpoint does when the doctor asks: a finding, or one sentence."""

import re

import pytest

from pathnav.errors import EndpointUnreachable, ModelError
from pathnav.model import ChatSettings
from pathnav.model.probe import examine
from pathnav.model.probe_answers import probe_logprobs, probe_seed
from pathnav.model.probe_finding import Result
from support.chat_server import Request, dropped, failure, html, say
from support.probing import examined, finding, probed


def garbage(request: Request):
    """Answer nonsense, by turns of several kinds."""
    kinds = (say("\ud83d %%% [[[ 1 2 3"), say(""), failure(500, "oops"), dropped(), say("{'tool': }"))
    return kinds[len(request.raw) % len(kinds)] if request.body.get("max_completion_tokens") != 12 else say("1 2 3")


def test_garbage_is_a_finding_and_never_a_crash() -> None:
    found = examined(garbage)
    assert not found.usable
    assert {"token_field"} <= set(found.chart.undecided)


def test_a_dead_endpoint_is_not_asked_to_the_end() -> None:
    found = examined(lambda request: say("1 2 3") if request.body.get("max_completion_tokens") == 12 else dropped())
    assert found.chart.line.calls <= 10
    assert finding(found, "sight").seen == "it was not asked: the endpoint failed before"
    assert not found.usable and found.verdict.startswith("the endpoint failed after ")


def test_a_failure_that_passes_is_asked_again_once() -> None:
    tries = []

    def flaky(request):
        tries.append(request)
        return failure(429, "slow down", headers={"Retry-After": "1"}) if len(tries) % 2 else say("hello")

    chart = probed(flaky, probe_seed)
    assert finding(chart, "seed").result is Result.YES
    assert chart.line.calls == 2


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (
            failure(401, "Incorrect API key provided: sk-planted"),
            r"HTTP 401 Unauthorized: Incorrect API key provided: \[key\]",
        ),
        (failure(404, "The model `any` does not exist"), "does not exist; check the base URL"),
        (html(200), "a web page.*check the base URL"),
        (failure(400, "temperature is not supported"), "temperature is not supported; nothing could be asked"),
    ],
)
def test_an_endpoint_that_cannot_be_asked_at_all_is_one_sentence(answer, said) -> None:
    with pytest.raises(ModelError) as caught:
        examined(lambda request: answer, api_key="sk-planted")
    assert re.search(said, caught.value.with_remedy)


def test_an_unreachable_address_is_one_sentence() -> None:
    with pytest.raises(EndpointUnreachable, match="refuses the connection"):
        examine(ChatSettings(base_url="http://127.0.0.1:9", model="any"))


def test_a_request_that_times_out_is_a_finding_and_is_not_repeated() -> None:
    chart = probed(lambda request: say("hello", delay_s=0.6), probe_seed, settings={"timeout_s": 0.2})
    assert finding(chart, "seed").seen == "the question fails: it did not answer within 0.2 s"
    assert finding(chart, "seed").result is Result.UNDECIDED
    assert set(chart.undecided) == {"sends_seed"}
    assert chart.profile.sends_seed is True
    assert chart.line.calls == 1


def test_a_busy_server_is_asked_three_times_and_is_no_refusal() -> None:
    chart = probed(lambda request: failure(503, "loading"), probe_seed, probe_logprobs)
    assert chart.line.calls == 6
    assert {finding.result for finding in chart.findings} == {Result.UNDECIDED}
    assert chart.profile.logprobs is True
