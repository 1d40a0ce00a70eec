"""Scores that are stored when they come: whatever fails, no answer that arrived is asked for again."""

import hashlib
import json
import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from pathnav.errors import ModelError
from pathnav.explore import Schedule, ScorerConfiguration, ScoreStore, TileScore, TileTree, TopK, explore
from support.chat_server import Answer, ChatServer, Request, failure, say
from support.exploring import WORKERS, detail, distinct, scoring, sent_jpeg
from support.phantoms import phantom
from support.scores import score_rows

WAIT_S, SOON_S = 60, 30


class Gauge:
    """Answers after a while and counts how many requests are in flight."""

    def __init__(self, most: int) -> None:
        self._lock = threading.Condition()
        self._most = most
        self.now = self.highest = 0

    def __call__(self, request: Request) -> Answer:
        with self._lock:
            self.now += 1
            self.highest = max(self.highest, self.now)
            self._lock.notify_all()
            self._lock.wait_for(lambda: self.highest >= self._most, timeout=5)  # until all are there that can be
        time.sleep(0.005)
        with self._lock:
            self.now -= 1
        return say("Yes 73")


@pytest.mark.parametrize("workers", [1, 2, 7, 16])
def test_as_many_requests_are_in_flight_as_there_are_workers_and_no_more(tiles_of: TileTree, workers: int) -> None:
    gauge = Gauge(workers)
    with scoring(gauge, workers=workers) as (scorer, server):
        scores = list(scorer.score(tiles_of.images(2, np.arange(60))))
    assert gauge.highest == workers
    assert len(scores) == len(server.requests) == 60


def test_a_score_is_given_when_its_answer_comes(tiles_of: TileTree) -> None:
    images, gate = distinct(tiles_of, 30), threading.Event()
    slow = sent_jpeg(images[0])

    def answer(request: Request) -> Answer:
        if tile_of(request) == slow:
            gate.wait(WAIT_S)
        return say("Yes 73")

    with scoring(answer) as (scorer, _):
        ready = scorer.score_as_ready(images)
        first = [next(ready) for _ in range(29)]
        assert 0 not in [place for place, _ in first]
        gate.set()
        (last,) = ready
    found: dict[int, TileScore] = dict([*first, last])
    assert [detail(found[place])["image"] for place in range(30)] == [sent_jpeg(image) for image in images]


def test_all_answers_that_came_before_and_after_a_failure_are_stored(tiles_of: TileTree, tmp_path: Path) -> None:
    answered: list[str] = []
    enough = threading.Event()
    first = threading.Lock()

    def answer(request: Request) -> Answer:
        if "10x" in request.text and first.acquire(blocking=False):  # the first of 36 tiles: 20 later ones come before
            assert enough.wait(WAIT_S)
            return failure(404, "gone")
        time.sleep(0.05 if enough.is_set() else 0)
        answered.append(tile_of(request))
        if len(answered) == 4 + 20:
            enough.set()
        return say("Yes 73")

    path, policy = tmp_path / "scores.sqlite", TopK(Schedule((4, 1, 1)))
    with scoring(answer) as (scorer, server), opened(path, tiles_of) as store:
        with pytest.raises(ModelError, match="gone"):
            explore(tiles_of, scorer, [policy], store=store)
        asked = len(server.requests)
        assert asked <= 4 + 20 + 1 + WORKERS, "none is begun after the failure"
        assert stored(path) == len(answered) == asked - 1
    with scoring(lambda request: say("Yes 73")) as (scorer, server), opened(path, tiles_of) as store:
        found = explore(tiles_of, scorer, [policy], store=store)
        assert len(server.requests) == found.requests_now == found.selections[0].requests - len(answered)


def tile_of(request: Request) -> str:
    return hashlib.sha256(request.jpegs[0]).hexdigest()


def opened(path: Path, tree: TileTree) -> ScoreStore:
    return ScoreStore(path, ScorerConfiguration("vlm", "1", {}, tree.tile_px), tree.fingerprint)


def stored(path: Path) -> int:
    with closing(sqlite3.connect(path)) as file:
        return int(file.execute("SELECT COUNT(*) FROM scores").fetchone()[0])


EXPLORE = [sys.executable, "-c", "import sys; from pathnav.cli import main; sys.exit(main(sys.argv[1:]))", "explore"]


def test_after_ctrl_c_nothing_is_begun_and_answers_under_way_are_stored(phantom_folder: Path, tmp_path: Path) -> None:
    files, out = phantom(phantom_folder), tmp_path / "out"
    is_stopped, is_full, lock = threading.Event(), threading.Event(), threading.Lock()
    begun: list[float] = []
    answered = []

    def answer(request: Request) -> Answer:
        with lock:
            begun.append(time.monotonic())
            number = len(begun)
        if number <= 6:
            answered.append(number)
            return say("Yes 73")
        if number == 6 + 4:
            is_full.set()
        is_stopped.wait(WAIT_S)
        time.sleep(WAIT_S if number > 7 else 0.3)  # of the four in flight one comes after Ctrl-C, the others never
        answered.append(number)
        return say("Yes 73")

    with ChatServer(answer) as server:
        options = ("--tile-px", "96", "--min-tissue", "0", "--concurrency", "4", "--out", str(out), "--json")
        address = ("--model", "any", "--base-url", server.base_url)
        command = [*EXPLORE, str(files.slide), *options, *address]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        try:
            while not is_full.wait(0.1):
                assert process.poll() is None, process.communicate()
            while len(score_rows(out)) < 6:  # Ctrl-C within a write would lose what waits to be written
                time.sleep(0.05)
            os.kill(process.pid, signal.SIGINT)
            stopped = time.monotonic()
            is_stopped.set()
            assert process.wait(WAIT_S) == 130
            assert time.monotonic() - stopped < 20
        finally:
            process.kill()
            printed = json.loads(process.communicate()[0])
        assert (printed["outcome"], printed["calls"], printed["calls_now"]) == ("interrupted", None, 7)
        assert len(begun) <= 6 + 6, "what waits for a connection has been begun; nothing else is"
        assert len(score_rows(out)) == len(answered) == 7
