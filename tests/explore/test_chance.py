"""A scorer that says the same of every tile does as well as chance, and so does `random`."""

import math
from collections.abc import Iterable, Sequence

import numpy as np
import pytest
from pathnav_baselines.random_scorer import RandomScorer

from pathnav.explore import (
    Schedule,
    Scorer,
    Selection,
    Source,
    TileImage,
    TileScore,
    TileTree,
    TopK,
    Wanted,
    hit_counts,
)
from pathnav.explore.nesting import Nesting
from pathnav.explore.scores import Flags, ScoreTable

SCHEDULE = Schedule((4, 3, 2))
SEEDS = 150


def truth(tree: TileTree) -> list[Flags]:
    """Return tumour in the upper left of the slide, where a bias towards the scan order would find it."""
    found = []
    for level in range(3):
        boxes = tree.grid(level).boxes()
        found.append((boxes[:, 0] < 900) & (boxes[:, 1] < 700))
    return found


def expected_hits(nesting: Nesting, positives: list[Flags], eligible: list[Flags]) -> list[float]:
    """Return the kept positives expected of a choice by chance: each tile's chance is its parent's times K / n."""
    found, above = [], np.ones(1)
    for level, keep in enumerate(SCHEDULE.keep):
        tiles = np.arange(nesting.count(level))
        parents = nesting.parents(level, tiles) if level else np.zeros_like(tiles)
        rivals = np.bincount(parents[eligible[level]], minlength=above.size)
        chance = above[parents] * np.minimum(1, keep / np.maximum(rivals, 1))[parents] * eligible[level]
        found.append(float((chance * positives[level]).sum()))
        above = chance
    return found


def searched(tree: TileTree, scorer: Scorer, seed: int) -> Selection:
    """Return what a search keeps that scores only what it asks for."""
    table = ScoreTable(tree.nesting, [tree.eligible(level) for level in range(3)], seed, "slide")
    step = TopK(SCHEDULE).advance(table)
    while isinstance(step, Wanted):
        for level, tiles in enumerate(step.tiles):
            table.set(level, tiles, scorer.score(tree.images(level, tiles)))
        step = TopK(SCHEDULE).advance(table)
    return step


class Constant:
    """Says the same of every tile."""

    def score(self, tiles: Sequence[TileImage]) -> Iterable[TileScore]:
        return [TileScore(True, 0.5, Source.WORD) for _ in tiles]


@pytest.mark.parametrize("kind", ["constant", "random"])
def test_a_scorer_that_knows_nothing_equals_chance(tree: TileTree, kind: str) -> None:
    positives, eligible = truth(tree), [tree.eligible(level) for level in range(3)]
    counts = []
    for seed in range(SEEDS):
        found = searched(tree, Constant(), seed) if kind == "constant" else searched(tree, RandomScorer(seed), 0)
        hits = hit_counts(tree.nesting, found, SCHEDULE, positives, eligible)
        counts.append([level.kept_positives for level in hits])
    means, errors = np.mean(counts, axis=0), np.std(counts, axis=0, ddof=1) / math.sqrt(SEEDS)
    expected = expected_hits(tree.nesting, positives, eligible)
    assert min(expected) > 0.5
    assert (np.abs(means - expected) < 4 * errors).all(), f"{means} against {expected}, standard errors {errors}"
