"""What is known about the tiles of one slide: the scores so far, and the order of equals."""

from collections.abc import Iterable, Sequence
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from pathnav.cohort.protocol import TIE_DECIMALS
from pathnav.cohort.sample import seeded_rank
from pathnav.explore.nesting import Nesting, Numbers
from pathnav.explore.scorer import TileScore

Flags = NDArray[np.bool_]


class Answer(IntEnum):
    """What a scorer said of a tile."""

    UNKNOWN = -1
    NO = 0
    YES = 1
    UNPARSED = 2


class ScoreTable:
    """Scores by level and tile number, in arrays.

    Args:
        nesting: The grids.
        eligible: Per level bool, shape (count,): which tiles may be shown to a scorer.
        seed: Orders the equals.
        slide: The slide's fingerprint: equals of two slides are ordered independently.
    """

    def __init__(self, nesting: Nesting, eligible: Sequence[Flags], seed: int = 0, slide: str = "") -> None:
        self.nesting, self.eligible = nesting, tuple(eligible)
        counts = [nesting.count(level) for level in range(nesting.levels)]
        found = [flags.shape for flags in self.eligible]
        if found != [(count,) for count in counts]:
            raise ValueError(f"eligible must hold {counts} flags by level, got shapes {found}")
        self.answers = tuple(np.full(count, Answer.UNKNOWN, np.int8) for count in counts)
        self.confidences = tuple(np.full(count, np.nan) for count in counts)
        self.requests = tuple(np.zeros(count, np.int64) for count in counts)
        self._bases = [int(seeded_rank(seed, "tie", slide, str(level))[:16], 16) for level in range(nesting.levels)]

    def set(self, level: int, tiles: Numbers, scores: Iterable[TileScore]) -> None:
        """Enter the scores of some tiles of a level.

        Args:
            level: The tiles' level.
            tiles: int64, shape (n,): their numbers.
            scores: One per tile, in the same order.
        """
        for tile, score in zip(tiles.tolist(), scores, strict=True):
            self.answers[level][tile] = Answer.UNPARSED if score.yes is None else Answer(score.yes)
            self.confidences[level][tile] = np.nan if score.confidence is None else score.confidence
            self.requests[level][tile] = score.requests

    def unknown(self, level: int, tiles: Numbers) -> Numbers:
        """Return those of some tiles that have no score yet, in the order given."""
        found: Numbers = tiles[self.answers[level][tiles] == Answer.UNKNOWN]
        return found

    def eligible_of(self, level: int, tiles: Numbers) -> Numbers:
        """Return those of some tiles that may be shown to a scorer, in the order given."""
        found: Numbers = tiles[self.eligible[level][tiles]]
        return found

    def rounded(self, level: int, tiles: Numbers) -> Numbers:
        """Return the confidences of scored tiles in steps of 0.0001: equal ones are a tie."""
        found: Numbers = np.rint(self.confidences[level][tiles] * 10**TIE_DECIMALS).astype(np.int64)
        return found

    def tie_order(self, level: int, tiles: Numbers) -> NDArray[np.uint64]:
        """Return the keys by which equals are ordered: drawn by the seed, alike whatever else is compared.

        Returns: uint64, shape (n,), no two alike within a level.
        """
        return _mixed(tiles.astype(np.uint64) + np.uint64(self._bases[level]))


def _mixed(words: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return the words well mixed, one to one: the output function of splitmix64 (Steele, Lea and Flood 2014)."""
    words = words * np.uint64(0x9E3779B97F4A7C15)
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))
