"""What calls cost is summed; what nobody knows is null, with the reason."""

import itertools
import json
from typing import Any

import pytest

from pathnav.model.prices import load_prices
from pathnav.run.ledger import cost_fields, ledger
from support.chat_server import Answer, ChatServer, Request, call, failure, say
from support.commands import Bench, Command
from support.episodes import ask, endpoint

REPORT = {"conclusion": "here", "bbox": [600, 600, 100, 100], "confidence": 0.7}
PRICES = "format: pathnav-prices-1\ndate: 2026-05-01\nmodels: {canned: {input: 2, output: 10}}\n"


def reply(number: int, tokens: dict[str, int] | None = None, **more: Any) -> dict[str, Any]:
    fields = {"retries": 1, "seconds": 0.5, "images_sent": 2, "pixels_sent": 100, "image_bytes_sent": 10}
    return {"id": f"reply:{number}", "tokens": tokens, **fields, **more}


def request(number: int, required_tool: str | None = None) -> dict[str, Any]:
    return {"id": f"request:{number}", "required_tool": required_tool}


def test_a_ledger_sums_what_the_record_says() -> None:
    found = ledger(
        [reply(0, {"input": 10, "output": 1}), reply(1, {"input": 20, "output": 2})],
        [request(0), request(1, "finish_and_report"), request(2, "finish_and_report")],
        [{"tries": 4}, {}],
    )
    assert (found.calls, found.failed, found.forced, found.retries) == (2, 2, 2, 5)
    assert (found.seconds, found.images_sent, found.pixels_sent, found.bytes_sent) == (1.0, 4, 200, 20)
    assert found.tokens == {"input": 30, "output": 3}


def test_a_request_that_was_never_sent_did_not_fail() -> None:
    assert ledger([reply(0)], [request(0), request(1)]).failed == 0


def test_one_answer_without_usage_makes_the_tokens_unknown() -> None:
    assert ledger([reply(0, {"input": 10, "output": 1}), reply(1)]).tokens is None


def test_a_record_that_does_not_say_makes_the_bytes_unknown() -> None:
    old = {name: value for name, value in reply(0).items() if name != "image_bytes_sent"}
    assert ledger([old, reply(1)]).bytes_sent is None
    assert ledger([]).bytes_sent is None


@pytest.mark.parametrize(
    ("model", "calls", "tokens", "expected"),
    [
        ("gpt-4o", 2, {"input": 1000, "output": 100}, (0.0035, None)),
        ("gpt-4o", 2, None, (None, "no usage from the server")),
        ("gpt-4o", 0, None, (None, "no call was answered")),
        ("mine", 2, {"input": 1000, "output": 100}, (None, "no price for mine")),
        (None, 0, None, (None, None)),
    ],
)
def test_a_cost_that_is_not_known_says_why(
    model: str | None, calls: int, tokens: dict[str, int] | None, expected: tuple[float | None, str | None]
) -> None:
    fields = cost_fields(model, calls, tokens, load_prices())
    assert (fields["cost_usd"], fields["cost_unknown"]) == expected
    assert fields["prices_date"] == (None if model is None else load_prices().date.isoformat())


def test_an_episode_costs_what_its_calls_cost_at_the_prices_of_the_scenario(pathnav: Command, bench: Bench) -> None:
    (bench.folder / "prices.yaml").write_text(PRICES)
    scenario = bench.scenario(slides=1, agents=["vlm", "parent-centre"])
    with ChatServer(lambda request: call("finish_and_report", REPORT)) as server:
        asked = ("run", scenario, "--out", "kept", "--model", "canned", "--base-url", server.base_url)
        assert pathnav(*asked, "--set", "prices=prices.yaml").code == 0
    found = [json.loads(path.read_text()) for path in (bench.folder / "kept" / "episodes").glob("*/result.json")]
    asked_model = [one for one in found if one["model"]]
    assert len(asked_model) == 2
    for one in asked_model:
        tokens = one["tokens"]
        assert one["cost_usd"] == pytest.approx((2 * tokens["input"] + 10 * tokens["output"]) / 1e6)
        assert (one["cost_unknown"], one["prices_date"]) == (None, "2026-05-01")
        assert (one["calls"], one["failed_calls"], one["forced_calls"]) == (1, 0, 0)
        assert one["bytes_sent"] > 0 and one["call_seconds"] > 0
    for one in found:
        if one["model"] is None:
            assert (one["cost_usd"], one["cost_unknown"], one["prices_date"]) == (None, None, None)


def test_forced_and_failed_calls_are_counted(bench: Bench) -> None:
    silent = [say("hm"), say("hm"), say("hm")]
    with ChatServer([*silent, call("finish_and_report", REPORT)]) as server:
        result = ask(bench, "vlm", model=endpoint(server))
    assert (result["calls"], result["forced_calls"], result["failed_calls"]) == (4, 1, 0)
    assert result["cost_unknown"] == "no price for canned"


def test_a_call_that_never_got_an_answer_is_counted(bench: Bench) -> None:
    with ChatServer([say("hm"), failure(401, "no")]) as server:
        result = ask(bench, "vlm", model=endpoint(server))
    assert result["outcome"] == "infra_error"
    assert (result["calls"], result["failed_calls"]) == (1, 1)


@pytest.mark.parametrize("limit", [1, 2, 3, 5, 9, 99])
def test_the_records_sum_to_the_requests_that_the_server_saw(pathnav: Command, bench: Bench, limit: int) -> None:
    number = itertools.count()
    answers = (say("hm"), failure(500, "no", headers={"retry-after-ms": "1"}), call("get_image_info", {}))

    def answer(request: Request) -> Answer:
        return answers[next(number) % 7 % 3]

    with ChatServer(answer) as server:
        asked = ("--out", "kept", "--model", "canned", "--base-url", server.base_url, "--max-calls", limit)
        pathnav("run", bench.scenario(slides=1, agents=["vlm"]), *asked, "--workers", 2)
        seen = len(server.requests)
    found = [json.loads(path.read_text()) for path in (bench.folder / "kept" / "episodes").glob("*/result.json")]
    assert sum(one["calls"] + one["failed_calls"] + one["retries"] for one in found) == seen
    assert 0 < seen <= limit
