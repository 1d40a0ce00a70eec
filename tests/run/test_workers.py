"""A run in many threads and many processes comes to what one thread comes to; guards and Ctrl-C lose nothing."""

import json
import signal
import threading
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from pathnav.records import read_events
from support.chat_server import Answer, ChatServer, Request, failure
from support.commands import Bench, Command
from support.runs import CALLS, ended, named, navigate, outcomes, results, start, wait_for
from support.scores import score_files


def at(server: ChatServer, out: Path | str, *more: object) -> tuple[object, ...]:
    return ("--out", out, "--model", "m", "--base-url", server.base_url, *more)


@pytest.fixture
def scenario(bench: Bench) -> Path:
    """Return a scenario of 12 episodes, 4 of them of a model."""
    return bench.scenario(agents=["vlm", "random", "tissue-density"])


@pytest.fixture
def whole(pathnav: Command, scenario: Path, bench: Bench) -> dict[str, bytes]:
    """Return the results of the scenario, run one after the other."""
    with ChatServer(navigate) as server:
        assert pathnav("run", scenario, *at(server, "whole")).code == 0
    found = results(bench.folder / "whole")
    assert len(found) == 12
    return found


def test_four_workers_come_to_what_one_comes_to(
    pathnav: Command, scenario: Path, bench: Bench, whole: dict[str, bytes]
) -> None:
    with ChatServer(navigate) as server:
        said = pathnav("run", scenario, *at(server, "kept", "--workers", 4))
        assert len(server.requests) == 4 * CALLS
    assert said.code == 0, said.err
    assert "12 of 12 episodes" in said.err
    assert results(bench.folder / "kept") == whole


def test_workers_ask_at_the_same_time_within_the_models_concurrency(pathnav: Command, bench: Bench) -> None:
    here, most, lock = [0], [0], threading.Lock()

    def slow(request: Request) -> Answer:
        with lock:
            here[0] += 1
            most[0] = max(most[0], here[0])
        time.sleep(0.1)
        with lock:
            here[0] -= 1
        return navigate(request)

    with ChatServer(slow) as server:
        asked = at(server, "kept", "--workers", 6, "--set", "model.concurrency=3")
        assert pathnav("run", bench.scenario(agents=["vlm"], repeats=2), *asked).code == 0
    assert most[0] == 3


def test_workers_run_agents_without_a_model_and_searches_alike(pathnav: Command, bench: Bench) -> None:
    scenario = bench.scenario(slides=2, agents=["random", "tissue-weighted", "oracle"])
    document = yaml.safe_load(scenario.read_text())
    explore = {"scorers": ["random", "tissue-density"], "schedule": {"sweep": [[1, 1, 1], [2, 2, 2]]}, "tile_px": 64}
    for slide in document["cohort"]["slides"]:
        slide["tumour_free"] = True
    scenario.write_text(yaml.safe_dump(document | {"explore": explore}))
    for out, workers in (("one", 1), ("many", 5)):
        said = pathnav("run", scenario, "--out", out, "--workers", workers)
        assert said.code == 0, said.err
    assert len(results(bench.folder / "one")) == 12 + 8
    assert results(bench.folder / "many") == results(bench.folder / "one")


SLOW_SCORER = """
import time

from pathnav.explore import Source, TileScore


class Slow:
    def score(self, tiles):
        time.sleep(0.1)
        return [TileScore(True, 0.5, Source.COMPUTED) for _ in tiles]
"""


def test_searches_that_share_scores_wait_for_each_other(pathnav: Command, bench: Bench) -> None:
    scenario = bench.scenario(slides=1, agents=["random"])
    (bench.folder / "slow.py").write_text(SLOW_SCORER)
    document = yaml.safe_load(scenario.read_text())
    document["cohort"]["slides"][0]["tumour_free"] = True
    sweep = {"sweep": [0, 0.001, 0.002, 0.003]}
    explore = {"scorers": ["slow.py:Slow"], "schedule": [1, 1, 1], "tile_px": 64, "min_tissue": sweep}
    scenario.write_text(yaml.safe_dump(document | {"explore": explore}))
    said = pathnav("run", scenario, "--out", "kept", "--workers", 4)
    assert said.code == 0, said.err
    assert "left to other processes" not in said.err
    assert outcomes(bench.folder / "kept").count("finished") == len(results(bench.folder / "kept"))
    assert len(score_files(bench.folder / "kept")) == 1
    for number in (1, 2):
        assert pathnav("run", scenario, "--out", f"share{number}", "--shard", f"{number}/2").code == 0
    whole = [len(score_files(bench.folder / f"share{number}")) for number in (1, 2)]
    assert sorted(whole) == [0, 1], "searches that share scores are in one share"


def test_a_limit_of_calls_stops_and_the_same_command_goes_on(
    pathnav: Command, scenario: Path, bench: Bench, whole: dict[str, bytes]
) -> None:
    with ChatServer(navigate) as server:
        asked = ("run", scenario, *at(server, "kept", "--workers", 4, "--max-calls", 6, "--json"))
        first = pathnav(*asked)
        assert len(server.requests) == 6
        assert first.code == 1
        assert json.loads(first.out)["format"] == "pathnav-report-1"
        assert "the limit --max-calls 6 is reached; " in first.sentences[-1]
        assert "the same command goes on" in first.sentences[-1]
        assert set(outcomes(bench.folder / "kept")) <= {"finished", "interrupted", "no_report"}
        for _ in range(2):
            last = pathnav(*asked)
        assert last.code == 0, last.err
        asked_for = Counter(named(request) for request in server.requests)
    assert set(asked_for.values()) == {1}, "no reply is paid for twice"
    assert results(bench.folder / "kept") == whole


def test_a_limit_of_money_needs_a_price_before_anything_is_spent(
    pathnav: Command, scenario: Path, bench: Bench
) -> None:
    usage = {"prompt_tokens": 1000, "completion_tokens": 500}
    with ChatServer(lambda request: replace(navigate(request), usage=usage)) as server:
        said = pathnav("run", scenario, *at(server, "kept", "--max-usd", 5))
        assert (said.code, len(server.requests)) == (2, 0)
        assert "a price of model 'm'" in said.sentences[-1]
        assert not (bench.folder / "kept").exists()
        prices = {"format": "pathnav-prices-1", "date": "2026-01-01", "models": {"m": {"input": 1.0, "output": 1000.0}}}
        text = yaml.safe_dump(prices).replace("'2026-01-01'", "2026-01-01")
        (bench.folder / "prices.yaml").write_text(text)
        priced = at(server, "kept", "--prices", "prices.yaml", "--max-usd", 1.9)
        said = pathnav("run", scenario, *priced)
        assert said.code == 1
        assert "the limit --max-usd 1.9 is reached: 1.0020 USD are spent" in said.sentences[-1]
        assert len(server.requests) == 2


def test_a_limit_of_time_begins_nothing_new(pathnav: Command, bench: Bench) -> None:
    said = pathnav("run", bench.scenario(agents=["random"]), "--out", "kept", "--max-minutes", 0.000001)
    assert said.code == 1
    assert "the limit --max-minutes 1e-06 is reached; 4 episodes are left" in said.sentences[-1]


@pytest.mark.parametrize("workers", [1, 4])
def test_an_endpoint_that_is_down_stops_the_run_and_spares_the_cohort(
    pathnav: Command, bench: Bench, workers: int
) -> None:
    scenario = bench.scenario(slides=4, agents=["vlm"], repeats=3)
    with ChatServer(lambda request: failure(402, "expired")) as server:
        said = pathnav("run", scenario, *at(server, "kept", "--workers", workers))
        assert len(server.requests) <= 5 + workers
    assert said.code == 1
    assert "5 calls in a row failed" in said.sentences[-1] and "the same command goes on" in said.sentences[-1]
    found = Counter(outcomes(bench.folder / "kept"))
    assert 5 <= found["infra_error"] <= 5 + workers - 1
    assert sum(found.values()) <= 5 + 2 * workers
    with ChatServer(navigate) as server:
        assert pathnav("run", scenario, *at(server, "kept", "--workers", 4)).code == 0
    assert outcomes(bench.folder / "kept") == ["finished"] * 24


def test_an_endpoint_out_of_reach_leaves_nothing_whatever_the_workers(
    pathnav: Command, scenario: Path, bench: Bench
) -> None:
    with ChatServer(navigate) as server:
        asked = ("run", scenario, *at(server, "kept", "--workers", 8))
    before = bench.files()
    said = pathnav(*asked)
    assert said.code == 2
    assert "refuses the connection" in said.sentences[-1]
    assert bench.files() == before


def test_after_the_episodes_minutes_a_failed_request_is_not_repeated(pathnav: Command, bench: Bench) -> None:
    scenario = bench.scenario(slides=1, agents=["vlm"])
    with ChatServer(lambda request: failure(500, "no")) as server:
        said = pathnav("run", scenario, *at(server, "kept", "--episode-minutes", 0.0001))
        assert len(server.requests) == 2
    assert said.code == 1
    assert outcomes(bench.folder / "kept") == ["infra_error"] * 2
    logs = [read_events(path) for path in (bench.folder / "kept" / "episodes").glob("*/events.jsonl")]
    assert [sum(event["kind"] == "failed_call" for event in events) for events in logs] == [1, 1]


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("--workers", 0), "--workers must be a whole number from 1 to 256, got 0"),
        (("--shard", "3/2"), "--shard must be I/N with I from 1 to N, got 3/2"),
        (("--max-calls", 0), "--max-calls must be a whole number above 0, got 0"),
        (("--max-minutes", -1), "--max-minutes must be a number above 0, got -1"),
        (("--episode-minutes", 0), "--episode-minutes must be a number above 0, got 0"),
    ],
)
def test_a_manner_that_cannot_be_is_bad_input(
    pathnav: Command, bench: Bench, options: tuple[Any, ...], sentence: str
) -> None:
    said = pathnav("run", bench.scenario(), "--out", "kept", *options)
    assert (said.code, said.sentences) == (2, [f"pathnav: {sentence}"])
    assert not (bench.folder / "kept").exists()


def held_back(hold: list[bool]) -> Any:
    """Return a server that keeps its answers to itself for as long as `hold` has something in it."""

    def answer(request: Request) -> Answer:
        while hold:
            time.sleep(0.01)
        return navigate(request)

    return answer


def test_the_first_ctrl_c_finishes_what_runs_and_begins_nothing_new(
    scenario: Path, bench: Bench, pathnav: Command, whole: dict[str, bytes]
) -> None:
    hold, out = [True], bench.folder / "kept"
    with ChatServer(held_back(hold)) as server:
        asked = ("run", scenario, *at(server, out, "--workers", 2))
        process = start(*asked)
        wait_for(lambda: len(server.requests) == 1, process)
        process.send_signal(signal.SIGINT)
        time.sleep(0.5)
        hold.clear()
        ((code, said),) = ended([process])
        assert code == 130
        assert "no new episode begins; the 2 running episodes will be finished first" in said
        assert outcomes(out) == ["finished"] * 2
        assert pathnav(*asked).code == 0
        assert len(server.requests) == 4 * CALLS
    assert results(out) == whole


def test_the_second_ctrl_c_stops_at_once_and_nothing_is_lost(
    scenario: Path, bench: Bench, pathnav: Command, whole: dict[str, bytes]
) -> None:
    hold, out = [True], bench.folder / "kept"
    with ChatServer(held_back(hold)) as server:
        asked = ("run", scenario, *at(server, out, "--workers", 2))
        process = start(*asked)
        wait_for(lambda: len(server.requests) == 1, process)
        process.send_signal(signal.SIGINT)
        time.sleep(0.5)
        started = time.monotonic()
        process.send_signal(signal.SIGINT)
        ((code, _),) = ended([process])
        assert time.monotonic() - started < 20
        assert code == 130
        assert outcomes(out) == ["interrupted"] * 2
        hold.clear()
        assert pathnav(*asked).code == 0
    assert results(out) == whole


def test_processes_share_a_folder_and_ask_nothing_twice(scenario: Path, bench: Bench, whole: dict[str, bytes]) -> None:
    with ChatServer(navigate) as server:
        asked = ("run", scenario, *at(server, bench.folder / "kept", "--workers", 2))
        said = ended([start(*asked) for _ in range(3)])
        asked_for = Counter(named(request) for request in server.requests)
    assert [code for code, _ in said] == [0, 0, 0], said
    assert set(asked_for.values()) == {1}
    assert results(bench.folder / "kept") == whole


def test_what_another_process_runs_is_left_to_it(
    scenario: Path, bench: Bench, pathnav: Command, whole: dict[str, bytes]
) -> None:
    hold, out = [True], bench.folder / "kept"
    with ChatServer(held_back(hold)) as server:
        process = start("run", scenario, *at(server, out, "--shard", "1/4"))
        wait_for(lambda: len(server.requests) == 1, process)
        free = threading.Timer(2.0, hold.clear)
        free.start()
        said = pathnav("run", scenario, *at(server, out, "--shard", "1/4"))
        assert said.code == 0
        ((code, _),) = ended([process])
        assert code == 0
        for number in (2, 3, 4):
            assert pathnav("run", scenario, *at(server, out, "--shard", f"{number}/4")).code == 0
        assert max(Counter(named(request) for request in server.requests).values()) == 1
    assert results(out) == whole


def test_shards_come_to_the_whole(pathnav: Command, scenario: Path, bench: Bench, whole: dict[str, bytes]) -> None:
    sizes = []
    with ChatServer(navigate) as server:
        for number in (3, 1, 2):
            assert pathnav("run", scenario, *at(server, "kept", "--shard", f"{number}/3")).code == 0
            sizes.append(len(results(bench.folder / "kept")))
        assert len(server.requests) == 4 * CALLS
    assert sizes == [4, 8, 12]
    assert results(bench.folder / "kept") == whole
