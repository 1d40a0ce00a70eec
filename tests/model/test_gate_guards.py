"""Guards: what a run may use is set aside before it is spent, and never passed."""

import datetime
import io
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import pytest
from PIL import Image

from pathnav.errors import ConfigError, ModelError, RunStopped
from pathnav.model import ChatClient, ChatSettings, image_part, text_part
from pathnav.model.backoff import Backoff
from pathnav.model.call_price import TokenPricing, most_tokens
from pathnav.model.gate import Gate, Rates
from pathnav.model.guards import Guard, Limits
from pathnav.model.prices import Price, Prices
from pathnav.model.question import Question
from pathnav.model.terms import Terms
from support.asking import QUESTION
from support.chat_server import USAGE, Answer, ChatServer, Request, dropped, failure, say

PRICES = Prices(date=datetime.date(2026, 1, 1), models={"any": Price(input=1_000_000.0, output=1_000_000.0)})
"""A dollar a token: the answers of the canned server cost 18."""


def asked(server: ChatServer, guard: Guard, count: int, threads: int) -> list[BaseException | None]:
    """Ask many times and return what each question raised."""
    settings = ChatSettings(base_url=server.base_url, model="any", max_tokens=10)
    gate = Gate(Rates(threads), guard)
    with ExitStack() as stack:
        client = stack.enter_context(ChatClient(settings, gate=gate, backoff=Backoff(first_s=0.01)))
        with ThreadPoolExecutor(threads) as pool:
            futures = [pool.submit(client.ask, QUESTION) for _ in range(count)]
            return [future.exception() for future in futures]


def test_eight_threads_make_as_many_requests_as_were_allowed() -> None:
    with ChatServer(lambda request: say("ok")) as server:
        errors = asked(server, Guard(Limits(max_calls=13)), 40, 8)
        assert len(server.requests) == 13
    assert sum(error is None for error in errors) == 13
    assert {str(error) for error in errors if error} == {"the limit --max-calls 13 is reached"}


def test_tries_that_fail_count_as_calls() -> None:
    with ChatServer(lambda request: failure(500, "no")) as server:
        errors = asked(server, Guard(Limits(max_calls=6)), 10, 1)
        assert len(server.requests) == 6
    assert isinstance(errors[-1], RunStopped)


def test_money_is_set_aside_before_it_is_spent_and_the_rest_given_back() -> None:
    guard = Guard(Limits(max_usd=1000.0), TokenPricing(PRICES))
    bound = most_tokens(Question(QUESTION)) + 10
    with ChatServer(lambda request: say("ok", delay_s=0.01)) as server:
        errors = asked(server, guard, 100, 8)
        made = len(server.requests)
    assert guard.spent_usd == made * 18.0
    assert guard.spent_usd <= 1000.0
    assert 1000.0 - guard.spent_usd < bound, "it goes on as long as the most that a request can cost is left"
    assert "--max-usd 1000 is reached: " in str(errors[-1])


def test_what_is_set_aside_keeps_the_next_request_waiting_but_does_not_stop_it() -> None:
    bound = most_tokens(Question(QUESTION)) + 10
    guard = Guard(Limits(max_usd=bound * 1.5), TokenPricing(PRICES))
    with ChatServer(lambda request: say("ok", delay_s=0.2)) as server:
        errors = asked(server, guard, 2, 2)
    assert errors == [None, None]


def test_an_answer_without_usage_costs_the_most_and_a_refusal_nothing() -> None:
    bound = float(most_tokens(Question(QUESTION)) + 10)
    for answer, cost in (
        (say("ok", usage=None), bound),
        (say("ok", usage=dict.fromkeys(USAGE, 0)), bound),
        (failure(400, "no"), 0.0),
        (say("ok"), 18.0),
    ):
        guard = Guard(Limits(max_usd=10 * bound), TokenPricing(PRICES))
        with ChatServer([answer]) as server:
            asked(server, guard, 1, 1)
        assert guard.spent_usd == cost
    guard = Guard(Limits(max_usd=10 * bound), TokenPricing(PRICES))
    with ChatServer([say("ok"), dropped(), say("ok")]) as server:
        asked(server, guard, 2, 1)
    assert guard.spent_usd == 36.0 + bound, "a server that went silent may have worked"


def test_time_that_is_up_stops_the_next_request() -> None:
    now = [0.0]
    guard = Guard(Limits(max_minutes=2.0), clock=lambda: now[0])

    def answer(request: Request) -> Answer:
        now[0] += 50.0
        return say("ok")

    with ChatServer(answer) as server:
        errors = asked(server, guard, 5, 1)
        assert len(server.requests) == 3
    assert str(errors[-1]) == "the limit --max-minutes 2 is reached"


def test_a_model_without_a_price_is_refused() -> None:
    with pytest.raises(ConfigError, match="needs a price of model 'other'"):
        TokenPricing(PRICES).refuse_unpriced("other")
    TokenPricing(PRICES).refuse_unpriced("any")


@pytest.mark.parametrize(
    "limit", [{"max_calls": 0}, {"max_usd": -1.0}, {"max_minutes": 0.0}, {"max_usd": float("nan")}]
)
def test_limits_that_allow_nothing_are_refused(limit: dict[str, float]) -> None:
    with pytest.raises(ConfigError, match="above 0"):
        Limits(**limit)  # type: ignore[arg-type]


def test_text_and_pixels_bound_the_tokens() -> None:
    stream = io.BytesIO()
    Image.new("RGB", (280, 140)).save(stream, "JPEG")
    text = [{"role": "user", "content": [text_part("x" * 1000)]}]
    both = [{"role": "user", "content": [text_part("x" * 1000), image_part(stream.getvalue())]}]
    assert 1000 < most_tokens(Question(text)) < 1200
    assert most_tokens(Question(both)) - most_tokens(Question(text)) == 200 + 256
    assert most_tokens(Question([{"role": "user", "content": [image_part(b"no image")]}])) > 0


def test_after_the_episodes_time_a_failed_request_is_not_repeated() -> None:
    told: list[str] = []
    with ChatServer(lambda request: failure(500, "no")) as server:
        settings = ChatSettings(base_url=server.base_url, model="any")
        with ChatClient(settings) as client:
            bound = client.under(
                Terms(until_s=0.0, on_failed=lambda seconds, sentence, sent: told.append(f"{sent}: {sentence}"))
            )
            with pytest.raises(ModelError, match="HTTP 500"):
                bound.ask(QUESTION)
        assert len(server.requests) == 1
    assert len(told) == 1 and told[0].startswith("1: ")
