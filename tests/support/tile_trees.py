"""Small trees of tiles with scores and truth, drawn by Hypothesis, and tables made of them."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from pathnav.explore import Nesting, Source, TileScore
from pathnav.explore.scores import Flags, ScoreTable
from pathnav.geometry import Box

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Wood:
    """A tree of tiles with scores and truth.

    Args:
        nesting: The grids.
        eligible: Per level: which tiles may be shown to a scorer.
        positives: Per level: which tiles are positive.
        scores: Per level and tile: its score.
    """

    nesting: Nesting
    eligible: tuple[Flags, ...]
    positives: tuple[Flags, ...]
    scores: tuple[list[TileScore], ...]

    def table(self, seed: int = 0, slide: str = "slide") -> ScoreTable:
        """Return a table that knows all scores."""
        table = ScoreTable(self.nesting, self.eligible, seed, slide)
        for level, scores in enumerate(self.scores):
            table.set(level, np.arange(len(scores)), scores)
        return table


def nesting(width: int, height: int, levels: int = 3, factor: int = 2) -> Nesting:
    """Return a nesting whose finest grid has `width` x `height` tiles of one pixel."""
    return Nesting.over(Box(0, 0, width, height), (1, 1), levels, factor)


def score(yes: bool | None, confidence: float = 0.5) -> TileScore:
    """Return a score; yes None is an answer that could not be understood."""
    return TileScore.unparsed() if yes is None else TileScore(yes, confidence, Source.COMPUTED)


def constant(counts: Sequence[int], confidence: float = 0.5) -> tuple[list[TileScore], ...]:
    """Return per level the scores of a scorer that says the same of every tile."""
    return tuple([score(True, confidence)] * count for count in counts)


@st.composite
def nestings(draw: st.DrawFn, most: int = 9, factors: Sequence[int] = (2, 3)) -> Nesting:
    """Draw a nesting of three grids, ragged at its edges; at most `most` finest tiles a side."""
    sides = st.integers(1, most)
    return nesting(draw(sides), draw(sides), factor=draw(st.sampled_from(factors)))


few_nestings = st.one_of(nestings(most=4, factors=(2,)), st.builds(nesting, st.integers(5, 8), st.just(1)))
"""Trees small enough to enumerate every selection: one coarse tile with 16 below, or two with 4 each."""


@st.composite
def woods(draw: st.DrawFn, trees: st.SearchStrategy[Nesting] | None = None) -> Wood:
    """Draw a tree with scores of few different confidences, so that ties abound."""
    found = draw(nestings() if trees is None else trees)
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    blank, tumour, steps = draw(st.sampled_from([0, 0.3])), draw(st.floats(0, 1)), draw(st.sampled_from([1, 3, 1000]))
    counts = [found.count(level) for level in range(found.levels)]
    return Wood(
        found,
        tuple(rng.random(count) >= blank for count in counts),
        tuple(rng.random(count) < tumour for count in counts),
        tuple([_drawn(rng, steps) for _ in range(count)] for count in counts),
    )


def _drawn(rng: np.random.Generator, steps: int) -> TileScore:
    answer = rng.choice([0, 1, 1, 1, 2])
    return score(None if answer == 2 else bool(answer), int(rng.integers(0, steps + 1)) / steps)


schedules = st.tuples(*[st.integers(1, 4)] * 3)
