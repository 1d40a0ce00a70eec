"""What commands print after Ctrl-C, what they count, and what they copy and price."""

import json
from pathlib import Path
from typing import Any

import pytest

from support.chat_server import Answer, ChatServer, Request, failure, say
from support.commands import Bench, Command
from support.exploring import Exploring

STOPS = '''
"""Plug-ins during which somebody presses Ctrl-C."""

from pathnav.explore import Source, TileScore


class Agent:
    def run(self, environment):
        environment.extract_roi(environment.query.region)
        raise KeyboardInterrupt


class Scorer:
    def score(self, tiles):
        for number, tile in enumerate(tiles):
            if number == 3:
                raise KeyboardInterrupt
            yield TileScore(True, 0.5, Source.COMPUTED)
'''
UNKNOWN = ("calls", "unparsed", "tokens", "cost_usd")


@pytest.fixture
def stops(bench: Bench) -> Path:
    path = bench.folder / "stops.py"
    path.write_text(STOPS, encoding="utf-8")
    return path


@pytest.mark.parametrize("is_kept", [True, False])
def test_a_stopped_search_prints_what_there_is(pathnav: Command, bench: Bench, stops: Path, is_kept: bool) -> None:
    out = ("--out", "kept") if is_kept else ()
    asked = Exploring(bench).plain("--scorer", f"{stops}:Scorer", *out)
    found = pathnav.json(*asked, code=130)
    assert (found["outcome"], found["levels"], found["calls_now"]) == ("interrupted", [], 3)
    assert [found[name] for name in UNKNOWN] == [None] * 4
    assert found["out"] == ("kept" if is_kept else None)
    assert list(found) == list(pathnav.json(*Exploring(bench).plain("--scorer", "random")))


def test_a_stopped_question_prints_what_there_is(pathnav: Command, bench: Bench, stops: Path) -> None:
    found = pathnav.json(*bench.words("--agent", f"{stops}:Agent"), code=130)
    assert (found["outcome"], found["box"], found["iou"], found["rois_used"]) == ("interrupted", None, None, 1)
    assert list(found) == list(pathnav.json(*bench.words("--agent", "random")))


def test_a_stopped_run_prints_what_there_is(pathnav: Command, bench: Bench, stops: Path) -> None:
    found = pathnav.json("run", bench.scenario(1, agents=[f"{stops}:Agent"]), "--out", "kept", code=130)
    assert found["format"] == "pathnav-report-1"
    assert found["episodes"]["planned"] == 2
    assert found["episodes"]["answered"] == 0


def test_ctrl_c_before_anything_is_recorded_prints_nothing(pathnav: Command, bench: Bench) -> None:
    path = bench.folder / "early.py"
    path.write_text("raise KeyboardInterrupt\n", encoding="utf-8")
    said = pathnav(*bench.words("--agent", f"{path}:Agent", "--json"))
    assert (said.code, said.out) == (130, "")


@pytest.mark.parametrize("command", ["explore", "locate"])
def test_after_ctrl_c_it_is_told_whether_anything_is_kept(
    pathnav: Command, bench: Bench, stops: Path, command: str
) -> None:
    asked = {
        "locate": bench.words("--agent", f"{stops}:Agent"),
        "explore": Exploring(bench).plain("--scorer", f"{stops}:Scorer"),
    }[command]
    said = pathnav(*asked)
    assert said.code == 130 and "Ctrl-C" in said.sentences[-1] and "--out DIR" in said.sentences[-1]
    kept = pathnav(*asked, "--out", "kept")
    assert "the same command goes on" in kept.sentences[-1]
    early = bench.folder / "early.py"
    early.write_text("raise KeyboardInterrupt\n", encoding="utf-8")
    plain = {"locate": bench.words("--agent"), "explore": Exploring(bench).plain("--scorer")}[command]
    said = pathnav(*plain, f"{early}:Any", "--out", "new")
    assert "nothing was done yet" in said.sentences[-1]


class Failing:
    """Answers so many requests, refuses as many, then answers all."""

    def __init__(self, answers: int, refusals: int) -> None:
        self._answers, self._refusals = answers, refusals
        self.asked = 0

    def __call__(self, request: Request) -> Answer:
        self.asked += 1
        is_refused = self._answers < self.asked <= self._answers + self._refusals
        return failure(400, "not this picture") if is_refused else say("Yes 73")


def test_failed_requests_are_counted_in_calls_now_and_in_the_ledger(pathnav: Command, bench: Bench) -> None:
    answer = Failing(2, 2)
    with ChatServer(answer) as server:
        address = ("--model", "any", "--base-url", server.base_url, "--concurrency", 1, "--schedule", "1,1,1")
        asked = Exploring(bench).plain(*address, "--out", "kept")
        first = pathnav.json(*asked, code=1)
        assert (first["outcome"], first["calls_now"]) == ("infra_error", answer.asked)
        failed = record(bench)["failed_calls"]
        assert 1 <= failed <= 2
        before = answer.asked
        codes = []
        while (said := pathnav(*asked, "--json")).code == 1:
            codes.append(said.code)
        last = json.loads(said.out)
    assert record(bench)["failed_calls"] == 2, "also those of earlier processes"
    assert last["calls"] == answer.asked - 2
    assert len(codes) == 2 - failed
    assert before < answer.asked
    again = pathnav.json(*asked)
    assert (again["calls"], again["calls_now"]) == (last["calls"], 0)


def record(bench: Bench) -> dict[str, Any]:
    (path,) = (bench.folder / "kept").glob("episodes/*/result.json")
    found: dict[str, Any] = json.loads(path.read_text())
    return found


def test_a_scorer_without_a_model_has_no_failed_calls(pathnav: Command, bench: Bench) -> None:
    assert pathnav(*Exploring(bench).plain("--scorer", "random", "--out", "kept")).code == 0
    assert record(bench)["failed_calls"] is None


def test_prices_of_ones_own_reach_a_single_request(pathnav: Command, bench: Bench) -> None:
    prices = bench.folder / "prices.yaml"
    models = "models: {mine: {input: 1, output: 2}}"
    prices.write_text(f"format: pathnav-prices-1\ndate: 2026-11-01\n{models}\n")
    with ChatServer(lambda request: say("Yes 73")) as server:
        address = ("--model", "mine", "--base-url", server.base_url, "--prices", prices)
        searched = pathnav.json(*Exploring(bench).plain(*address, "--schedule", "1,1,1"))
        located = pathnav.json(*bench.words(*address))
    for found in (searched, located):
        tokens = found["tokens"]
        assert found["cost_usd"] == pytest.approx(1e-6 * tokens["input"] + 2e-6 * tokens["output"])


@pytest.mark.parametrize("command", ["locate", "explore"])
def test_a_single_request_is_copied_without_names(pathnav: Command, bench: Bench, command: str) -> None:
    asked = {
        "locate": bench.words("--agent", "random"),
        "explore": Exploring(bench).plain("--scorer", "random"),
    }[command]
    assert pathnav(*asked, "--out", "kept", "--anonymise", "plain").code == 0
    texts = [path.read_text() for path in (bench.folder / "plain").rglob("*.json*")]
    assert len(texts) >= 2
    assert not any("a.tif" in text for text in texts)
    assert pathnav("report", "plain").code == 0
