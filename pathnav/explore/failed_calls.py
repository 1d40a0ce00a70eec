"""How many requests of a scorer about a slide failed with all their tries: rows beside the scores, for the ledger."""

import sqlite3

TABLE = """CREATE TABLE IF NOT EXISTS failed_calls (
    scorer INTEGER NOT NULL REFERENCES scorers, slide INTEGER NOT NULL REFERENCES slides, calls INTEGER NOT NULL,
    PRIMARY KEY (scorer, slide)
) WITHOUT ROWID"""
_ADD = "INSERT INTO failed_calls VALUES (?, ?, 1) ON CONFLICT (scorer, slide) DO UPDATE SET calls = calls + 1"


def add(connection: sqlite3.Connection, ids: tuple[int, int]) -> None:
    """Count one more failed request; `ids` are the numbers of scorer and slide in the store."""
    connection.execute(_ADD, ids)


def count(connection: sqlite3.Connection, ids: tuple[int, int]) -> int:
    """Return how many failed so far, of all processes."""
    row = connection.execute("SELECT calls FROM failed_calls WHERE scorer = ? AND slide = ?", ids).fetchone()
    return int(row[0]) if row else 0
