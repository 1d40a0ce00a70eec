"""Two processes on one store share the work: no tile is scored twice while both live, nor lost when one dies."""

import os
import sqlite3
import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path

import pytest

from pathnav.explore import Schedule, ScorerConfiguration, ScoreStore, Source, TileScore, TileTree, TopK, explore
from pathnav.explore.claims import EXPIRY_S, Claim
from pathnav.geometry import Box
from support.tile_scorers import Noting

ROOT = Path(__file__).parents[2]
WAIT_S = 60
CONFIGURATION = ScorerConfiguration("test", "1", {}, 256)
BOXES = [Box(256 * n, 0, 256, 256) for n in range(4)]
NAMES = [(1, 1, 40.0, n, 0, 1, 1) for n in range(3)]

SHARING_RUN = """
import sys, time
from pathlib import Path
from pathnav.explore import Schedule, ScoreStore, TileTree, TopK, explore
from pathnav.slide import open_slide
from support.tile_scorers import Noting, answer

class Slow(Noting):
    def __init__(self, log, streams):
        super().__init__()
        self.log, self.streams = Path(log), streams == "True"
    def score(self, tiles):
        found = (self.one(tile) for tile in tiles)
        return found if self.streams else list(found)
    def one(self, tile):
        with self.log.open("a") as file:
            file.write(tile.name + "\\n")
        time.sleep(0.004)
        return answer(tile)

slide, store, log, streams = sys.argv[1:]
with open_slide(slide, mpp=0.25) as opened, ScoreStore(store) as scores:
    tree = TileTree(opened, 32)
    tree.eligible(0)
    print("ready", flush=True)
    sys.stdin.readline()
    explore(tree, Slow(log, streams), [TopK(Schedule((6, 5, 3)))], store=scores)
"""


@pytest.mark.parametrize("streams", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_two_live_processes_score_no_tile_twice_and_each_scores_some(
    tissue_path: Path, tree: TileTree, tmp_path: Path, streams: bool
) -> None:
    store = tmp_path / "scores.sqlite"
    logs = [tmp_path / f"{name}.txt" for name in ("one", "two")]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "tests")}
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", SHARING_RUN, str(tissue_path), str(store), str(log), str(streams)],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for log in logs
    ]
    for process in processes:
        assert process.stdout and process.stdout.readline() == "ready\n"
    for process in processes:
        assert process.stdin
        process.stdin.write("go\n")
        process.stdin.flush()
    for process in processes:
        process.communicate(timeout=WAIT_S)
    assert [process.returncode for process in processes] == [0, 0]
    asked = [log.read_text().splitlines() for log in logs]
    times = Counter(asked[0] + asked[1])
    whole = explore(tree, Noting(), [TopK(Schedule((6, 5, 3)))]).selections[0]
    assert set(times.values()) == {1}
    assert len(times) == sum(choice.scored.size for choice in whole.levels)
    assert min(len(part) for part in asked) > len(times) / 10
    with sqlite3.connect(store) as file:
        assert file.execute("SELECT COUNT(*) FROM claims").fetchone() == (0,)
    file.close()


def test_tiles_are_free_again_after_a_claim_whether_scored_or_not(tmp_path: Path) -> None:
    with ScoreStore(tmp_path / "scores.sqlite") as store:
        with pytest.raises(ZeroDivisionError), store.claimed(CONFIGURATION, "slide", 40.0, BOXES) as is_free:
            assert is_free == [True] * 4
            with store.claimed(CONFIGURATION, "slide", 40.0, BOXES) as again:
                assert again == [True] * 4, "a process does not wait for itself"
            raise ZeroDivisionError
        assert rows(tmp_path) == 0


def rows(folder: Path) -> int:
    file = sqlite3.connect(folder / "scores.sqlite")
    (count,) = file.execute("SELECT COUNT(*) FROM claims").fetchone()
    file.close()
    return int(count)


@pytest.fixture
def connection(tmp_path: Path) -> sqlite3.Connection:
    ScoreStore(tmp_path / "scores.sqlite").close()
    return sqlite3.connect(tmp_path / "scores.sqlite")


def test_what_another_machine_holds_is_free_when_it_has_not_renewed_it(connection: sqlite3.Connection) -> None:
    theirs, mine = Claim(host="elsewhere"), Claim()
    assert theirs.take(connection, NAMES[:2], now_s=1000) == [True, True]
    assert mine.take(connection, NAMES, now_s=1000 + EXPIRY_S - 1) == [False, False, True]
    theirs.renew(connection, now_s=1000 + EXPIRY_S - 1)
    assert mine.take(connection, NAMES, now_s=1000 + EXPIRY_S + 1) == [False, False, True]
    assert mine.take(connection, NAMES, now_s=1000 + 3 * EXPIRY_S) == [True] * 3
    connection.close()


def test_what_a_dead_process_holds_is_free_at_once(connection: sqlite3.Connection) -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait(WAIT_S)
    assert Claim(process=ended.pid).take(connection, NAMES, now_s=1000) == [True] * 3
    assert Claim().take(connection, NAMES, now_s=1001) == [True] * 3
    assert Claim(process=1).take(connection, NAMES[:1], now_s=1002) == [False]
    connection.close()


def test_a_long_batch_renews_its_claim(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pathnav.explore.claims.RENEWAL_S", 0.01)
    with (
        ScoreStore(tmp_path / "scores.sqlite") as store,
        store.claimed(CONFIGURATION, "slide", 40.0, BOXES),
    ):
        before = latest(tmp_path)
        for _ in range(500):
            threading.Event().wait(0.01)
            if latest(tmp_path) > before:
                break
        assert latest(tmp_path) > before


def latest(folder: Path) -> float:
    file = sqlite3.connect(folder / "scores.sqlite")
    (expires,) = file.execute("SELECT MAX(expires) FROM claims").fetchone()
    file.close()
    return float(expires)


def test_a_store_of_before_there_were_claims_is_read_and_used(tmp_path: Path) -> None:
    path, score = tmp_path / "scores.sqlite", TileScore(True, 0.5, Source.WORD, 1, {"text": "Yes", "tokens": None})
    with ScoreStore(path) as store:
        store.add(CONFIGURATION, "slide", 40.0, [(BOXES[0], score)])
    file = sqlite3.connect(path)
    file.execute("DROP TABLE claims")
    file.commit()
    file.close()
    with ScoreStore(path) as store, store.claimed(CONFIGURATION, "slide", 40.0, BOXES) as is_free:
        assert is_free == [True] * 4
        assert store.find(CONFIGURATION, "slide", 40.0, BOXES[:2]) == [score, None]
