"""The schedule of a recorded search runs again over its stored scores to the same tiles and hits."""

import json
import sqlite3
from pathlib import Path

import pytest

from pathnav.errors import ConfigError, RecordError
from pathnav.run.replay import replay_episode
from support.commands import Bench, Command
from support.exploring import Exploring, polygon, write_annotation
from support.scores import score_file


@pytest.fixture
def exploring(bench: Bench) -> Exploring:
    return Exploring(bench)


def searched(exploring: Exploring, pathnav: Command, *more: object) -> Path:
    """Record a search and return its folder."""
    out = exploring.bench.folder / "out"
    assert pathnav(*exploring.annotated("--out", out, *more)).code == 0
    (folder,) = (out / "episodes").iterdir()
    return folder


def files(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("scorer", ["vlm", "random", "oracle", "tissue-density"])
def test_a_search_runs_again_over_its_scores(exploring: Exploring, pathnav: Command, scorer: str) -> None:
    folder = searched(exploring, pathnav, "--scorer", scorer, "--seed", 4)
    before = files(exploring.bench.folder)
    found = replay_episode(folder)
    assert (found.mode, found.differences, found.not_compared) == ("schedule", (), ())
    assert found.events == 3
    assert files(exploring.bench.folder) == before


def test_a_users_scorer_is_not_needed(exploring: Exploring, pathnav: Command) -> None:
    folder = searched(exploring, pathnav, "--scorer", exploring.scorer("Left"))
    (exploring.bench.folder / "scorers.py").unlink()
    assert replay_episode(folder).is_equal


def test_two_scorers_in_one_folder_are_told_apart(exploring: Exploring, pathnav: Command) -> None:
    out = exploring.bench.folder / "out"
    for seed in (1, 2):
        assert pathnav(*exploring.annotated("--out", out, "--scorer", "random", "--seed", seed)).code == 0
    assert all(replay_episode(folder).is_equal for folder in (out / "episodes").iterdir())


def test_a_changed_score_and_a_changed_box_are_told(exploring: Exploring, pathnav: Command) -> None:
    folder = searched(exploring, pathnav, "--scorer", "random", "--schedule", "1,1,1")
    result = json.loads((folder / "result.json").read_text())
    kept = result["levels"][0]["kept_boxes"][0]
    with sqlite3.connect(score_file(folder.parent.parent)) as connection:
        connection.execute("UPDATE scores SET confidence = 0 WHERE magnification = 2.5 AND x = ? AND y = ?", kept[:2])
    connection.close()
    said = "\n".join(replay_episode(folder).differences)
    assert "2.5x.kept_boxes" in said or "no stored score" in said


def test_a_score_that_is_not_there_is_told(exploring: Exploring, pathnav: Command) -> None:
    folder = searched(exploring, pathnav, "--scorer", "random")
    with sqlite3.connect(score_file(folder.parent.parent)) as connection:
        connection.execute("DELETE FROM scores WHERE magnification = 40")
    connection.close()
    (line,) = replay_episode(folder).differences
    assert line.startswith("search: ")


def test_hits_are_not_compared_without_the_annotation_of_then(exploring: Exploring, pathnav: Command) -> None:
    folder = searched(exploring, pathnav, "--scorer", "oracle")
    write_annotation(exploring.annotation, polygon(0, 0, 50, 50))
    found = replay_episode(folder)
    assert found.is_equal
    assert "was changed since" in found.not_compared[0]
    exploring.annotation.unlink()
    assert "hits: " in replay_episode(folder).not_compared[0]


def test_a_search_without_its_scores_cannot_be_replayed(exploring: Exploring, pathnav: Command) -> None:
    folder = searched(exploring, pathnav, "--scorer", "random")
    with pytest.raises(ConfigError, match="whose answers are scores"):
        replay_episode(folder, model_from_record=True)
    score_file(folder.parent.parent).unlink()
    with pytest.raises(RecordError, match="is not there"):
        replay_episode(folder)
