"""The invariants hold on what the search produces, and rows that break one are told apart."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from pathnav.cohort.protocol import SCHEDULES
from pathnav.explore import HitCounts, Schedule, Selection, TopK, hit_counts
from pathnav.explore.invariants import Row, broken_invariants
from support.tile_trees import Wood, nestings, woods

COUNTS = HitCounts(positives=10, reachable=10, kept=6, kept_positives=4, optimum_positives=6)
ROW = Row("scorer", frozenset({"a"}), Schedule((3, 3, 3)), (COUNTS,) * 3)
LARGER = replace(ROW, schedule=Schedule((6, 5, 3)))


def with_kept(row: Row, level: int, kept_positives: int) -> Row:
    levels = list(row.levels)
    levels[level] = replace(levels[level], kept_positives=kept_positives)
    return replace(row, levels=tuple(levels))


@given(woods(nestings(most=17, factors=(4,))), st.booleans())
def test_the_sweep_of_any_scorer_keeps_the_invariants(wood: Wood, fill_to_k: bool) -> None:
    table, rows = wood.table(), []
    for keep in SCHEDULES:
        found = TopK(Schedule(keep), fill_to_k).advance(table)
        assert isinstance(found, Selection)
        counts = hit_counts(wood.nesting, found, Schedule(keep), wood.positives, wood.eligible)
        rows.append(Row("scorer", frozenset({"slide"}), Schedule(keep), counts))
    assert broken_invariants(rows) == []


def test_rows_that_keep_them_are_silent() -> None:
    assert broken_invariants([ROW, LARGER, with_kept(LARGER, 2, 5)]) == []


def test_a_rate_above_the_optimum_is_told() -> None:
    (sentence,) = broken_invariants([with_kept(ROW, 1, 7)])
    assert sentence == "scorer at 10x with K = 3,3,3 keeps 7 positives, more than the optimum of 6"


def test_recall_that_falls_as_every_k_grows_is_told() -> None:
    (sentence,) = broken_invariants([with_kept(LARGER, 2, 3), ROW])
    assert sentence == "scorer at 40x keeps 4 positives with K = 3,3,3 but 3 with K = 6,5,3"


def test_a_first_level_that_depends_on_the_later_k_is_told() -> None:
    other = with_kept(replace(ROW, schedule=Schedule((3, 2, 4))), 0, 3)
    (sentence,) = broken_invariants([ROW, other])
    assert sentence == "scorer has two results at 2.5x with K = 3,2,4 and 3,3,3"


def test_schedules_of_which_neither_holds_the_other_may_cross() -> None:
    crossing = replace(ROW, schedule=Schedule((4, 2, 3)))
    assert broken_invariants([ROW, with_kept(crossing, 1, 1)]) == []


def test_rows_of_other_slides_or_scores_are_not_compared() -> None:
    worse = with_kept(LARGER, 2, 1)
    assert broken_invariants([ROW, replace(worse, slides=frozenset({"a", "b"}))]) == []
    assert broken_invariants([ROW, replace(worse, scores="another")]) == []
