"""Intervals and tests by slide: queries of one slide are not independent (docs/protocol.md, section 4)."""

import functools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pathnav.cohort.protocol import BOOTSTRAP_RESAMPLES, CONFIDENCE_LEVEL, SIGN_FLIPS
from pathnav.geometry import Floats

SEED = 0

_BLOCK_FLIPS = 1_000
"""Sign flips made at once: keeps the sign matrix at 8 MB for 1,000 slides."""


@dataclass(frozen=True, slots=True)
class Interval:
    """A confidence interval.

    Args:
        low: Lower end, in the unit of the estimate.
        high: Upper end.
    """

    low: float
    high: float


def cluster_bootstrap(
    values: Sequence[float],
    clusters: Sequence[str],
    *,
    weights: Sequence[float] | None = None,
    resamples: int = BOOTSTRAP_RESAMPLES,
    seed: int = SEED,
) -> Interval | None:
    """Return the 95 % percentile interval of a mean, resampling whole clusters (slides).

    Source: cluster ("pairs") bootstrap with the percentile interval, Davison and Hinkley, Bootstrap Methods and their
    Application (1997), sections 3.8 and 5.3.1; the settings are those of docs/protocol.md, section 4.

    Args:
        values: One number a query, shape (n,).
        clusters: The slide of each query, shape (n,); their order does not matter.
        weights: Weight of each query in the mean; 0 leaves a query out of the mean but keeps its slide among those
            that are drawn (a mean over valid boxes is such a ratio). 1 by default.
        resamples: How often the slides are drawn with replacement.
        seed: Seed of the draws.

    Returns: The interval, or None where it is not defined: fewer than two slides with any weight.
    """
    weight = np.ones(len(values)) if weights is None else np.asarray(weights, dtype=np.float64)
    weighted = np.asarray(values, dtype=np.float64) * weight
    ids, index = np.unique(np.asarray(clusters, dtype=str), return_inverse=True)
    sums, totals = np.bincount(index, weighted, len(ids)), np.bincount(index, weight, len(ids))
    if np.count_nonzero(totals) < 2:
        return None
    times_drawn = _times_drawn(len(ids), resamples, seed)
    denominators = times_drawn @ totals
    drawn = denominators > 0  # a resample without any weight has no mean
    means = (times_drawn @ sums)[drawn] / denominators[drawn]
    tail = 100 * (1 - CONFIDENCE_LEVEL) / 2
    low, high = np.percentile(means, [tail, 100 - tail])
    return Interval(float(low), float(high))


@functools.lru_cache(maxsize=8)
def _times_drawn(clusters: int, resamples: int, seed: int) -> Floats:
    """Return how often each cluster is drawn: shape (resamples, clusters); the same for all cells of a table."""
    drawn = np.random.default_rng(seed).multinomial(clusters, np.full(clusters, 1 / clusters), resamples)
    return drawn.astype(np.float64)


def paired_permutation_p(
    differences: Sequence[float], clusters: Sequence[str], *, flips: int = SIGN_FLIPS, seed: int = SEED
) -> float | None:
    """Return the two-sided p of a paired permutation test that flips the sign of whole slides.

    The statistic is the mean difference over queries; under the null hypothesis both agents are exchangeable on each
    slide. p = (b + 1) / (n + 1) with b of n flips at least as extreme as what was seen. Where slides are few, so that
    there are no more patterns of signs than `flips`, the n are all patterns but the one that was seen: p is exact.

    Source: docs/protocol.md, section 4; the +1 is that of Phipson and Smyth, Stat Appl Genet Mol Biol 9 (2010) 39.

    Args:
        differences: One paired difference a query, shape (n,).
        clusters: The slide of each query, shape (n,).
        flips: Number of random sign patterns, where there are more patterns than that.
        seed: Seed of the patterns.

    Returns: p in (0, 1], or None without any query.
    """
    if not len(differences):
        return None
    ids, index = np.unique(np.asarray(clusters, dtype=str), return_inverse=True)
    sums = np.bincount(index, np.asarray(differences, dtype=np.float64), len(ids))
    # sums of the same numbers in another order differ in the last bits and must still count as a tie
    seen = abs(float(sums.sum())) - 1e-12 * float(np.abs(sums).sum())
    is_exact = 2 ** len(ids) <= flips
    patterns = 2 ** len(ids) - 1 if is_exact else flips
    rng = np.random.default_rng(seed)
    as_extreme = 0
    for start in range(0, patterns, _BLOCK_FLIPS):
        numbers = np.arange(start, min(start + _BLOCK_FLIPS, patterns))
        bits = _bits(numbers + 1, len(ids)) if is_exact else rng.integers(0, 2, (len(numbers), len(ids)))
        as_extreme += int(np.count_nonzero(np.abs((bits * 2 - 1) @ sums) >= seen))
    return (as_extreme + 1) / (patterns + 1)


def _bits(numbers: NDArray[np.int64], count: int) -> NDArray[np.int64]:
    """Return the last bits of numbers, shape (n, count); of 0, which is what was seen, none is set."""
    return numbers[:, None] >> np.arange(count) & 1


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Return Holm-adjusted p-values; None stays None and is not counted as a test.

    Source: Holm, Scand J Stat 6 (1979) 65-70: the i-th smallest of m is multiplied by m - i + 1, then made
    non-decreasing and cut at 1.
    """
    tested = sorted((p, place) for place, p in enumerate(p_values) if p is not None)
    adjusted: list[float | None] = [None] * len(p_values)
    running = 0.0
    for rank, (p, place) in enumerate(tested):
        running = max(running, min(1.0, p * (len(tested) - rank)))
        adjusted[place] = running
    return adjusted
