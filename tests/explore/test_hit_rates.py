"""Hit rates against an independent count, their sums over slides, and what is unknown."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pathnav.explore import (
    ChoiceCounts,
    HitCounts,
    Schedule,
    Selection,
    TopK,
    choice_counts,
    hit_counts,
    macro,
    micro,
    positives_of,
)
from support.tile_trees import Wood, schedules, woods


def searched(wood: Wood, keep: tuple[int, ...]) -> Selection:
    found = TopK(Schedule(keep)).advance(wood.table())
    assert isinstance(found, Selection)
    return found


def hits(wood: Wood, keep: tuple[int, ...]) -> tuple[HitCounts, ...]:
    return hit_counts(wood.nesting, searched(wood, keep), Schedule(keep), wood.positives, wood.eligible)


@given(woods(), schedules)
def test_hit_rates_are_those_of_an_independent_count(wood: Wood, keep: tuple[int, int, int]) -> None:
    selection = searched(wood, keep)
    for level, counts in enumerate(hits(wood, keep)):
        grid = wood.nesting.grids[level]
        positive = {divmod(t, grid.columns) for t in range(grid.count) if wood.positives[level][t]}
        kept = {divmod(t, grid.columns) for t in selection.levels[level].kept.tolist()}
        reachable = positive
        if level > 0:
            above = wood.nesting.grids[level - 1]
            parents = {divmod(t, above.columns) for t in selection.levels[level - 1].kept.tolist()}
            factor = wood.nesting.factor
            reachable = {place for place in positive if (place[0] // factor, place[1] // factor) in parents}
        assert counts.conditional_hit == (len(kept & positive) / len(reachable) if reachable else None)
        assert counts.unconditional_hit == (len(kept & positive) / len(positive) if positive else None)
        assert counts.reachable_share == (len(reachable) / len(positive) if positive else None)
        assert counts.precision == (len(kept & positive) / len(kept) if kept else None)
        assert kept & positive <= reachable


@given(st.lists(st.tuples(woods(), schedules), min_size=1, max_size=4))
def test_micro_averages_add_up_tiles_and_not_slides(cohort: list[tuple[Wood, tuple[int, int, int]]]) -> None:
    slides = [hits(wood, keep) for wood, keep in cohort]
    for level, counts in enumerate(micro(slides)):
        positives = sum(slide[level].positives for slide in slides)
        kept = sum(slide[level].kept_positives for slide in slides)
        assert counts.unconditional_hit == (kept / positives if positives else None)
        best = sum(slide[level].optimum_positives for slide in slides)
        assert counts.oracle_normalised == (kept / best if best else None)


def test_a_macro_average_is_over_the_slides_that_have_the_rate() -> None:
    assert macro([0.5, None, 1.0]).mean == 0.75
    assert macro([0.5, None, 1.0]).slides == 2
    assert macro([None, None]).mean is None


def test_a_slide_without_tumour_has_no_rates_but_a_precision() -> None:
    counts = HitCounts(positives=0, reachable=0, kept=6, kept_positives=0, optimum_positives=0)
    assert counts.conditional_hit is None
    assert counts.unconditional_hit is None
    assert counts.reachable_share is None
    assert counts.optimum_hit is None
    assert counts.oracle_normalised is None
    assert counts.precision == 0


def test_positives_that_were_out_of_reach_count_for_recall_alone() -> None:
    counts = HitCounts(positives=8, reachable=0, kept=2, kept_positives=0, optimum_positives=4)
    assert counts.unconditional_hit == 0
    assert counts.conditional_hit is None
    assert counts.optimum_hit == 0.5


def test_more_than_five_percent_is_positive() -> None:
    assert positives_of(np.array([0.0, 0.05, np.nextafter(0.05, 1), 1.0])).tolist() == [False, False, True, True]


@given(woods(), schedules)
def test_what_was_asked_is_counted_without_an_annotation(wood: Wood, keep: tuple[int, int, int]) -> None:
    selection = searched(wood, keep)
    for level, counts in enumerate(choice_counts(wood.nesting, selection)):
        said = [wood.scores[level][tile] for tile in selection.levels[level].scored.tolist()]
        assert counts.tiles == wood.nesting.count(level)
        assert counts.scored == len(said)
        assert counts.yes == sum(score.yes is True for score in said)
        assert counts.unparsed == sum(score.yes is None for score in said)
        assert counts.yes_rate == (counts.yes / len(said) if said else None)
        assert counts.requests == sum(score.requests for score in said)


def test_counts_of_two_kinds_do_not_add() -> None:
    with pytest.raises(TypeError):
        HitCounts() + ChoiceCounts()  # type: ignore[operator]
