"""Samples and controls: seeded, independent of order, honest about what is missing."""

import logging
import random
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pathnav.cohort.sample import Nodes, SampleSpec, allocate, jittered, sampled_slides, select, swapped
from pathnav.errors import ConfigError
from pathnav.geometry import Box

ALL = (2.5, 10.0, 40.0)


def cohort(**organs: int) -> tuple[Nodes, dict[str, str | None]]:
    """Return so many slides of each organ, each with 2, 4 and 8 nodes."""
    nodes = {m: [f"{m:g}-{node}" for node in range(count)] for m, count in zip(ALL, (2, 4, 8), strict=True)}
    by_slide = {f"{organ}-{number}.svs": organ for organ, count in organs.items() for number in range(count)}
    return dict.fromkeys(by_slide, nodes), dict(by_slide)


@settings(max_examples=25, deadline=None)
@given(st.randoms(use_true_random=False), st.integers(0, 100))
def test_a_sample_does_not_depend_on_the_order_of_the_cohort(shuffle: random.Random, seed: int) -> None:
    spec = SampleSpec(slides=5, stratify="organ", queries_per_magnification=2, seed=seed)
    nodes, organs = cohort(breast=5, colon=3, skin=1)
    names = shuffle.sample(list(nodes), len(nodes))
    shuffled = {name: {m: shuffle.sample(ids, len(ids)) for m, ids in nodes[name].items()} for name in names}
    assert select(nodes, organs, spec) == select(shuffled, organs, spec)


def test_every_slide_is_drawn_equally_often() -> None:
    organs = cohort(breast=10)[1]
    drawn = Counter(name for seed in range(2000) for name in sampled_slides(organs, SampleSpec(slides=3, seed=seed)))
    # 600 each are expected, with a standard deviation of 20.
    assert all(520 < count < 680 for count in drawn.values())


def test_a_cohort_that_grows_keeps_most_of_its_sample() -> None:
    spec = SampleSpec(slides=20, seed=3)
    before, after = (set(sampled_slides(cohort(breast=count)[1], spec)) for count in (100, 105))
    assert len(before & after) >= 15


@pytest.mark.parametrize(
    ("organs", "slides", "drawn"),
    [
        ({"breast": 60, "colon": 30, "skin": 10}, 50, {"breast": 30, "colon": 15, "skin": 5}),
        ({"breast": 198, "skin": 2}, 10, {"breast": 9, "skin": 1}),
    ],
)
def test_strata_are_drawn_in_proportion_and_none_is_left_out(
    organs: dict[str, int], slides: int, drawn: dict[str, int]
) -> None:
    chosen = sampled_slides(cohort(**organs)[1], SampleSpec(slides=slides, stratify="organ"))
    assert Counter(name.partition("-")[0] for name in chosen) == drawn


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


def test_one_query_per_magnification_is_drawn_from_each_slide_or_everything_is_taken() -> None:
    nodes, organs = cohort(breast=3)
    drawn, notes = select(nodes, organs, SampleSpec(queries_per_magnification=1))
    assert [[node.split("-")[0] for node in ids] for ids in drawn.values()] == [["2.5", "10", "40"]] * 3
    assert notes == []
    every = {name: [node for ids in found.values() for node in ids] for name, found in nodes.items()}
    assert select(nodes, organs, SampleSpec())[0] == every


def test_what_is_missing_is_told() -> None:
    nodes = {"a": {2.5: ["n"], 10.0: ["m", "k"], 40.0: []}, "b": {2.5: []}}
    assert select(nodes, {"a": "x", "b": "x"}, SampleSpec(slides=5, queries_per_magnification=2))[1] == [
        "slide a has 0 of 2 queries at 40x",
        "slide a has 1 of 2 queries at 2.5x",
        "slide b has no query and is left out",
        "the sample asks for 5 slides, the cohort has 1 with queries",
    ]


SLIDE = Box(300, 200, 5000, 4000)
numbers = st.floats(0, 1)


@st.composite
def regions(draw: st.DrawFn) -> tuple[Box, tuple[float, float]]:
    """Return a region inside the slide, with whole or broken pixels, and a point in it."""
    cut = (lambda number: float(int(number))) if draw(st.booleans()) else float
    left, right = sorted((draw(numbers), draw(numbers)))
    above, below = sorted((draw(numbers), draw(numbers)))
    region = Box(
        cut(SLIDE.x + left * (SLIDE.width - 1)),
        cut(SLIDE.y + above * (SLIDE.height - 1)),
        cut((right - left) * (SLIDE.width - 1)) + 1,
        cut((below - above) * (SLIDE.height - 1)) + 1,
    ).intersection(SLIDE)
    return region, region.clamp_point(
        (region.x + draw(numbers) * region.width, region.y + draw(numbers) * region.height)
    )


@given(regions(), st.floats(0, 0.5), st.integers(), st.text(max_size=3))
def test_a_shifted_region_keeps_its_size_the_target_and_the_slide(
    case: tuple[Box, tuple[float, float]], share: float, seed: int, node: str
) -> None:
    region, centre = case
    shifted = jittered(region, centre, SLIDE, share, (seed, "slide", node))
    tiny = 1e-9
    assert (shifted.width, shifted.height) == (region.width, region.height)
    assert abs(shifted.x - region.x) <= share * region.width + tiny
    assert abs(shifted.y - region.y) <= share * region.height + tiny
    wider = Box(shifted.x - tiny, shifted.y - tiny, shifted.width + 2 * tiny, shifted.height + 2 * tiny)
    assert wider.holds_point(centre)
    assert shifted.x >= SLIDE.x - tiny and shifted.right <= SLIDE.right + tiny
    assert shifted.y >= SLIDE.y - tiny and shifted.bottom <= SLIDE.bottom + tiny


def test_a_shift_depends_on_seed_slide_and_node_and_on_nothing_else() -> None:
    region = Box(1000, 1000, 1000, 1000)
    seeds = [(7, "slide", "a"), (7, "slide", "a"), (8, "slide", "a"), (7, "s", "a"), (7, "slide", "b")]
    first, again, *others = [jittered(region, region.centre, SLIDE, 0.25, seed) for seed in seeds]
    assert first == again and first not in others


def test_shifts_fill_a_quarter_of_the_side_evenly_both_ways() -> None:
    region = Box(2000, 1500, 1000, 800)
    shifts = [jittered(region, region.centre, SLIDE, 0.25, (seed, "s", "n")) for seed in range(4000)]
    across, down = ([int(getattr(s, axis) - getattr(region, axis)) for s in shifts] for axis in "xy")
    assert (min(across), max(across)) == (-250, 250)
    assert (min(down), max(down)) == (-200, 200)
    # The mean of 4,000 uniform draws has a standard error of 2.3 px on x.
    assert abs(sum(across) / 4000) < 10
    assert 900 < sum(shift > 125 for shift in across) < 1100
    assert jittered(SLIDE, SLIDE.centre, SLIDE, 0.25, (1, "s", "n")) == SLIDE, "a region that fills the slide stays"


@given(st.lists(st.sampled_from("abcde"), min_size=2, max_size=30), st.integers(0, 5))
def test_every_query_gets_anothers_finding_and_its_own_text_only_where_there_is_no_other_way(
    texts: list[str], seed: int
) -> None:
    findings = {f"q{number}": text for number, text in enumerate(texts)}
    if len(set(texts)) < 2:
        with pytest.raises(ConfigError, match="two different findings at 10x"):
            swapped(findings, 10, seed)
        return
    giver = swapped(findings, 10, seed)
    assert giver == swapped(dict(reversed(findings.items())), 10, seed), "the order of the queries makes no difference"
    assert sorted(giver.values()) == sorted(findings), "every finding is given once"
    assert all(name != other for name, other in giver.items())
    same = sum(findings[name] == findings[other] for name, other in giver.items())
    assert same == max(0, 2 * max(Counter(texts).values()) - len(texts)), "the fewest there can be"


def test_swaps_depend_on_the_seed_and_texts_that_cannot_all_be_swapped_are_told(
    caplog: pytest.LogCaptureFixture,
) -> None:
    findings = {f"q{number}": f"finding {number}" for number in range(12)}
    assert swapped(findings, 10, 1) != swapped(findings, 10, 2)
    with caplog.at_level(logging.WARNING):
        swapped({"a": "x", "b": "x", "c": "x", "d": "y"}, 10, 1)
    assert "2 of 4 queries get another query's finding of the same text" in caplog.text
