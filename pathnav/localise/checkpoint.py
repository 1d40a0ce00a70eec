"""LangGraph's checkpoint of one episode: one SQLite file, there to resume; worthless once the result is written."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from langgraph.checkpoint.sqlite import SqliteSaver


@contextmanager
def open_checkpoint(path: Path) -> Iterator["SqliteSaver"]:
    """Open the checkpoint file, a damaged one anew: the record holds what the checkpoint lost."""
    from langgraph.checkpoint.sqlite import SqliteSaver

    if path.exists() and not _is_sound(path):
        path.unlink()
    path.touch(mode=0o600)  # it holds the conversation; journals get the permissions of the file
    # The graph's threads take turns under the saver's own lock.
    connection = sqlite3.connect(path, check_same_thread=False)
    try:
        yield SqliteSaver(connection)
    finally:
        connection.close()


def _is_sound(path: Path) -> bool:
    connection = sqlite3.connect(path)
    try:
        return bool(connection.execute("PRAGMA quick_check").fetchone()[0] == "ok")
    except sqlite3.DatabaseError:
        return False
    finally:
        connection.close()
