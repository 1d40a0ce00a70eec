"""How much of the annotated tumour a search kept: counts that add up over slides, and the rates made of them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from typing import Self

import numpy as np

from pathnav.cohort.protocol import POSITIVE_SHARE
from pathnav.explore.nesting import Nesting
from pathnav.explore.optimum import optimum_counts
from pathnav.explore.schedule import Schedule
from pathnav.explore.scores import Flags
from pathnav.explore.search import Selection
from pathnav.geometry import Floats


def positives_of(overlaps: Floats) -> Flags:
    """Return which tiles are positive: more than 5 % of the tile's area overlaps the tumour.

    Args:
        overlaps: float64, shape (n,): overlap with the tumour as a share of each tile's area inside the scanned area.
    """
    return overlaps > POSITIVE_SHARE


@dataclass(frozen=True, slots=True)
class _Counts:
    """Counts of one level; `a + b` adds."""

    def __add__(self, other: Self) -> Self:
        if type(other) is not type(self):
            return NotImplemented
        return type(self)(*(getattr(self, field.name) + getattr(other, field.name) for field in fields(self)))


@dataclass(frozen=True, slots=True)
class ChoiceCounts(_Counts):
    """What a search asked and kept at one level; known without an annotation.

    Args:
        tiles: Tiles of the grid, blank ones included.
        scored: Tiles that the search needed scores of.
        yes: How many of those are Yes.
        unparsed: How many of those got no answer that could be understood.
        kept: Tiles kept.
        filled: How many of those are No.
        candidates: Tiles up for choice.
        tied: How many of those have the confidence, to 4 decimals, of another in the same choice.
        requests: Requests that the scores took.
    """

    tiles: int = 0
    scored: int = 0
    yes: int = 0
    unparsed: int = 0
    kept: int = 0
    filled: int = 0
    candidates: int = 0
    tied: int = 0
    requests: int = 0

    @property
    def yes_rate(self) -> float | None:
        """Yes / scored."""
        return _rate(self.yes, self.scored)

    @property
    def tie_rate(self) -> float | None:
        """Tied / candidates."""
        return _rate(self.tied, self.candidates)


@dataclass(frozen=True, slots=True)
class HitCounts(_Counts):
    """How a search did at one level of slides with an annotation.

    Args:
        positives: Positive tiles, blank ones included.
        reachable: Positives among the children of the tiles kept one level up; at the first level all.
        kept: Tiles kept.
        kept_positives: How many of those are positive.
        optimum_positives: The most positives that a selection within the schedule could keep at this level.
    """

    positives: int = 0
    reachable: int = 0
    kept: int = 0
    kept_positives: int = 0
    optimum_positives: int = 0

    @property
    def conditional_hit(self) -> float | None:
        """Kept positives / reachable positives; None where none was reachable."""
        return _rate(self.kept_positives, self.reachable)

    @property
    def unconditional_hit(self) -> float | None:
        """Kept positives / all positives: the recall; None where there is no positive."""
        return _rate(self.kept_positives, self.positives)

    @property
    def reachable_share(self) -> float | None:
        """Reachable / all positives."""
        return _rate(self.reachable, self.positives)

    @property
    def precision(self) -> float | None:
        """Kept positives / kept; counted for slides without tumour as well."""
        return _rate(self.kept_positives, self.kept)

    @property
    def optimum_hit(self) -> float | None:
        """The highest unconditional hit rate that a selection within the schedule could reach."""
        return _rate(self.optimum_positives, self.positives)

    @property
    def oracle_normalised(self) -> float | None:
        """Unconditional hit rate / optimum."""
        return _rate(self.kept_positives, self.optimum_positives)


@dataclass(frozen=True, slots=True)
class Macro:
    """A mean over slides.

    Args:
        mean: The mean of the slides that have the rate; None where none has.
        slides: How many those are.
    """

    mean: float | None
    slides: int


def choice_counts(nesting: Nesting, selection: Selection) -> tuple[ChoiceCounts, ...]:
    """Return per level what a search asked and kept on a slide."""
    return tuple(
        ChoiceCounts(
            tiles=nesting.count(level),
            scored=choice.scored.size,
            yes=choice.yes,
            unparsed=choice.unparsed,
            kept=choice.kept.size,
            filled=choice.filled,
            candidates=choice.candidates,
            tied=choice.tied,
            requests=choice.requests,
        )
        for level, choice in enumerate(selection.levels)
    )


def hit_counts(
    nesting: Nesting,
    selection: Selection,
    schedule: Schedule,
    positives: Sequence[Flags],
    eligible: Sequence[Flags],
) -> tuple[HitCounts, ...]:
    """Return per level how a search did on a slide.

    Args:
        nesting: The grids.
        selection: What was kept.
        schedule: K by level, for the optimum.
        positives: Per level bool, shape (count,): the positive tiles, blank ones included.
        eligible: Per level bool, shape (count,): the tiles that were shown to the scorer.
    """
    optima = optimum_counts(nesting, schedule, positives, eligible)
    found = []
    for level, choice in enumerate(selection.levels):
        total = int(np.count_nonzero(positives[level]))
        reachable = total
        if level > 0:
            below = nesting.children(level - 1, selection.levels[level - 1].kept)
            reachable = int(np.count_nonzero(positives[level][below]))
        kept_positives = int(np.count_nonzero(positives[level][choice.kept]))
        found.append(HitCounts(total, reachable, choice.kept.size, kept_positives, optima[level]))
    return tuple(found)


def micro(slides: Iterable[Sequence[HitCounts]]) -> tuple[HitCounts, ...]:
    """Return per level the counts over all slides, whose rates are the micro-averages over the cohort's tiles."""
    by_level = zip(*slides, strict=True)
    return tuple(sum(counts, HitCounts()) for counts in by_level)


def macro(rates: Iterable[float | None]) -> Macro:
    """Return the mean of a rate over slides; slides without it (no tumour, nothing reachable) do not count."""
    known = [rate for rate in rates if rate is not None]
    return Macro(sum(known) / len(known) if known else None, len(known))


def _rate(part: int, whole: int) -> float | None:
    return part / whole if whole else None
