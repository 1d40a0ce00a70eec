"""Samples: seeded, stratified, independent of order, honest about what is missing."""

import random
from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from pathnav.cohort.sample import Candidate, Selection, allocate, select
from pathnav.cohort.scenario import SampleSpec

ALL = (2.5, 10.0, 40.0)


def candidates(**organs: int) -> list[Candidate]:
    """Return so many slides of each organ, each with 2, 4 and 8 nodes."""
    return [
        Candidate(
            f"{organ}-{number}.svs",
            organ,
            {m: tuple(f"{m:g}-{node}" for node in range(count)) for m, count in zip(ALL, (2, 4, 8), strict=True)},
        )
        for organ, count in organs.items()
        for number in range(count)
    ]


def organs(selection: Selection) -> Counter[str | None]:
    """Return how many slides of each organ were chosen."""
    return Counter(one.organ for one in selection.slides)


@settings(max_examples=25, deadline=None)
@given(st.randoms(use_true_random=False), st.integers(0, 100))
def test_a_sample_does_not_depend_on_the_order_of_the_cohort(shuffle: random.Random, seed: int) -> None:
    spec = SampleSpec(slides=5, stratify="organ", queries_per_magnification=2, seed=seed)
    cohort = candidates(breast=5, colon=3, skin=1)
    shuffled = [
        Candidate(c.name, c.organ, {m: tuple(shuffle.sample(ids, len(ids))) for m, ids in c.nodes.items()})
        for c in cohort
    ]
    shuffle.shuffle(shuffled)
    assert select(cohort, spec, ALL) == select(shuffled, spec, ALL)


def test_another_seed_draws_other_slides_and_nodes() -> None:
    cohort = candidates(breast=40)
    chosen = [select(cohort, SampleSpec(slides=10, queries_per_magnification=1, seed=seed), ALL) for seed in (1, 2)]
    assert {one.name for one in chosen[0].slides} != {one.name for one in chosen[1].slides}


def test_every_slide_is_drawn_equally_often() -> None:
    cohort = candidates(breast=10)
    drawn = Counter(
        one.name for seed in range(2000) for one in select(cohort, SampleSpec(slides=3, seed=seed), ALL).slides
    )
    # 600 each are expected, with a standard deviation of 20.
    assert all(520 < count < 680 for count in drawn.values())


def test_a_cohort_that_grows_keeps_most_of_its_sample() -> None:
    spec = SampleSpec(slides=20, seed=3)
    before = {one.name for one in select(candidates(breast=100), spec, ALL).slides}
    after = {one.name for one in select(candidates(breast=105), spec, ALL).slides}
    assert len(before & after) >= 15


def test_strata_are_drawn_in_proportion() -> None:
    selection = select(candidates(breast=60, colon=30, skin=10), SampleSpec(slides=50, stratify="organ"), ALL)
    assert organs(selection) == {"breast": 30, "colon": 15, "skin": 5}


def test_a_rare_stratum_is_not_left_out() -> None:
    selection = select(candidates(breast=198, skin=2), SampleSpec(slides=10, stratify="organ"), ALL)
    assert organs(selection) == {"breast": 9, "skin": 1}


@given(st.dictionaries(st.sampled_from("abcdef"), st.integers(1, 40), min_size=1), st.data(), st.integers(0, 9))
def test_shares_add_up_stay_within_the_strata_and_leave_none_out(
    sizes: dict[str, int], data: st.DataObject, seed: int
) -> None:
    total = data.draw(st.integers(0, sum(sizes.values())))
    given_ = allocate(sizes, total, seed)
    assert sum(given_.values()) == total
    assert all(given_[name] <= size for name, size in sizes.items())
    if total >= len(sizes):
        assert min(given_.values()) >= 1


def test_one_query_per_magnification_is_drawn_from_each_slide() -> None:
    selection = select(candidates(breast=3), SampleSpec(queries_per_magnification=1), ALL)
    assert [{m: len(ids) for m, ids in one.nodes.items()} for one in selection.slides] == [dict.fromkeys(ALL, 1)] * 3
    assert selection.notes == ()


def test_without_limits_everything_is_taken() -> None:
    cohort = candidates(breast=3)
    assert list(select(cohort, SampleSpec(), ALL).slides) == cohort


def test_what_is_missing_is_told() -> None:
    cohort = [Candidate("a", "x", {2.5: ("n",), 10.0: ("m", "k")}), Candidate("b", "x", {})]
    selection = select(cohort, SampleSpec(slides=5, queries_per_magnification=2), ALL)
    assert selection.notes == (
        "slide a has 0 of 2 queries at 40x",
        "slide a has 1 of 2 queries at 2.5x",
        "slide b has no query and is left out",
        "the sample asks for 5 slides, the cohort has 1 with queries",
    )
