"""Killed with SIGKILL again and again, a run of many workers comes to what it would have come to undisturbed."""

import os
import random
import signal
import time
from pathlib import Path

import pytest

from support.chat_server import ChatServer
from support.commands import Bench, Command
from support.runs import CALLS, named, navigate, recorded, results, start, wait_for


def killed_and_continued(bench: Bench, pathnav: Command, kills: int, seed: int) -> None:
    """Kill a run at random moments, continue it, and hold it against one that nobody disturbed."""
    rng, out = random.Random(seed), bench.folder / "killed"
    scenario = bench.scenario(agents=["vlm", "random", "tissue-weighted"], repeats=max(2, kills // 4))
    with ChatServer(navigate) as server:
        asked = ("--model", "m", "--base-url", server.base_url)
        assert pathnav("run", scenario, "--out", "whole", *asked, "--workers", 3).code == 0
        whole, needed = results(bench.folder / "whole"), len(server.requests)
        server.requests.clear()
        step, count = needed // (kills + 1), 0
        for number in range(kills):
            known, before = recorded(out), len(server.requests)
            process = start("run", scenario, "--out", out, *asked, "--workers", 3)
            due = rng.randint(1, max(1, step))
            wait_for(lambda before=before, due=due: len(server.requests) >= before + due, process)
            time.sleep(rng.uniform(0, 0.03))
            os.kill(process.pid, signal.SIGKILL)
            process.communicate()
            repeated = known & {named(request) for request in server.requests[before:]}
            assert not repeated, f"kill {number}: replies on record were asked for again"
            count += 1
        known, before = recorded(out), len(server.requests)
        assert pathnav("run", scenario, "--out", out, *asked, "--workers", 3).code == 0
        assert not known & {named(request) for request in server.requests[before:]}
        in_flight = len(server.requests) - needed
    assert count == kills
    assert 0 <= in_flight <= 3 * kills, "only what was under way at a kill is asked again"
    assert needed == CALLS * len(list(Path("whole/episodes").iterdir())) // 3
    assert results(out) == whole


@pytest.mark.slow
def test_killed_three_times_a_run_has_the_same_results(bench: Bench, pathnav: Command) -> None:
    killed_and_continued(bench, pathnav, kills=3, seed=1)


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_killed_twenty_times_a_run_has_the_same_results(bench: Bench, pathnav: Command) -> None:
    killed_and_continued(bench, pathnav, kills=20, seed=2)
