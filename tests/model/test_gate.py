"""The gate of an endpoint: how many requests pass, how fast, and when none does any more."""

import itertools
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


def test_requests_that_are_refused_together_count_as_one_refusal_of_a_crowd() -> None:
    gate = Gate(Rates(8))
    gate.reached()
    with ExitStack() as crowd:
        cuts = [crowd.enter_context(gate.admitted()) for _ in range(8)]
        gate.throttled(cuts[0], None)
        assert gate.size == 4
        gate.throttled(cuts[1], None)
        assert gate.size == 4
        for later in cuts[2:6]:
            gate.throttled(later, None)
    assert gate.size == 2


class Bears:
    """A server that answers so many requests at a time and refuses the rest."""

    def __init__(self, most: int, delay_s: float) -> None:
        self.most, self.here, self.sent, self.refused = most, 0, 0, 0
        self._delay_s, self._lock = delay_s, threading.Lock()

    def __call__(self, request: Request) -> Answer:
        with self._lock:
            self.sent += 1
            if self.here >= self.most:
                self.refused += 1
                return failure(429, "too many at a time")
            self.here += 1
        time.sleep(self._delay_s)
        with self._lock:
            self.here -= 1
        return say("ok")


def test_a_server_that_bears_two_is_hardly_refused_anything_and_used_to_the_full_once_it_bears_more() -> None:
    bears = Bears(2, delay_s=0.004)
    gate = Gate(Rates(8), clock=lambda: 1000 * time.monotonic())  # pauses of 15 s last 0.015 s
    patient = Backoff(tries=9, first_s=0.02, limit_s=0.05)
    with ChatServer(bears) as server, clients(server, gate, backoff=patient) as made:
        assert ask_all(made, 300) == [None] * 300
        assert bears.refused < 0.05 * bears.sent
        bears.most = 8
        time.sleep(0.24)  # four minutes on the gate's clock
        assert ask_all(made, 60) == [None] * 60
        assert gate.size == 8


def test_an_answer_wakes_one_of_those_who_wait() -> None:
    looks = itertools.count()  # a thread that is woken looks at the clock
    gate = Gate(Rates(1), clock=lambda: float(next(looks)) * 0)
    gate.reached()

    def pass_through(_: int) -> None:
        with gate.admitted():
            time.sleep(0.002)
        gate.succeeded()

    with ThreadPoolExecutor(40) as pool:
        list(pool.map(pass_through, range(80)))
    assert next(looks) < 8 * 80


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
    answers = [say("ok"), *[failure(401, "bad key")] * 9]
    with ChatServer(answers) as server, clients(server, gate) as made:
        ask_all(made, 7, threads=1)
        assert len(server.requests) == 1 + 3
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
