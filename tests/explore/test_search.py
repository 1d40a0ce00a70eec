"""Hierarchical top-K against an independent brute force, and how it treats equals, No and answers not understood."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pathnav.errors import ConfigError
from pathnav.explore import Schedule, Selection, TileScore, TopK, Wanted
from pathnav.explore.schedule import widest
from pathnav.explore.scores import ScoreTable
from support.tile_trees import Wood, constant, nesting, schedules, score, woods


def selection(wood: Wood, keep: tuple[int, ...], fill_to_k: bool = False, seed: int = 0) -> Selection:
    """Return what top-K keeps when all scores are known."""
    found = TopK(Schedule(keep), fill_to_k).advance(wood.table(seed))
    assert isinstance(found, Selection)
    return found


def kept_by_hand(wood: Wood, keep: tuple[int, ...], fill_to_k: bool, seed: int) -> list[list[int]]:
    """Return the kept tiles per level, found with lists, rows and columns only; equals in the table's order."""
    table = wood.table(seed)
    found: list[list[int]] = []
    for level, k in enumerate(keep):
        grid, kept = wood.nesting.grids[level], []
        groups: dict[tuple[int, int] | None, list[int]] = {}
        for tile in range(grid.count):
            place = divmod(tile, grid.columns)
            parent = tuple(n // wood.nesting.factor for n in place) if level else None
            groups.setdefault(parent, []).append(tile)  # type: ignore[arg-type]
        for parent, tiles in groups.items():
            if parent and parent[0] * wood.nesting.grids[level - 1].columns + parent[1] not in found[-1]:
                continue
            said = {tile: wood.scores[level][tile] for tile in tiles if wood.eligible[level][tile]}
            for wanted in (True, False) if fill_to_k else (True,):
                ranked = sorted((t for t in said if said[t].yes is wanted), key=_rank(table, level, said))
                kept += ranked[: k - sum(tile in kept for tile in tiles)]
        found.append(sorted(kept))
    return found


def _rank(table: ScoreTable, level: int, said: dict[int, TileScore]) -> Callable[[int], tuple[float, int]]:
    def rank(tile: int) -> tuple[float, int]:
        confidence = said[tile].confidence
        assert confidence is not None
        return -round(confidence, 4), int(table.tie_order(level, np.array([tile]))[0])

    return rank


@given(woods(), schedules, st.booleans(), st.integers(0, 5))
def test_the_kept_tiles_are_those_of_a_brute_force(
    wood: Wood, keep: tuple[int, int, int], fill_to_k: bool, seed: int
) -> None:
    found = selection(wood, keep, fill_to_k, seed)
    assert [choice.kept.tolist() for choice in found.levels] == kept_by_hand(wood, keep, fill_to_k, seed)


@given(woods(), schedules, st.booleans())
def test_a_search_asks_level_by_level_and_only_for_the_children_of_what_it_kept(
    wood: Wood, keep: tuple[int, int, int], fill_to_k: bool
) -> None:
    policy, table = TopK(Schedule(keep), fill_to_k), ScoreTable(wood.nesting, wood.eligible, slide="slide")
    asked: list[tuple[int, list[int]]] = []
    step = policy.advance(table)
    while isinstance(step, Wanted):
        ((level, tiles),) = [(level, tiles) for level, tiles in enumerate(step.tiles) if tiles.size]
        table.set(level, tiles, [wood.scores[level][tile] for tile in tiles.tolist()])
        asked.append((level, sorted(tiles.tolist())))
        step = policy.advance(table)
    whole = selection(wood, keep, fill_to_k)
    assert [choice.kept.tolist() for choice in step.levels] == [choice.kept.tolist() for choice in whole.levels]
    assert asked == [(level, c.scored.tolist()) for level, c in enumerate(whole.levels) if c.scored.size]
    for level in (1, 2):
        below = wood.nesting.children(level - 1, whole.levels[level - 1].kept)
        assert set(whole.levels[level].scored.tolist()) == set(below[wood.eligible[level][below]].tolist())


@given(woods(), schedules, schedules, st.booleans())
def test_a_larger_schedule_keeps_all_that_a_smaller_one_keeps(
    wood: Wood, one: tuple[int, int, int], other: tuple[int, int, int], fill_to_k: bool
) -> None:
    small, large = Schedule(tuple(map(min, one, other))), widest([Schedule(one), Schedule(other)])
    assert small.within(large)
    less, more = selection(wood, small.keep, fill_to_k), selection(wood, large.keep, fill_to_k)
    for mine, theirs in zip(less.levels, more.levels, strict=True):
        assert set(mine.kept.tolist()) <= set(theirs.kept.tolist())
        assert set(mine.scored.tolist()) <= set(theirs.scored.tolist())


@given(woods(), schedules)
def test_filling_keeps_all_that_the_yes_alone_kept(wood: Wood, keep: tuple[int, int, int]) -> None:
    bare, filled = selection(wood, keep), selection(wood, keep, fill_to_k=True)
    assert all(choice.filled == 0 for choice in bare.levels)
    for mine, theirs in zip(bare.levels, filled.levels, strict=True):
        assert set(mine.kept.tolist()) <= set(theirs.kept.tolist())


def flat(scores: list[TileScore], seed: int = 0) -> ScoreTable:
    """Return a table of one level, one tile beside the other."""
    tree = nesting(len(scores), 1, levels=1)
    table = ScoreTable(tree, [np.ones(len(scores), bool)], seed)
    table.set(0, np.arange(len(scores)), scores)
    return table


def kept_of(scores: list[TileScore], k: int, fill_to_k: bool = False, seed: int = 0) -> list[int]:
    found = TopK(Schedule((k,)), fill_to_k).advance(flat(scores, seed))
    assert isinstance(found, Selection)
    return found.levels[0].kept.tolist()  # type: ignore[no-any-return]


def test_the_surest_yes_are_kept_and_a_sure_no_is_not() -> None:
    said = [score(True, 0.6), score(False, 0.99), score(True, 0.7), score(True, 0.5)]
    assert kept_of(said, 2) == [0, 2]


def test_filling_takes_the_best_no_after_every_yes() -> None:
    said = [score(True, 0.1), score(False, 0.4), score(False, 0.45), score(None)]
    assert kept_of(said, 2) == [0]
    assert kept_of(said, 2, fill_to_k=True) == [0, 2]
    assert kept_of(said, 4, fill_to_k=True) == [0, 1, 2], "an answer that was not understood is no No"


def test_confidences_equal_to_four_decimals_are_a_tie() -> None:
    nearly = [score(True, 0.50001), score(True, 0.50004)]
    assert {tuple(kept_of(nearly, 1, seed=seed)) for seed in range(20)} == {(0,), (1,)}
    apart = [score(True, 0.5001), score(True, 0.5002)]
    assert {tuple(kept_of(apart, 1, seed=seed)) for seed in range(20)} == {(1,)}


def test_equals_are_ordered_by_the_seed_and_not_by_their_place() -> None:
    said = [score(True)] * 50
    assert kept_of(said, 5, seed=1) == kept_of(said, 5, seed=1)
    assert kept_of(said, 5, seed=1) != kept_of(said, 5, seed=2)
    chosen = np.bincount(np.concatenate([kept_of(said, 5, seed=seed) for seed in range(400)]), minlength=50)
    # each tile 40 times, standard deviation 6
    assert chosen.min() > 40 - 5 * 6
    assert chosen.max() < 40 + 5 * 6


def test_equals_of_two_slides_and_of_two_levels_are_ordered_independently() -> None:
    tree, tiles = nesting(8, 8), np.arange(16)
    flags = [np.ones(tree.count(level), bool) for level in range(3)]
    orders = [
        ScoreTable(tree, flags, slide=slide).tie_order(level, tiles).argsort().tolist()
        for slide in "ab"
        for level in (1, 2)
    ]
    assert len({tuple(order) for order in orders}) == 4


def test_the_choice_counts_yes_ties_and_what_was_not_understood() -> None:
    said = [score(True, 0.5), score(True, 0.5), score(True, 0.9), score(False, 0.5), score(None)]
    found = TopK(Schedule((2,))).advance(flat(said))
    assert isinstance(found, Selection)
    (choice,) = found.levels
    assert (choice.yes, choice.unparsed, choice.candidates, choice.tied, choice.filled) == (3, 1, 3, 2, 0)
    assert choice.requests == 5


def test_equals_below_different_parents_are_no_tie() -> None:
    tree = nesting(4, 2, levels=2)
    table = ScoreTable(tree, [np.ones(2, bool), np.ones(8, bool)])
    table.set(0, np.arange(2), [score(True)] * 2)
    table.set(1, np.arange(8), [score(True, 0.1 * (1 + tile % 2) + 0.2 * (tile // 4)) for tile in range(8)])
    found = TopK(Schedule((2, 1))).advance(table)
    assert isinstance(found, Selection)
    assert found.levels[1].tied == 0
    assert found.levels[0].tied == 2


def test_a_search_that_keeps_nothing_ends_with_nothing() -> None:
    tree = nesting(8, 8)
    flags = tuple(np.ones(tree.count(level), bool) for level in range(3))
    no = tuple([score(False, 0.0)] * tree.count(level) for level in range(3))
    found = selection(Wood(tree, flags, flags, no), (6, 3, 2))
    assert [choice.kept.size for choice in found.levels] == [0, 0, 0]
    assert [choice.scored.size for choice in found.levels] == [4, 0, 0]


def test_a_slide_without_tissue_asks_for_nothing() -> None:
    tree = nesting(8, 8)
    counts = [tree.count(level) for level in range(3)]
    blank = tuple(np.zeros(count, bool) for count in counts)
    found = selection(Wood(tree, blank, blank, constant(counts)), (6, 3, 2))
    assert [choice.scored.size for choice in found.levels] == [0, 0, 0]


def test_a_policy_does_not_change_the_table() -> None:
    tree = nesting(8, 8)
    counts = [tree.count(level) for level in range(3)]
    flags = tuple(np.ones(count, bool) for count in counts)
    table = Wood(tree, flags, flags, constant(counts)).table()
    for arrays in (table.answers, table.confidences, table.requests):
        for array in arrays:
            array.setflags(write=False)
    TopK(Schedule((2, 2, 2))).advance(table)


@pytest.mark.parametrize("text", ["6,3", "6,3,2,1", "6,3,x", "", "6,0,2", "-1,3,2", "6,3,2.5"])
def test_a_schedule_is_three_whole_numbers_from_one_on(text: str) -> None:
    with pytest.raises(ConfigError, match="schedule"):
        Schedule.of(text)


def test_a_schedule_is_read_from_a_text_or_a_list() -> None:
    assert Schedule.of("6,3,2") == Schedule.of(" 6, 3, 2 ") == Schedule.of([6, 3, 2]) == Schedule((6, 3, 2))
    assert str(Schedule((6, 3, 2))) == "6,3,2"
