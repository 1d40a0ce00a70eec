"""Stored scores come back as they were, whoever writes, and a killed run scores no tile twice."""

import multiprocessing
import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from pathnav.errors import RecordError
from pathnav.explore import Schedule, ScorerConfiguration, ScoreStore, Source, TileScore, TileTree, TopK, explore
from pathnav.geometry import Box
from support.store_writers import write_many
from support.tile_scorers import Logging, Noting

CONFIGURATION = ScorerConfiguration("test", "1", {}, 256)
ROOT = Path(__file__).parents[2]
WAIT_S = 60

SCORES = [
    TileScore(True, 0.123456789, Source.LOGPROBS, 1, {"text": "Yes", "tokens": [512, 1]}),
    TileScore(False, 0.0, Source.STATED, 2),
    TileScore(True, 1.0, Source.WORD, 0),
    TileScore.unparsed(2, {"text": "I cannot tell – maybe"}),
]


def boxes(count: int) -> list[Box]:
    return [Box(256 * n, 0, 256, 256) for n in range(count)]


def pairs(scores: list[TileScore]) -> list[tuple[Box, TileScore]]:
    return list(zip(boxes(len(scores)), scores, strict=True))


def test_scores_come_back_as_they_were_also_after_reopening(tmp_path: Path) -> None:
    with ScoreStore(tmp_path / "scores.sqlite", CONFIGURATION, "slide") as store:
        assert store.add(40.0, pairs(SCORES)) == SCORES
        assert store.find(40.0, boxes(5)) == [*SCORES, None]
    with ScoreStore(tmp_path / "scores.sqlite", CONFIGURATION, "slide") as store:
        assert store.find(40.0, boxes(5)) == [*SCORES, None]


def test_a_score_is_that_of_its_magnification_and_box(tmp_path: Path) -> None:
    with ScoreStore(tmp_path / "scores.sqlite", CONFIGURATION, "slide") as store:
        store.add(40.0, pairs(SCORES))
        assert store.find(10.0, boxes(4)) == [None] * 4
        assert store.find(40.0, [Box(0, 0, 256, 255), Box(0, 1, 256, 256)]) == [None] * 2


@pytest.mark.parametrize(
    ("configuration", "slide", "word"),
    [(ScorerConfiguration("test", "1", {"seed": 1}, 256), "slide", "scorer"), (CONFIGURATION, "other", "slide")],
)
def test_scores_of_another_scorer_or_slide_are_never_ours(
    tmp_path: Path, configuration: ScorerConfiguration, slide: str, word: str
) -> None:
    ScoreStore(tmp_path / "scores.sqlite", CONFIGURATION, "slide").close()
    with pytest.raises(RecordError, match=f"holds scores of the {word}"):
        ScoreStore(tmp_path / "scores.sqlite", configuration, slide)


def test_the_first_score_of_a_tile_stands(tmp_path: Path) -> None:
    with ScoreStore(tmp_path / "scores.sqlite", CONFIGURATION, "slide") as store:
        store.add(40.0, pairs(SCORES[:2]))
        assert store.add(40.0, pairs(SCORES[::-1])) == [*SCORES[:2], SCORES[1], SCORES[0]]


def test_the_store_says_what_scored_and_has_a_format(tmp_path: Path) -> None:
    with ScoreStore(tmp_path / "scores.sqlite", CONFIGURATION, "slide") as store:
        store.add(40.0, pairs(SCORES))
    file = sqlite3.connect(tmp_path / "scores.sqlite")
    assert file.execute("SELECT format FROM about").fetchall() == [("pathnav-scores-2",)]
    assert file.execute("SELECT configuration FROM about").fetchall() == [(CONFIGURATION.as_text(),)]
    assert file.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    file.close()


def not_a_database(path: Path) -> None:
    path.write_text("a note, long enough to be read as the header of a database" * 20)


def another_format(path: Path) -> None:
    ScoreStore(path, CONFIGURATION, "slide").close()
    file = sqlite3.connect(path)
    file.execute("UPDATE about SET format = 'pathnav-scores-9'")
    file.commit()
    file.close()


def a_folder(path: Path) -> None:
    path.mkdir()


@pytest.mark.parametrize(
    ("spoil", "sentence"),
    [
        (not_a_database, "cannot be used as a store of scores: file is not a database"),
        (another_format, "of the format pathnav-scores-9, expected pathnav-scores-2"),
        (a_folder, "cannot be used as a store of scores: unable to open"),
    ],
)
def test_a_file_that_is_no_store_is_refused(tmp_path: Path, spoil: Callable[[Path], None], sentence: str) -> None:
    spoil(tmp_path / "scores.sqlite")
    with pytest.raises(RecordError, match=sentence):
        ScoreStore(tmp_path / "scores.sqlite", CONFIGURATION, "slide")


def test_a_score_that_makes_no_sense_is_refused(tmp_path: Path) -> None:
    with ScoreStore(tmp_path / "scores.sqlite", CONFIGURATION, "slide") as store:
        store.add(40.0, pairs(SCORES))
        file = sqlite3.connect(tmp_path / "scores.sqlite")
        file.execute("UPDATE scores SET confidence = 7 WHERE source = 'word'")
        file.commit()
        file.close()
        with pytest.raises(RecordError, match=r"must be in \[0, 1\], got 7"):
            store.find(40.0, boxes(4))


def test_a_detail_that_is_no_json_is_refused_and_nothing_is_stored(tmp_path: Path) -> None:
    bad = TileScore(True, 0.5, Source.WORD, detail={"image": object()})
    with ScoreStore(tmp_path / "scores.sqlite", CONFIGURATION, "slide") as store:
        with pytest.raises(RecordError, match="detail of a score"):
            store.add(40.0, pairs([SCORES[0], bad]))
        assert store.find(40.0, boxes(2)) == [None, None]


def test_a_closed_store_says_so(tmp_path: Path) -> None:
    store = ScoreStore(tmp_path / "scores.sqlite", CONFIGURATION, "slide")
    store.close()
    store.close()
    with pytest.raises(RecordError, match="has been closed"):
        store.find(40.0, boxes(1))


def test_threads_may_share_a_store(tmp_path: Path) -> None:
    def work(store: ScoreStore, thread: int) -> None:
        for n in range(50):
            store.add(40.0, [(Box(n, thread, 1, 1), SCORES[0])])

    with ScoreStore(tmp_path / "scores.sqlite", CONFIGURATION, "slide") as store:
        threads = [threading.Thread(target=work, args=(store, n)) for n in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for n in range(8):
            found = store.find(40.0, [Box(x, n, 1, 1) for x in range(50)])
            assert found == [SCORES[0]] * 50


def test_processes_may_open_and_write_at_once(tmp_path: Path) -> None:
    path, context = tmp_path / "scores.sqlite", multiprocessing.get_context("spawn")
    processes = [context.Process(target=write_many, args=(path, CONFIGURATION, 50 * n)) for n in range(4)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(WAIT_S)
    assert [process.exitcode for process in processes] == [0] * 4
    with ScoreStore(path, CONFIGURATION, "slide") as store:
        found = store.find(40.0, [Box(n, 0, 1, 1) for n in range(250)])
    assert all(score is not None and n - 100 < score.requests <= n for n, score in enumerate(found))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_process_gets_a_connection_of_its_own(tmp_path: Path) -> None:
    with ScoreStore(tmp_path / "scores.sqlite", CONFIGURATION, "slide") as store:
        store.add(40.0, pairs(SCORES[:1]))
        process = multiprocessing.get_context("fork").Process(target=store.add, args=(10.0, pairs(SCORES[:2])))
        process.start()
        process.join(WAIT_S)
        assert process.exitcode == 0
        store.add(2.5, pairs(SCORES[:3]))
        assert [len([s for s in store.find(m, boxes(4)) if s]) for m in (40, 10, 2.5)] == [
            1,
            2,
            3,
        ]


HANGS_AFTER = 68
HANGING_RUN = """
import sys
from pathlib import Path
from pathnav.explore import Schedule, ScorerConfiguration, ScoreStore, TileTree, TopK, explore
from pathnav.slide import open_slide
from support.tile_scorers import Logging
slide, store, log, hangs_after, streams = sys.argv[1:]
with open_slide(slide, mpp=0.25) as opened:
    scorer, tree = Logging(Path(log), int(hangs_after), streams == "True"), TileTree(opened, 32)
    with ScoreStore(store, ScorerConfiguration.of(scorer, 32), tree.fingerprint) as scores:
        explore(tree, scorer, [TopK(Schedule((6, 5, 3)))], store=scores)
"""


@pytest.mark.parametrize("streams", [True, False])
def test_a_killed_run_goes_on_without_scoring_a_tile_twice(
    tissue_path: Path, tree: TileTree, tmp_path: Path, streams: bool
) -> None:
    store, log = tmp_path / "scores.sqlite", tmp_path / "log.txt"
    arguments = [str(tissue_path), str(store), str(log), str(HANGS_AFTER), str(streams)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "tests")}
    process = subprocess.Popen([sys.executable, "-c", HANGING_RUN, *arguments], env=environment)
    try:
        deadline = time.monotonic() + WAIT_S
        while not log.with_suffix(".hanging").exists():
            assert process.poll() is None, "the run ended before it hung"
            assert time.monotonic() < deadline
            time.sleep(0.02)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait(WAIT_S)
    assert HANGS_AFTER <= len(log.read_text().splitlines()) < HANGS_AFTER + Logging.batch_tiles
    policies = [TopK(Schedule((6, 5, 3)))]
    scorer = Logging(log, None, streams)
    with ScoreStore(store, ScorerConfiguration.of(scorer, 32), tree.fingerprint) as scores:
        found = explore(tree, scorer, policies, store=scores)
    times = Counter(log.read_text().splitlines())
    assert set(times.values()) == {1}
    assert len(times) == sum(choice.scored.size for choice in found.selections[0].levels)
    whole = explore(tree, Noting(), policies).selections[0]
    assert [c.kept.tolist() for c in found.selections[0].levels] == [c.kept.tolist() for c in whole.levels]
