"""Scores that outlive the process: one SQLite file for one scorer's configuration and one slide.

A score is named by the magnification and the tile's box. The first score of a name stands: what a second process found
for the same tile is dropped.
"""

import json
import os
import sqlite3
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from pathnav.errors import RecordError
from pathnav.explore.scorer import ScorerConfiguration, Source, TileScore
from pathnav.geometry import Box
from pathnav.records import redacted

FORMAT = "pathnav-scores-2"
BUSY_TIMEOUT_S = 60.0
_WAL_TRIES = 100  # switching to WAL answers "locked" at once while another process does the same, whatever the timeout
_WAL_PAUSE_S = 0.05

_TABLES = (
    """CREATE TABLE IF NOT EXISTS about (
        format TEXT NOT NULL, configuration TEXT NOT NULL, fingerprint TEXT NOT NULL, failed_calls INTEGER NOT NULL
    )""",
    """CREATE TABLE IF NOT EXISTS scores (
        magnification REAL NOT NULL,
        x INTEGER NOT NULL, y INTEGER NOT NULL, width INTEGER NOT NULL, height INTEGER NOT NULL,
        yes INTEGER, confidence REAL, source TEXT NOT NULL, requests INTEGER NOT NULL, detail TEXT,
        PRIMARY KEY (magnification, x, y, width, height)
    ) WITHOUT ROWID""",
)
_FIND = (
    "SELECT yes, confidence, source, requests, detail FROM scores "
    "WHERE magnification = ? AND x = ? AND y = ? AND width = ? AND height = ?"
)
_ADD = "INSERT OR IGNORE INTO scores VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"


class ScoreStore:
    """An open store of scores; one connection per process under a lock, opened anew after a fork.

    Args:
        path: The file; made where it is missing, in a folder that exists; for the user alone.
        configuration: What scores its tiles.
        fingerprint: The slide's.
        secret: A key that must not stand in the file; `[key]` stands in its place.

    Raises:
        RecordError: If it cannot be opened, is not such a store, or is another scorer's or slide's.
    """

    def __init__(
        self, path: str | Path, configuration: ScorerConfiguration, fingerprint: str, *, secret: str | None = None
    ) -> None:
        self.path, self.configuration, self.fingerprint = str(path), configuration, fingerprint
        self._secret = secret
        self._lock = threading.Lock()
        self._connections: dict[int, sqlite3.Connection] = {}
        self._is_closed = False
        with self._connected() as connection:
            self._check_about(connection)

    @classmethod
    def existing(cls, path: str | Path) -> Self:
        """Return a store that is there, whatever scorer and slide it is of.

        Raises:
            RecordError: If it is none.
        """
        try:
            with closing(sqlite3.connect(path)) as connection:
                text, fingerprint = connection.execute("SELECT configuration, fingerprint FROM about").fetchone()
        except (sqlite3.Error, TypeError) as error:
            raise RecordError(f"{path} cannot be used as a store of scores: {error}") from error
        return cls(path, ScorerConfiguration(**json.loads(text)), fingerprint)

    def find(self, magnification: float, boxes: Sequence[Box]) -> list[TileScore | None]:
        """Return the stored scores of some tiles, None where there is none.

        Args:
            magnification: 2.5, 10 or 40.
            boxes: The tiles' boxes: whole level-0 pixels.

        Raises:
            RecordError: If the store cannot be read.
        """
        with self._connected() as connection:
            return [_find(connection, (magnification, *_corners(box))) for box in boxes]

    def add(self, magnification: float, scored: Sequence[tuple[Box, TileScore]]) -> list[TileScore]:
        """Store scores in one transaction and return those that now stand: another process may have come first.

        Args:
            magnification: 2.5, 10 or 40.
            scored: Boxes of tiles, in whole level-0 pixels, with their scores.

        Raises:
            RecordError: If the store cannot be written, or a score's detail has no JSON form.
        """
        names = [(magnification, *_corners(box)) for box, _ in scored]
        rows = [(*name, *_as_row(score, self._secret)) for name, (_, score) in zip(names, scored, strict=True)]
        with self._connected() as connection, _transaction(connection):
            if connection.executemany(_ADD, rows).rowcount == len(rows):
                return [score for _, score in scored]
            found = (_find(connection, name) for name in names)
            return [score for score in found if score is not None]

    def add_failed(self) -> int:
        """Count a request that failed with all its tries, and return how many did so far, of all processes.

        Raises:
            RecordError: If the store cannot be written.
        """
        with self._connected() as connection, _transaction(connection):
            connection.execute("UPDATE about SET failed_calls = failed_calls + 1")
        return self.failed()

    def failed(self) -> int:
        """Return how many requests failed so far, of all processes.

        Raises:
            RecordError: If the store cannot be read.
        """
        with self._connected() as connection:
            return int(connection.execute("SELECT failed_calls FROM about").fetchone()[0])

    def close(self) -> None:
        """Close this process's connection; closing twice does no harm."""
        with self._lock:
            self._is_closed = True
            connection = self._connections.pop(os.getpid(), None)
            if connection is not None:
                connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @contextmanager
    def _connected(self) -> Iterator[sqlite3.Connection]:
        """Hold this process's connection; the parent's of a forked process stays untouched, as SQLite demands."""
        if self._is_closed:
            raise RecordError(f"{self.path} has been closed; open it again")
        with self._lock:
            try:
                if os.getpid() not in self._connections:
                    self._connections[os.getpid()] = _connect(self.path)
                yield self._connections[os.getpid()]
            except sqlite3.Error as error:
                raise RecordError(
                    f"{self.path} cannot be used as a store of scores: {error}", remedy="mend it or move it away"
                ) from error

    def _check_about(self, connection: sqlite3.Connection) -> None:
        ours = (FORMAT, self.configuration.as_text(), self.fingerprint)
        with _transaction(connection):
            for table in _TABLES:
                connection.execute(table)
            found = connection.execute("SELECT format, configuration, fingerprint FROM about").fetchone()
            if found is None:
                connection.execute("INSERT INTO about VALUES (?, ?, ?, 0)", ours)
        if found is not None and found != ours:
            what, expected, came = next(
                one for one in zip(("format", "scorer", "slide"), ours, found, strict=True) if one[1] != one[2]
            )
            raise RecordError(f"{self.path} holds scores of the {what} {came}, expected {expected}; use another folder")


def _connect(path: str) -> sqlite3.Connection:
    with suppress(OSError):  # SQLite says better why a file cannot be made
        os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))  # its journals get the permissions of the file
    connection = sqlite3.connect(path, timeout=BUSY_TIMEOUT_S, isolation_level=None, check_same_thread=False)
    for tries_left in reversed(range(_WAL_TRIES)):
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            break
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or not tries_left:
                connection.close()
                raise
            time.sleep(_WAL_PAUSE_S)
        except sqlite3.Error:
            connection.close()
            raise
    connection.execute("PRAGMA synchronous = NORMAL")  # a killed process loses nothing; no fsync per transaction
    return connection


@contextmanager
def _transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """Run a transaction that takes the write lock first: one that reads before it writes failed nine times in ten."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        if connection.in_transaction:  # SQLite itself rolls back on a full disk
            connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


def _find(connection: sqlite3.Connection, name: tuple[Any, ...]) -> TileScore | None:
    row = connection.execute(_FIND, name).fetchone()
    if row is None:
        return None
    yes, confidence, source, requests, detail = row
    try:
        return TileScore(
            yes=None if yes is None else bool(yes),
            confidence=confidence,
            source=Source(source),
            requests=requests,
            detail=None if detail is None else json.loads(detail),
        )
    except ValueError as error:
        raise RecordError(f"the store of scores holds a score that is none: {error}") from error


def _as_row(score: TileScore, secret: str | None) -> tuple[Any, ...]:
    try:
        kept = redacted(score.detail, secret)
        detail = None if kept is None else json.dumps(kept, sort_keys=True, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise RecordError(f"the detail of a score cannot be stored as JSON: {error}") from error
    yes = None if score.yes is None else int(score.yes)
    return yes, score.confidence, score.source.value, score.requests, detail


def _corners(box: Box) -> tuple[int, int, int, int]:
    return int(box.x), int(box.y), int(box.width), int(box.height)
