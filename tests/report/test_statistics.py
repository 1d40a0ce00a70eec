"""Bootstrap, permutation test and Holm against brute force, scipy and simulation."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from pathnav.report.statistics import cluster_bootstrap, holm, paired_permutation_p

VALUES = [0.1, 0.4, 0.0, 0.9, 0.3, 0.2, 0.0, 0.5]
SLIDES = ["a", "a", "a", "b", "b", "c", "d", "d"]


def exact_bootstrap(values: list[float], slides: list[str]) -> tuple[float, float]:
    """Return the percentile interval over all k**k equally likely draws of k slides."""
    ids = sorted(set(slides))
    means = []
    for draw in itertools.product(ids, repeat=len(ids)):
        drawn = [value for slide in draw for value, its in zip(values, slides, strict=True) if its == slide]
        means.append(sum(drawn) / len(drawn))
    low, high = np.percentile(means, [2.5, 97.5])
    return float(low), float(high)


def exact_flips(differences: list[float], slides: list[str]) -> float:
    """Return the exact two-sided p over all 2**k sign patterns of k slides."""
    ids = sorted(set(slides))
    sums = [sum(d for d, its in zip(differences, slides, strict=True) if its == slide) for slide in ids]
    patterns = list(itertools.product((1, -1), repeat=len(ids)))
    flipped = [abs(sum(s * sign for s, sign in zip(sums, pattern, strict=True))) for pattern in patterns]
    return sum(value >= abs(sum(sums)) - 1e-12 for value in flipped) / len(patterns)


def test_bootstrap_equals_enumeration_of_all_slide_draws() -> None:
    found = cluster_bootstrap(VALUES, SLIDES, resamples=200_000)
    assert found is not None
    assert (found.low, found.high) == pytest.approx(exact_bootstrap(VALUES, SLIDES), abs=0.01)


def test_bootstrap_of_one_query_a_slide_agrees_with_scipy() -> None:
    values = np.random.default_rng(3).beta(1, 4, 40)
    found = cluster_bootstrap(values.tolist(), [str(i) for i in range(40)], resamples=20_000)
    theirs = stats.bootstrap((values,), np.mean, n_resamples=20_000, method="percentile", rng=1).confidence_interval
    assert found is not None
    assert (found.low, found.high) == pytest.approx((theirs.low, theirs.high), abs=0.004)


def test_bootstrap_is_seeded_and_does_not_depend_on_the_order_of_queries() -> None:
    assert cluster_bootstrap(VALUES, SLIDES) == cluster_bootstrap(VALUES[::-1], SLIDES[::-1])


def test_bootstrap_of_correlated_queries_is_wider_than_that_of_independent_ones() -> None:
    values = [0.0] * 10 + [1.0] * 10
    clustered = cluster_bootstrap(values, [str(i // 5) for i in range(20)])
    independent = cluster_bootstrap(values, [str(i) for i in range(20)])
    assert clustered is not None and independent is not None
    assert clustered.high - clustered.low > 1.5 * (independent.high - independent.low)


def test_bootstrap_of_one_slide_is_not_defined() -> None:
    assert cluster_bootstrap([0.1, 0.2, 0.9], ["a", "a", "a"]) is None


def test_bootstrap_without_queries_is_not_defined() -> None:
    assert cluster_bootstrap([], []) is None


def test_bootstrap_keeps_slides_without_weight_among_the_drawn() -> None:
    values, slides = [0.2, 0.4, 0.0, 0.0], ["a", "b", "c", "d"]
    found = cluster_bootstrap(values, slides, weights=[1, 1, 0, 0], resamples=50_000)
    assert found is not None
    assert (found.low, found.high) == pytest.approx((0.2, 0.4))


def test_bootstrap_covers_the_truth_at_about_95_percent() -> None:
    rng = np.random.default_rng(11)
    slides = [str(i) for i in range(40) for _ in range(3)]
    covered, trials = 0, 400
    for trial in range(trials):
        values = np.repeat(rng.normal(0.5, 0.2, 40), 3) + rng.normal(0, 0.1, 120)
        found = cluster_bootstrap(values.tolist(), slides, resamples=500, seed=trial)
        covered += found is not None and found.low <= 0.5 <= found.high
    assert 0.90 <= covered / trials <= 0.98


def test_permutation_p_equals_enumeration_of_all_sign_flips() -> None:
    differences = [0.3, 0.1, -0.1, 0.2, 0.05, 0.4, -0.2, 0.15]
    found = paired_permutation_p(differences, SLIDES)
    assert found == pytest.approx(exact_flips(differences, SLIDES), abs=0.02)


@given(st.lists(st.integers(-64, 64), min_size=1, max_size=9), st.integers(1, 9))
def test_permutation_p_of_few_slides_is_exact_whatever_the_seed(parts: list[int], count: int) -> None:
    differences, slides = [part / 64 for part in parts], [str(place % count) for place in range(len(parts))]
    first, second = (paired_permutation_p(differences, slides, seed=seed) for seed in (0, 1))
    assert first == second == pytest.approx(exact_flips(differences, slides), abs=1e-12)


def test_as_many_patterns_as_flips_are_all_gone_through_and_more_are_drawn() -> None:
    differences, slides = [0.1] * 5, list("abcde")
    assert paired_permutation_p(differences, slides, flips=32) == 2 / 32
    assert {paired_permutation_p(differences, slides, flips=31, seed=seed) for seed in range(9)} != {2 / 32}


def test_permutation_p_agrees_with_scipy() -> None:
    differences = np.random.default_rng(5).normal(0.15, 0.4, 30)
    theirs = stats.permutation_test(
        (differences,), np.sum, permutation_type="samples", n_resamples=50_000, alternative="two-sided", rng=2
    )
    found = paired_permutation_p(differences.tolist(), [str(i) for i in range(30)], flips=50_000)
    assert found == pytest.approx(theirs.pvalue, abs=0.01)


def test_permutation_p_is_one_where_nothing_differs() -> None:
    assert paired_permutation_p([0.0] * 8, SLIDES) == 1.0


def test_permutation_p_is_one_for_a_single_slide() -> None:
    assert paired_permutation_p([0.5, 0.7], ["a", "a"]) == 1.0


def test_permutation_p_of_sixty_slides_that_all_agree_is_the_smallest_possible() -> None:
    assert paired_permutation_p([0.1] * 60, [str(i) for i in range(60)]) == 1 / 10_001


def test_permutation_without_queries_has_no_p() -> None:
    assert paired_permutation_p([], []) is None


def test_permutation_rejects_a_true_null_at_about_its_level() -> None:
    rng = np.random.default_rng(2)
    slides = [str(i) for i in range(20) for _ in range(3)]
    rejected = 0
    for trial in range(400):
        differences = np.repeat(rng.normal(0, 0.2, 20), 3) + rng.normal(0, 0.1, 60)
        p = paired_permutation_p(differences.tolist(), slides, flips=499, seed=trial)
        rejected += p is not None and p <= 0.05
    assert 0.02 <= rejected / 400 <= 0.085


def test_holm_equals_the_worked_example() -> None:
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])


def test_holm_leaves_out_what_was_not_tested() -> None:
    assert holm([None, 0.02, None, 0.03]) == [None, 0.04, None, 0.04]


@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
def test_holm_rejects_what_the_step_down_procedure_rejects(p_values: list[float]) -> None:
    level = 0.05
    order = sorted(range(len(p_values)), key=lambda i: p_values[i])
    rejected: set[int] = set()
    for rank, place in enumerate(order):
        if p_values[place] * (len(order) - rank) > level:
            break
        rejected.add(place)
    adjusted = holm(p_values)
    assert {i for i, p in enumerate(adjusted) if p is not None and p <= level} == rejected
