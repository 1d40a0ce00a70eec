"""What must hold between rows of one table; the paper's own rows break it.

- *Same first level*: rows with the same first K have the same first-level counts.
- *Monotone recall*: where no K of one schedule exceeds the other's, its kept positives do not exceed the other's, at
  any level. This holds because hierarchical top-K keeps nested sets: among one parent's children the order does not
  depend on K, so a smaller K keeps a prefix, and a smaller set of parents has fewer children. It takes the same scores,
  tie seed, tiles shown and `fill_to_k` on both sides; it says nothing of the conditional hit rate, whose denominator
  grows too, nor of schedules of which each has a larger K somewhere, nor of other policies.
- *Optimum*: kept positives do not exceed the optimum.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import permutations

from pathnav.cohort.protocol import MAGNIFICATIONS
from pathnav.explore.hit_rates import HitCounts
from pathnav.explore.schedule import Schedule


@dataclass(frozen=True, slots=True)
class Row:
    """A row of a table: one scorer and one schedule over some slides.

    Args:
        scores: Names what must be equal for rows to be comparable: scorer configuration, tie seed, tiles, `fill_to_k`.
        slides: Fingerprints of the slides.
        schedule: K by level.
        levels: Counts per level over these slides.
    """

    scores: str
    slides: frozenset[str]
    schedule: Schedule
    levels: tuple[HitCounts, ...]


def broken_invariants(rows: Sequence[Row]) -> list[str]:
    """Return a sentence for each invariant that rows of hierarchical top-K break; none on true output.

    Rows of different scores or slides are not compared.
    """
    found = [sentence for row in rows for sentence in _above_optimum(row)]
    for one, other in permutations(rows, 2):
        if (one.scores, one.slides) == (other.scores, other.slides):
            found += _first_level(one, other) + _falling(one, other)
    return found


def _above_optimum(row: Row) -> list[str]:
    return [
        f"{row.scores} at {MAGNIFICATIONS[level]:g}x with K = {row.schedule} keeps {counts.kept_positives} positives, "
        f"more than the optimum of {counts.optimum_positives}"
        for level, counts in enumerate(row.levels)
        if counts.kept_positives > counts.optimum_positives
    ]


def _first_level(one: Row, other: Row) -> list[str]:
    """Compare each pair once, in the order of the schedules."""
    same = one.schedule.keep[0] == other.schedule.keep[0] and one.schedule.keep < other.schedule.keep
    if not same or one.levels[0] == other.levels[0]:
        return []
    return [f"{one.scores} has two results at {MAGNIFICATIONS[0]:g}x with K = {one.schedule} and {other.schedule}"]


def _falling(small: Row, large: Row) -> list[str]:
    if small.schedule == large.schedule or not small.schedule.within(large.schedule):
        return []
    return [
        f"{small.scores} at {MAGNIFICATIONS[level]:g}x keeps {less.kept_positives} positives with K = {small.schedule} "
        f"but {more.kept_positives} with K = {large.schedule}"
        for level, (less, more) in enumerate(zip(small.levels, large.levels, strict=True))
        if less.kept_positives > more.kept_positives
    ]
