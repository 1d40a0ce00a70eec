"""The gate of an endpoint: how many requests pass, how fast, and when none does any more."""

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager

import pytest

from pathnav.errors import ConfigError, ModelError, RunStopped
from pathnav.model import ChatClient, ChatSettings
from pathnav.model.backoff import Backoff
from pathnav.model.gate import Gate, Rates
from support.asking import QUESTION
from support.chat_server import Answer, ChatServer, Request, failure, say

FAST = Backoff(first_s=0.01, limit_s=0.05)


class Crowd:
    """Answers slowly and counts how many requests are there at a time."""

    def __init__(self, answer: Callable[[int], Answer], delay_s: float = 0.02) -> None:
        self.here, self.most, self.count = 0, 0, 0
        self._lock = threading.Lock()
        self._answer, self._delay_s = answer, delay_s

    def __call__(self, request: Request) -> Answer:
        with self._lock:
            self.here, number = self.here + 1, self.count
            self.count += 1
            self.most = max(self.most, self.here)
        time.sleep(self._delay_s)
        with self._lock:
            self.here -= 1
        return self._answer(number)


@contextmanager
def clients(server: ChatServer, gate: Gate, count: int = 2, backoff: Backoff = FAST) -> Iterator[list[ChatClient]]:
    """Give several clients of one endpoint that share a gate."""
    settings = [ChatSettings(base_url=server.base_url, model="any", seed=seed) for seed in range(count)]
    made = [ChatClient(one, gate=gate, backoff=backoff) for one in settings]
    yield made
    for client in made:
        client.close()


def ask_all(made: list[ChatClient], count: int, threads: int = 12) -> list[BaseException | None]:
    """Ask many times from many threads and return what each raised."""
    with ThreadPoolExecutor(threads) as pool:
        futures = [pool.submit(made[number % len(made)].ask, QUESTION) for number in range(count)]
        return [future.exception() for future in futures]


def test_clients_of_one_endpoint_share_its_places() -> None:
    crowd = Crowd(lambda number: say("ok"))
    with ChatServer(crowd) as server, clients(server, Gate(Rates(4))) as made:
        assert ask_all(made, 40) == [None] * 40
    assert 2 <= crowd.most <= 4


def test_the_first_question_is_asked_alone() -> None:
    crowd = Crowd(lambda number: say("ok"), delay_s=0.2)
    with ChatServer(crowd) as server, clients(server, Gate(Rates(8))) as made, ThreadPoolExecutor(8) as pool:
        futures = [pool.submit(made[0].ask, QUESTION) for _ in range(8)]
        time.sleep(0.1)
        assert crowd.count == 1
        assert [future.result().text for future in futures] == ["ok"] * 8


def test_places_halve_on_429_once_for_requests_that_were_under_way_together_and_grow_back_by_one() -> None:
    gate = Gate(Rates(8))
    gate.reached()
    for _ in range(3):
        gate.throttled(0, None)
    assert gate.size == 4
    gate.throttled(1, None)
    assert gate.size == 2
    sizes = []
    for _ in range(2 + 3 + 4 + 5 + 6 + 7):
        gate.succeeded()
        sizes.append(gate.size)
    assert (sizes[0], sizes[1], sizes[4], sizes[-1]) == (2, 3, 4, 8)
    gate.succeeded()
    assert gate.size == 8


def test_a_crowd_shrinks_on_429_and_every_question_is_answered_in_the_end() -> None:
    crowd = Crowd(lambda number: failure(429, "slow down") if 8 <= number < 12 else say("ok"))
    gate = Gate(Rates(8))
    with ChatServer(crowd) as server, clients(server, gate) as made:
        assert ask_all(made, 20) == [None] * 20
        assert gate.size < 8
        assert ask_all(made, 60) == [None] * 60
        assert gate.size == 8


@pytest.mark.parametrize("status", [429, 503])
def test_retry_after_holds_back_all_threads_of_the_endpoint(status: int) -> None:
    busy = failure(status, "wait", headers={"Retry-After": "1"})
    with ChatServer(lambda request: busy if len(server.requests) == 2 else say("ok")) as server, ExitStack() as stack:
        made = stack.enter_context(clients(server, Gate(Rates(4))))
        made[0].ask(QUESTION)
        assert ask_all(made, 8, threads=1) == [None] * 8
    seen = [request.received for request in server.requests]
    assert seen[2] - seen[1] >= 0.95
    assert seen[-1] - seen[2] < 0.9


def test_requests_per_minute_space_the_requests() -> None:
    gate = Gate(Rates(8, requests_per_minute=1200))
    with ChatServer(lambda request: say("ok")) as server, clients(server, gate) as made:
        assert ask_all(made, 12) == [None] * 12
    seen = sorted(request.received for request in server.requests)
    assert seen[-1] - seen[0] >= 11 * 0.05 * 0.9


def test_five_calls_that_fail_in_a_row_close_the_gate_and_spare_the_rest() -> None:
    gate = Gate(Rates(1), stops_after=5)
    with ChatServer(lambda request: failure(500, "dead")) as server, clients(server, gate) as made:
        errors = ask_all(made, 30, threads=1)
        assert len(server.requests) == 5 * FAST.tries
    stopped = [error for error in errors if isinstance(error, RunStopped)]
    assert len(stopped) == 25
    assert "5 calls in a row failed" in str(stopped[0]) and "HTTP 500" in str(stopped[0])


def test_a_success_between_failures_keeps_the_gate_open() -> None:
    gate = Gate(Rates(1), stops_after=5)

    def answer(request: Request) -> Answer:
        return say("ok") if len(server.requests) % 17 == 0 else failure(500, "flaky")

    with ChatServer(answer) as server, clients(server, gate) as made:
        ask_all(made, 30, threads=1)
    assert gate.closed is None


def test_a_refused_request_is_no_outage() -> None:
    gate = Gate(Rates(1), stops_after=2)
    with ChatServer(lambda request: failure(400, "no images here")) as server, clients(server, gate) as made:
        errors = ask_all(made, 6, threads=1)
    assert gate.closed is None
    assert all(isinstance(error, ModelError) and not isinstance(error, RunStopped) for error in errors)


def test_a_wrong_key_is_an_outage() -> None:
    gate = Gate(Rates(1), stops_after=3)
    with ChatServer(lambda request: failure(401, "bad key")) as server, clients(server, gate) as made:
        ask_all(made, 6, threads=1)
        assert len(server.requests) == 3
    assert gate.closed is not None


def test_who_waits_is_woken_when_the_gate_closes() -> None:
    gate, busy = Gate(Rates(4)), failure(503, "no", headers={"Retry-After": "100"})
    with ChatServer(lambda request: busy) as server, clients(server, gate) as made, ThreadPoolExecutor(4) as pool:
        futures = [pool.submit(made[0].ask, QUESTION) for _ in range(4)]
        while not server.requests:
            time.sleep(0.01)
        started = time.monotonic()
        gate.close(RunStopped("enough"))
        assert [str(future.exception()) for future in futures] == ["enough"] * 4
    assert time.monotonic() - started < 5


def test_threads_that_fail_together_warn_once_a_second(caplog: pytest.LogCaptureFixture) -> None:
    crowd = Crowd(lambda number: failure(500, "busy") if 0 < number <= 12 else say("ok"), delay_s=0.01)
    with ChatServer(crowd) as server, clients(server, Gate(Rates(12)), backoff=Backoff(first_s=0.05)) as made:
        made[0].ask(QUESTION)
        started = time.monotonic()
        ask_all(made, 12)
        seconds = time.monotonic() - started
    said = [record for record in caplog.records if record.levelname == "WARNING"]
    assert 1 <= len(said) <= 1 + seconds


@pytest.mark.parametrize("rates", [{"concurrency": 0}, {"requests_per_minute": 0}])
def test_rates_that_let_nothing_pass_are_refused(rates: dict[str, int]) -> None:
    with pytest.raises(ConfigError, match=r"at least 1|above 0"):
        Rates(**rates)
