"""Who is scoring which tiles at the moment, so that two processes on one store do not both ask for one.

A claim is a row beside the scores. It ends when its tiles are scored, with the process that made it, or when it has not
been renewed for a minute, as after a power cut, or on a machine that is gone.
"""

import os
import socket
import sqlite3
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

EXPIRY_S = 60.0
RENEWAL_S = 20.0

TABLE = """CREATE TABLE IF NOT EXISTS claims (
    scorer INTEGER NOT NULL, slide INTEGER NOT NULL, magnification REAL NOT NULL,
    x INTEGER NOT NULL, y INTEGER NOT NULL, width INTEGER NOT NULL, height INTEGER NOT NULL,
    token TEXT NOT NULL, host TEXT NOT NULL, process INTEGER NOT NULL, expires REAL NOT NULL,
    PRIMARY KEY (scorer, slide, magnification, x, y, width, height)
) WITHOUT ROWID"""
_TAKE = "INSERT OR IGNORE INTO claims VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
_WHOSE = (
    "SELECT host, process FROM claims "
    "WHERE scorer = ? AND slide = ? AND magnification = ? AND x = ? AND y = ? AND width = ? AND height = ?"
)


@dataclass(frozen=True, slots=True)
class Claim:
    """One batch of tiles that a process is about to score.

    Args:
        token: Tells this claim from every other.
        host: Name of the machine.
        process: The process's number there.
    """

    token: str = field(default_factory=lambda: uuid.uuid4().hex)
    host: str = field(default_factory=socket.gethostname)
    process: int = field(default_factory=os.getpid)

    def take(self, connection: sqlite3.Connection, names: Sequence[tuple[Any, ...]], now_s: float) -> list[bool]:
        """Claim what no other process holds and return which that is; what this process holds already counts as free.

        Args:
            connection: In a transaction that may write.
            names: Scorer, slide, magnification, x, y, width and height of each tile, as in the scores.
            now_s: Seconds since 1970.
        """
        self._remove_dead(connection, now_s)
        rows = [(*name, self.token, self.host, self.process, now_s + EXPIRY_S) for name in names]
        if connection.executemany(_TAKE, rows).rowcount == len(rows):
            return [True] * len(rows)
        return [connection.execute(_WHOSE, name).fetchone() == (self.host, self.process) for name in names]

    def renew(self, connection: sqlite3.Connection, now_s: float) -> None:
        """Let the claim stand for another minute."""
        connection.execute("UPDATE claims SET expires = ? WHERE token = ?", (now_s + EXPIRY_S, self.token))

    def release(self, connection: sqlite3.Connection) -> None:
        """Let others score what is not scored yet."""
        connection.execute("DELETE FROM claims WHERE token = ?", (self.token,))

    def _remove_dead(self, connection: sqlite3.Connection, now_s: float) -> None:
        connection.execute("DELETE FROM claims WHERE expires < ?", (now_s,))
        found = connection.execute("SELECT DISTINCT process FROM claims WHERE host = ?", (self.host,)).fetchall()
        dead = [(self.host, process) for (process,) in found if not _is_alive(process)]
        connection.executemany("DELETE FROM claims WHERE host = ? AND process = ?", dead)


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # somebody else's
        return True
    return True
