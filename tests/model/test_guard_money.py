"""Money set aside and given back: nobody waits where nothing is under way, whatever the sums."""

import random
import threading
import time
from collections.abc import Callable
from contextlib import suppress

import pytest

from pathnav.errors import RunStopped
from pathnav.model import ChatClient, ChatSettings, Tokens
from pathnav.model.gate import Gate, Rates
from pathnav.model.guards import Guard, Limits
from pathnav.model.question import Question
from support.asking import QUESTION
from support.chat_server import ChatServer, say

SETTINGS = ChatSettings("http://127.0.0.1:1", "any")


class Named:
    """A request may cost what it says, and costs nobody knows what."""

    def bound(self, settings: ChatSettings, question: Question) -> float:
        return float(question.messages[0]["usd"])

    def cost(self, settings: ChatSettings, tokens: Tokens | None) -> float | None:
        return None


def priced(usd: float) -> Question:
    return Question([{"usd": usd}])


def ends(work: Callable[[], None], within_s: float) -> bool:
    """Return whether work comes to an end, without waiting for it for ever."""
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(within_s)
    return not thread.is_alive()


def test_nothing_is_left_of_sums_that_were_set_aside_and_given_back() -> None:
    guard = Guard(Limits(max_usd=0.75), Named())
    with guard.reserved(SETTINGS, priced(0.1)) as one, guard.reserved(SETTINGS, priced(0.2)) as other:
        one.settle(0.0)
        other.settle(0.0)
        with guard.reserved(SETTINGS, priced(0.3)) as third:
            third.settle(0.0)
    told: list[str] = []

    def ask_for_too_much() -> None:
        try:
            with guard.reserved(SETTINGS, priced(0.8)):
                pass
        except RunStopped as error:
            told.append(str(error))

    assert ends(ask_for_too_much, 10), "it waits for requests that are over"
    assert told == ["the limit --max-usd 0.75 is reached: 0.0000 USD are spent and the next request may cost 0.8000"]


@pytest.mark.parametrize("seed", range(4))
def test_many_threads_with_any_sums_come_to_an_end_and_never_pass_the_limit(seed: int) -> None:
    guard = Guard(Limits(max_usd=3.0), Named())
    stops: list[str] = []

    def ask(own: int) -> None:
        rng = random.Random(1000 * seed + own)
        with suppress(RunStopped):
            while True:
                bound = rng.uniform(0.001, 0.4)
                with guard.reserved(SETTINGS, priced(bound)) as reservation:
                    time.sleep(rng.uniform(0, 0.002))
                    reservation.settle(rng.choice([None, 0.0, bound * rng.random()]))
        stops.append("stopped")

    threads = [threading.Thread(target=ask, args=(own,), daemon=True) for own in range(16)]
    for thread in threads:
        thread.start()
    end_s = time.monotonic() + 20
    for thread in threads:
        thread.join(max(0.0, end_s - time.monotonic()))
    assert len(stops) == 16, f"{16 - len(stops)} threads wait for nothing"
    assert 2.6 <= guard.spent_usd <= 3.0


def test_who_waits_for_money_is_not_asked_for_after_the_end() -> None:
    guard = Guard(Limits(max_usd=15.0), _FixedPrice())
    gate = Gate(Rates(2), guard)
    with ChatServer(lambda request: say("ok", delay_s=0.8)) as server:
        settings = ChatSettings(server.base_url, "any")
        gate.reached()
        with ChatClient(settings, gate=gate) as client:
            threads = [threading.Thread(target=_quietly, args=(client,), daemon=True) for _ in range(2)]
            for thread in threads:
                thread.start()
            time.sleep(0.3)
            gate.close(RunStopped("Ctrl-C"))
            for thread in threads:
                thread.join(10)
        assert len(server.requests) == 1


class _FixedPrice:
    def bound(self, settings: ChatSettings, question: Question) -> float:
        return 10.0

    def cost(self, settings: ChatSettings, tokens: Tokens | None) -> float:
        return 1.0


def _quietly(client: ChatClient) -> None:
    with suppress(RunStopped):
        client.ask(QUESTION)
