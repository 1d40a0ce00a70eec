"""What the score files of a run folder hold."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any


def score_files(out: Path, scorer: str = "") -> list[Path]:
    """Return the score files of a run folder, of one scorer or of all."""
    return sorted((out / "scores").glob(f"{scorer}*.sqlite"))


def score_file(out: Path, scorer: str = "") -> Path:
    """Return the one score file of a run folder, or of one of its scorers."""
    (path,) = score_files(out, scorer)
    return path


def score_rows(out: Path, what: str = "*", scorer: str = "") -> list[tuple[Any, ...]]:
    """Return columns of all stored scores."""
    rows: list[tuple[Any, ...]] = []
    for path in score_files(out, scorer):
        with closing(sqlite3.connect(path)) as file:
            rows += file.execute(f"SELECT {what} FROM scores").fetchall()
    return rows
