"""The paper's Mode B values, to be printed beside ours and never mixed with them; they stand in paper.json."""

import json
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

Percents = tuple[float, ...]
Schedule = tuple[int, ...]

_SWEEP_POSITIVES = 228
"""Positive 2.5x tiles of the slides behind the sweep (docs/protocol.md, section 3)."""
_HALF_A_DIGIT = 0.005 + 1e-9
"""In percent: what rounding to two decimals can hide."""


@dataclass(frozen=True, slots=True)
class PaperSearch:
    """One row of the paper.

    Args:
        name: The paper's name of the row.
        schedule: K by level.
        unconditional: Unconditional hit rates in percent at 2.5x, 10x and 40x, as printed; empty where the paper leaves
            the cell empty.
        conditional: Conditional hit rates in percent; None in the sweep, which has none.
        beside: Names of our scorers it is printed under; none for a model.
    """

    name: str
    schedule: Schedule
    unconditional: Percents
    conditional: Percents | None = None
    beside: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PaperTable:
    """One table of the paper.

    Args:
        source: Where it stands.
        n_slides: Slides behind each value; the paper tells no number of positives.
        rows: Its rows in its order.
    """

    source: str
    n_slides: int
    rows: tuple[PaperSearch, ...]

    def at(self, schedules: list[Schedule]) -> list[PaperSearch]:
        """Return the rows with any of these schedules."""
        return [row for row in self.rows if row.schedule in schedules]


@cache
def paper_hits() -> PaperTable:
    """Return the paper's Table I, Mode B: conditional and unconditional hit rates at one schedule."""
    facts = _facts()["mode_b"]
    schedule = tuple(facts["schedule"])
    rows = [
        PaperSearch(
            name=row["name"],
            schedule=schedule,
            unconditional=tuple(row["unconditional"]),
            conditional=tuple(row["conditional"]),
            beside=tuple(row["beside"]),
        )
        for row in facts["rows"]
    ]
    return PaperTable(facts["source"], facts["n_slides"], tuple(rows))


@cache
def paper_sweep() -> PaperTable:
    """Return the paper's Table IV: unconditional hit rates by schedule."""
    facts = _facts()["mode_b_k_sweep"]
    rows = [
        PaperSearch(row["name"], tuple(schedule), tuple(values or ()), beside=tuple(row["beside"]))
        for row in facts["rows"]
        for schedule, values in zip(facts["schedules"], row["unconditional"], strict=True)
    ]
    return PaperTable(facts["source"], facts["n_slides"], tuple(rows))


def rows_off_the_count() -> list[str]:
    """Return which rows of the sweep hold a 2.5x value that is no multiple of 1/228, and so rest on other slides."""
    off = [row.name for row in _printed() if not _is_multiple(row.unconditional[0])]
    return list(dict.fromkeys(off))


def above_the_oracle() -> list[tuple[PaperSearch, PaperSearch]]:
    """Return the rows of the sweep that lie above its oracle at 2.5x, each with the oracle's."""
    oracle = {row.schedule: row for row in _printed() if "oracle" in row.beside}
    return [
        (row, oracle[row.schedule])
        for row in _printed()
        if row.unconditional[0] > oracle[row.schedule].unconditional[0]
    ]


def same_first_k() -> dict[str, tuple[float, float]]:
    """Return by name the two 2.5x values, in percent, of rows whose first K is the same but whose values are not."""
    by_place: dict[tuple[str, int], list[float]] = {}
    for row in _printed():
        by_place.setdefault((row.name, row.schedule[0]), []).append(row.unconditional[0])
    return {name: (values[0], values[1]) for (name, _), values in by_place.items() if len(set(values)) > 1}


def sweep_footnote() -> str:
    """Return what a reader must know about the paper's sweep (docs/protocol.md, section 3)."""
    (row, oracle), *_ = above_the_oracle()
    differing, names = same_first_k(), {row.name for row in paper_sweep().rows}
    return (
        f"The paper's K sweep mixes slide subsets: at 2.5x its values are multiples of 1/{_SWEEP_POSITIVES} but in the "
        f"rows {' and '.join(rows_off_the_count())}, {len(differing)} of {len(names)} rows have two values for the "
        f"same first K, and {row.name} at K = {','.join(map(str, row.schedule))} lies above the oracle "
        f"({row.unconditional[0]:.2f} against {oracle.unconditional[0]:.2f}). So these rows are exempt from the "
        "invariants that ours are held to."
    )


def _printed() -> list[PaperSearch]:
    """Return the rows of the sweep that have values."""
    return [row for row in paper_sweep().rows if row.unconditional]


def _is_multiple(percent: float) -> bool:
    nearest = round(percent * _SWEEP_POSITIVES / 100) * 100 / _SWEEP_POSITIVES
    return abs(nearest - percent) <= _HALF_A_DIGIT


def _facts() -> dict[str, Any]:
    facts: dict[str, Any] = json.loads(files("pathnav.report").joinpath("paper.json").read_text("utf-8"))
    return facts
