"""The optimum of a schedule against an enumeration of every selection on small trees."""

import itertools
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from hypothesis import given, settings

from pathnav.explore import Schedule, TopK, hit_counts, optimum_counts
from pathnav.explore.nesting import Nesting
from pathnav.explore.scores import Flags
from pathnav.explore.search import Selection
from support.tile_trees import Wood, few_nestings, nesting, schedules, woods


def every_choice(tiles: Sequence[int], most: int) -> Iterator[tuple[int, ...]]:
    """Yield every set of at most `most` of some tiles."""
    return itertools.chain.from_iterable(itertools.combinations(tiles, n) for n in range(min(most, len(tiles)) + 1))


def every_selection(tree: Nesting, keep: Sequence[int], eligible: Sequence[Flags]) -> Iterator[list[set[int]]]:
    """Yield the kept tiles per level of every selection within a schedule."""

    def below(level: int, kept: Iterable[int]) -> Iterator[list[set[int]]]:
        if level == tree.levels:
            yield []
            return
        families = [
            [t for t in tree.children(level - 1, np.array([parent])).tolist() if eligible[level][t]] for parent in kept
        ]
        for picks in itertools.product(*(list(every_choice(family, keep[level])) for family in families)):
            chosen = set(itertools.chain.from_iterable(picks))
            for rest in below(level + 1, sorted(chosen)):
                yield [chosen, *rest]

    for top in every_choice(np.flatnonzero(eligible[0]).tolist(), keep[0]):
        for rest in below(1, top):
            yield [set(top), *rest]


@settings(max_examples=40, deadline=None)
@given(woods(few_nestings), schedules)
def test_the_optimum_is_the_best_of_all_selections(wood: Wood, keep: tuple[int, int, int]) -> None:
    best = [0, 0, 0]
    small = tuple(min(k, limit) for k, limit in zip(keep, (2, 2, 2), strict=True))
    for kept in every_selection(wood.nesting, small, wood.eligible):
        hits = [sum(bool(wood.positives[level][tile]) for tile in tiles) for level, tiles in enumerate(kept)]
        best = [max(pair) for pair in zip(best, hits, strict=True)]
    assert optimum_counts(wood.nesting, Schedule(small), wood.positives, wood.eligible) == tuple(best)


@given(woods(), schedules)
def test_no_search_keeps_more_positives_than_the_optimum(wood: Wood, keep: tuple[int, int, int]) -> None:
    for fill_to_k in (False, True):
        found = TopK(Schedule(keep), fill_to_k).advance(wood.table())
        assert isinstance(found, Selection)
        for counts in hit_counts(wood.nesting, found, Schedule(keep), wood.positives, wood.eligible):
            assert counts.kept_positives <= counts.optimum_positives <= counts.positives


def test_the_optimum_passes_through_tiles_that_are_not_positive() -> None:
    tree = nesting(4, 4)
    none, all_ = np.zeros(4, bool), [np.ones(tree.count(level), bool) for level in range(3)]
    deep = np.zeros(16, bool)
    deep[[0, 1, 4]] = True
    assert optimum_counts(tree, Schedule((1, 1, 2)), (none[:1], none, deep), all_) == (0, 0, 2)


def test_the_optimum_keeps_no_tile_that_is_not_shown() -> None:
    tree = nesting(4, 4)
    all_ = [np.ones(tree.count(level), bool) for level in range(3)]
    hidden = [all_[0], np.array([False, True, True, True]), all_[2]]
    assert optimum_counts(tree, Schedule((1, 4, 4)), all_, all_) == (1, 4, 16)
    assert optimum_counts(tree, Schedule((1, 4, 4)), all_, hidden) == (1, 3, 12)
