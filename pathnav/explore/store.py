"""Scores that outlive the process: one SQLite file, shared by several processes.

A score is named by the scorer's configuration, the slide's fingerprint, the magnification and the tile's box. The first
score of a name stands: what a second process found for the same tile is dropped. Who is about to score tiles claims
them first, so that several processes on one slide share the work.
"""

import json
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from pathnav.errors import RecordError
from pathnav.explore import claims, failed_calls
from pathnav.explore.scorer import ScorerConfiguration, Source, TileScore
from pathnav.geometry import Box

FORMAT = "pathnav-scores-1"
BUSY_TIMEOUT_S = 60.0
_WAL_TRIES = 100  # switching to WAL answers "locked" at once while another process does the same, whatever the timeout
_WAL_PAUSE_S = 0.05

_TABLES = (
    "CREATE TABLE IF NOT EXISTS about (format TEXT NOT NULL)",
    """CREATE TABLE IF NOT EXISTS scorers (
        id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, configuration TEXT NOT NULL
    )""",
    "CREATE TABLE IF NOT EXISTS slides (id INTEGER PRIMARY KEY, fingerprint TEXT NOT NULL UNIQUE)",
    """CREATE TABLE IF NOT EXISTS scores (
        scorer INTEGER NOT NULL REFERENCES scorers, slide INTEGER NOT NULL REFERENCES slides,
        magnification REAL NOT NULL,
        x INTEGER NOT NULL, y INTEGER NOT NULL, width INTEGER NOT NULL, height INTEGER NOT NULL,
        yes INTEGER, confidence REAL, source TEXT NOT NULL, requests INTEGER NOT NULL, detail TEXT,
        PRIMARY KEY (scorer, slide, magnification, x, y, width, height)
    ) WITHOUT ROWID""",
    claims.TABLE,  # stores of before it was there get it on opening, as they do the next one
    failed_calls.TABLE,
)
_FIND = (
    "SELECT yes, confidence, source, requests, detail FROM scores "
    "WHERE scorer = ? AND slide = ? AND magnification = ? AND x = ? AND y = ? AND width = ? AND height = ?"
)
_ADD = "INSERT OR IGNORE INTO scores VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"


class ScoreStore:
    """An open store of scores; one connection per process under a lock, opened anew after a fork.

    Args:
        path: The file; made where it is missing, in a folder that exists; for the user alone.
        clean: Returns a score's detail as it may be stored, without what no file may hold.

    Raises:
        RecordError: If it cannot be opened, or is not such a store.
    """

    def __init__(self, path: str | Path, *, clean: Callable[[Any], Any] = lambda detail: detail) -> None:
        self.path = str(path)
        self._clean = clean
        self._lock = threading.Lock()
        self._connections: dict[int, sqlite3.Connection] = {}
        self._is_closed = False
        with self._connected() as connection:
            self._check_format(connection)

    def find(
        self, configuration: ScorerConfiguration, fingerprint: str, magnification: float, boxes: Sequence[Box]
    ) -> list[TileScore | None]:
        """Return the stored scores of some tiles, None where there is none.

        Args:
            configuration: What scored them.
            fingerprint: The slide's.
            magnification: 2.5, 10 or 40.
            boxes: The tiles' boxes: whole level-0 pixels.

        Raises:
            RecordError: If the store cannot be read.
        """
        with self._connected() as connection:
            ids = _ids(connection, configuration, fingerprint)
            if ids is None:
                return [None] * len(boxes)
            return [_find(connection, (*ids, magnification, *_corners(box))) for box in boxes]

    def add(
        self,
        configuration: ScorerConfiguration,
        fingerprint: str,
        magnification: float,
        scored: Sequence[tuple[Box, TileScore]],
    ) -> list[TileScore]:
        """Store scores in one transaction and return those that now stand: another process may have come first.

        Args:
            configuration: What scored them.
            fingerprint: The slide's.
            magnification: 2.5, 10 or 40.
            scored: Boxes of tiles, in whole level-0 pixels, with their scores.

        Raises:
            RecordError: If the store cannot be written, or a score's detail has no JSON form.
        """
        with self._connected() as connection, _transaction(connection):
            ids = _ids(connection, configuration, fingerprint, make=True)
            if ids is None:
                raise RecordError(f"{self.path} took no entry for scorer {configuration.name!r}")
            names = [(*ids, magnification, *_corners(box)) for box, _ in scored]
            rows = [(*name, *_as_row(score, self._clean)) for name, (_, score) in zip(names, scored, strict=True)]
            if connection.executemany(_ADD, rows).rowcount == len(rows):
                return [score for _, score in scored]
            found = (_find(connection, name) for name in names)
            return [score for score in found if score is not None]

    def add_failed(self, configuration: ScorerConfiguration, fingerprint: str) -> int:
        """Count a request about a slide that failed, and return how many did so far, of all processes.

        Raises:
            RecordError: If the store cannot be written.
        """
        with self._connected() as connection, _transaction(connection):
            ids = _ids(connection, configuration, fingerprint, make=True)
            if ids is None:
                raise RecordError(f"{self.path} took no entry for scorer {configuration.name!r}")
            failed_calls.add(connection, ids)
            return failed_calls.count(connection, ids)

    def failed(self, configuration: ScorerConfiguration, fingerprint: str) -> int:
        """Return how many requests about a slide failed so far, of all processes.

        Raises:
            RecordError: If the store cannot be read.
        """
        with self._connected() as connection:
            ids = _ids(connection, configuration, fingerprint)
            return failed_calls.count(connection, ids) if ids else 0

    @contextmanager
    def claimed(
        self, configuration: ScorerConfiguration, fingerprint: str, magnification: float, boxes: Sequence[Box]
    ) -> Iterator[list[bool]]:
        """Claim tiles for as long as a `with` block lasts; gives which of them no other process is scoring.

        Look for scores of these afterwards: whoever held them before may have stored some.

        Args:
            configuration: What is about to score them.
            fingerprint: The slide's.
            magnification: 2.5, 10 or 40.
            boxes: The tiles' boxes: whole level-0 pixels.

        Raises:
            RecordError: If the store cannot be written.
        """
        claim, is_over = claims.Claim(), threading.Event()
        with self._connected() as connection, _transaction(connection):
            ids = _ids(connection, configuration, fingerprint, make=True)
            names = [(*(ids or ()), magnification, *_corners(box)) for box in boxes]
            free = claim.take(connection, names, time.time())
        renewing = threading.Thread(target=self._renew, args=(claim, is_over), daemon=True)
        renewing.start()
        try:
            yield free
        finally:
            is_over.set()
            renewing.join()
            with suppress(RecordError), self._connected() as connection, _transaction(connection):
                claim.release(connection)

    def _renew(self, claim: claims.Claim, is_over: threading.Event) -> None:
        while not is_over.wait(claims.RENEWAL_S):
            with suppress(RecordError), self._connected() as connection, _transaction(connection):
                claim.renew(connection, time.time())

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

    def _check_format(self, connection: sqlite3.Connection) -> None:
        with _transaction(connection):
            for table in _TABLES:
                connection.execute(table)
            found = connection.execute("SELECT format FROM about").fetchone()
            if found is None:
                connection.execute("INSERT INTO about VALUES (?)", (FORMAT,))
        if found is not None and found[0] != FORMAT:
            raise RecordError(f"{self.path} has the format {found[0]!r}, expected {FORMAT!r}; use another folder")


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


def _ids(
    connection: sqlite3.Connection, configuration: ScorerConfiguration, fingerprint: str, make: bool = False
) -> tuple[int, int] | None:
    """Return the numbers of a scorer and a slide in the store, None where one is unknown and not to be made."""
    key = configuration.key
    if make:
        text = configuration.as_text()
        connection.execute("INSERT OR IGNORE INTO scorers (key, configuration) VALUES (?, ?)", (key, text))
        connection.execute("INSERT OR IGNORE INTO slides (fingerprint) VALUES (?)", (fingerprint,))
    scorer = connection.execute("SELECT id FROM scorers WHERE key = ?", (key,)).fetchone()
    slide = connection.execute("SELECT id FROM slides WHERE fingerprint = ?", (fingerprint,)).fetchone()
    return (scorer[0], slide[0]) if scorer and slide else None


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


def _as_row(score: TileScore, clean: Callable[[Any], Any]) -> tuple[Any, ...]:
    try:
        detail = None if score.detail is None else json.dumps(clean(score.detail), sort_keys=True, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise RecordError(f"the detail of a score cannot be stored as JSON: {error}") from error
    yes = None if score.yes is None else int(score.yes)
    return yes, score.confidence, score.source.value, score.requests, detail


def _corners(box: Box) -> tuple[int, int, int, int]:
    return int(box.x), int(box.y), int(box.width), int(box.height)
