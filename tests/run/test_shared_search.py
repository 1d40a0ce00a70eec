"""The same search asked by two processes at once, and stopped by SIGTERM: real processes and a server that counts."""

import json
import signal
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from support.chat_server import Answer, ChatServer, Request, say
from support.commands import Bench, Command
from support.exploring import Exploring
from support.runs import start, wait_for


def slowly(request: Request) -> Answer:
    return replace(say("Yes 73"), delay_s=0.02)


@pytest.fixture
def server() -> Iterator[ChatServer]:
    with ChatServer(slowly) as served:
        yield served


def asked(bench: Bench, server: ChatServer, *more: object) -> tuple[object, ...]:
    address = ("--model", "any", "--base-url", server.base_url, "--concurrency", 2, "--schedule", "2,2,1")
    return Exploring(bench).plain(*address, *more, "--json")


def only(out: bytes) -> dict[str, Any]:
    (line,) = out.splitlines()
    found: dict[str, Any] = json.loads(line)
    return found


def test_a_search_that_another_process_runs_is_refused(bench: Bench, pathnav: Command) -> None:
    is_free = threading.Event()

    def once_free(request: Request) -> Answer:
        is_free.wait(60)
        return say("Yes 73")

    with ChatServer(once_free) as waiting:
        words = asked(bench, waiting, "--out", "kept")
        process = start(*words)
        wait_for(lambda: len(waiting.requests) > 0, process)
        said = pathnav(*words)
        assert (said.code, said.out) == (2, "")
        assert "in use by another run" in said.sentences[-1]
        is_free.set()
        out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    assert only(out)["calls"] == len(waiting.requests)


@pytest.mark.parametrize("is_kept", [True, False])
def test_sigterm_records_and_prints_what_there_is_and_exits_with_143(
    bench: Bench, server: ChatServer, pathnav: Command, is_kept: bool
) -> None:
    words = asked(bench, server, *(("--out", "kept") if is_kept else ()))
    process = start(*words)
    wait_for(lambda: len(server.requests) > 5, process)
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=30)
    assert process.returncode == 143, err
    assert only(out)["outcome"] == "interrupted"
    told = err.decode().splitlines()[-1]
    assert told.startswith("pathnav: stopped by SIGTERM; ")
    assert ("nothing is kept without --out DIR" in told) is not is_kept
    if is_kept:
        (path,) = Path("kept").glob("episodes/*/result.json")
        assert json.loads(path.read_text())["reason"] == "stopped by SIGTERM"
        before = len(server.requests)
        assert pathnav(*words).code == 0
        assert len(server.requests) > before > 5


def test_sigterm_stops_a_run_at_once_and_the_same_command_goes_on(
    bench: Bench, server: ChatServer, pathnav: Command
) -> None:
    scenario = bench.scenario(1, agents=["vlm"])
    with ChatServer(lambda request: replace(say("no"), delay_s=20.0)) as silent:
        process = start("run", scenario, "--out", "kept", "--model", "any", "--base-url", silent.base_url, "--json")
        wait_for(lambda: len(silent.requests) > 0, process)
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=15)
    assert process.returncode == 143, err
    assert only(out)["episodes"]["answered"] == 0
    (path, *_) = Path("kept").glob("episodes/*/result.json")
    found = json.loads(path.read_text())
    assert (found["outcome"], found["reason"]) == ("interrupted", "stopped by SIGTERM")
    again = pathnav("run", scenario, "--out", "kept", "--model", "any", "--base-url", server.base_url, "--json")
    assert again.code == 0, again
    assert json.loads(again.out)["episodes"]["unfinished"] == []
