"""What a table is, whatever it is printed with."""

from dataclasses import dataclass

NOTHING = "-"
"""Printed where a score does not apply; a value nobody knows prints as `unknown`."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One cell of a table.

    Args:
        value: What it says.
        detail: What it rests on: interval, deviating n, unknown values; may be empty.
    """

    value: str
    detail: str = ""

    def __str__(self) -> str:
        return f"{self.value} {self.detail}".rstrip()


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a table.

    Args:
        entries: One a column.
        is_papers: Whether it repeats the paper's values.
    """

    entries: tuple[Entry, ...]
    is_papers: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """A table with a title.

    Args:
        title: One line above it.
        header: Headings, one a column.
        lines: Its lines.
        key_columns: So many columns name a line; they are repeated where a table is cut into parts.
    """

    title: str
    header: tuple[str, ...]
    lines: tuple[Line, ...]
    key_columns: int
