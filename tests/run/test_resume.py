"""Killed with SIGKILL at any moment and run again, an episode ends as if nothing had happened."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pathnav.records import read_events
from support.chat_server import Answer, ChatServer, Request, call, calls
from support.commands import Bench, Command

LOOKS = [
    ("extract_roi", {"x": 200, "y": 200, "w": 300, "h": 300, "reason": "dense"}),
    ("extract_roi", {"x": 900, "y": 800, "w": 300, "h": 300, "reason": "pale"}),
    ("extract_roi", {"x": 5000, "y": 0, "w": 10, "h": 10, "reason": "outside: refused, costs nothing"}),
]
TURNS: list[Callable[[], Answer]] = [
    lambda: call("get_image_info", {}, ids=["info"]),
    lambda: calls(LOOKS[0], LOOKS[2], ids=["first", "refused"]),
    lambda: call(*LOOKS[1], ids=["second"]),
    lambda: call(
        "finish_and_report", {"conclusion": "x", "bbox": [250, 250, 300, 300], "confidence": 0.5}, ids=["end"]
    ),
]
TIMES = ("seconds", "call_seconds")


def answer(request: Request) -> Answer:
    """Answer by the turn that the conversation has come to, so that a request sent again gets the same answer."""
    return TURNS[sum(message["role"] == "assistant" for message in request.messages)]()


def command(*arguments: object) -> list[str]:
    return [sys.executable, "-c", "import sys; from pathnav.cli import main; sys.exit(main())", *map(str, arguments)]


def results(out: Path) -> dict[str, dict[str, Any]]:
    """Return all results by key, without times."""
    found = {path.parent.name: json.loads(path.read_text()) for path in (out / "episodes").glob("*/result.json")}
    return {key: {name: value for name, value in one.items() if name not in TIMES} for key, one in found.items()}


def episode_of(out: Path) -> Path:
    (path,) = (out / "episodes").iterdir()
    return path


def kill(process: "subprocess.Popen[bytes]") -> None:
    os.kill(process.pid, signal.SIGKILL)
    process.wait()


def start(*arguments: object) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(command(*arguments), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def wait_for(reached: Callable[[], bool], process: "subprocess.Popen[bytes]", limit_s: float = 120) -> None:
    """Wait until something is so, or the process has ended."""
    deadline = time.monotonic() + limit_s
    while not reached() and process.poll() is None:
        assert time.monotonic() < deadline
        time.sleep(0.002)


def events_of(out: Path) -> int:
    logs = list((out / "episodes").glob("*/events.jsonl")) if out.exists() else []
    return sum(log.read_bytes().count(b"\n") for log in logs)


@pytest.fixture
def undisturbed(bench: Bench, pathnav: Command, tmp_path: Path) -> dict[str, dict[str, Any]]:
    """Run the episode once from beginning to end."""
    with ChatServer(answer) as server:
        said = pathnav(*bench.node("--model", "m", "--base-url", server.base_url, "--out", tmp_path / "whole"))
    assert said.code == 0, said.err
    found = results(tmp_path / "whole")
    (one,) = found.values()
    assert (one["outcome"], one["rois_used"], one["steps"]) == ("finished", 2, 5)
    return found


@pytest.mark.parametrize("turn", [0, *(pytest.param(turn, marks=pytest.mark.slow) for turn in (1, 2)), len(TURNS) - 1])
def test_killed_while_a_turn_waits_for_its_answer(
    bench: Bench, pathnav: Command, tmp_path: Path, undisturbed: dict[str, dict[str, Any]], turn: int
) -> None:
    hold, out = [True], tmp_path / "killed"

    def slow(request: Request) -> Answer:
        while hold and sum(message["role"] == "assistant" for message in request.messages) == turn:
            time.sleep(0.01)
        return answer(request)

    with ChatServer(slow) as server:
        asked = bench.node("--model", "m", "--base-url", server.base_url, "--out", out)
        process = start(*asked)
        wait_for(lambda: len(server.requests) == turn + 1, process)
        kill(process)
        hold.clear()
        before = len(server.requests)
        assert pathnav(*asked).code == 0
        again = len(server.requests) - before
    assert results(out) == undisturbed
    assert again == len(TURNS) - turn, "no answer that was recorded is asked for again"


@pytest.mark.parametrize(
    "count", [pytest.param(count, marks=[pytest.mark.slow] if count % 4 == 3 else []) for count in range(1, 16, 2)]
)
def test_killed_after_any_event(
    bench: Bench, pathnav: Command, tmp_path: Path, undisturbed: dict[str, dict[str, Any]], count: int
) -> None:
    out = tmp_path / "killed"
    with ChatServer(answer) as server:
        asked = bench.node("--model", "m", "--base-url", server.base_url, "--out", out)
        process = start(*asked)
        wait_for(lambda: events_of(out) >= count, process)
        kill(process)
        assert pathnav(*asked).code == 0
    assert results(out) == undisturbed
    events = read_events(episode_of(out) / "events.jsonl")
    assert max(Counter(event["id"] for event in events).values()) == 1
    assert sum(event["kind"] == "roi" for event in events) == 2, "no ROI is counted twice"
    replies = [event["id"] for event in events if event["kind"] == "reply"]
    assert replies == [f"reply:{number}" for number in range(len(TURNS))]


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("seed", range(2))
def test_a_scenario_killed_twenty_times_has_the_same_results(
    bench: Bench, pathnav: Command, tmp_path: Path, seed: int
) -> None:
    rng = random.Random(seed)
    scenario = bench.scenario(agents=["vlm", "random", "tissue-weighted", "oracle"], repeats=2)
    assert pathnav("run", scenario, "--out", tmp_path / "whole").code == 0
    out, kills = tmp_path / "killed", 0
    while kills < 20:
        before = events_of(out)
        process = start("run", scenario, "--out", out)
        wait_for(lambda before=before: events_of(out) > before, process)
        time.sleep(rng.uniform(0, 0.4))
        if process.poll() is not None:
            break
        kill(process)
        kills += 1
    assert kills > 3
    assert pathnav("run", scenario, "--out", out).code == 0
    assert results(out) == results(tmp_path / "whole")
