"""The three grids nest: children and parents are each other's inverse, and cover the area without gap or overlap."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pathnav.explore import Nesting
from pathnav.geometry import Box
from support.tile_trees import nesting, nestings


@given(nestings(most=20, factors=(2, 3, 4)))
def test_every_tile_is_a_child_of_its_parent_and_of_no_other(tree: Nesting) -> None:
    for level in range(1, tree.levels):
        below = tree.children(level - 1, np.arange(tree.count(level - 1)))
        assert np.array_equal(np.sort(below), np.arange(tree.count(level)))
        for parent in range(tree.count(level - 1)):
            children = tree.children(level - 1, np.array([parent]))
            assert 1 <= children.size <= tree.factor**2
            assert (np.diff(children) > 0).all(), "in reading order"
            assert (tree.parents(level, children) == parent).all()


@given(nestings(most=20, factors=(2, 4)))
def test_a_tile_is_exactly_covered_by_its_children(tree: Nesting) -> None:
    for level in range(tree.levels - 1):
        boxes = tree.grids[level].boxes()
        below = tree.grids[level + 1].boxes()
        for parent, box in enumerate(boxes.tolist()):
            children = [Box.from_list(row) for row in below[tree.children(level, np.array([parent]))].tolist()]
            assert all(Box.from_list(box).holds(child) for child in children)
            assert sum(child.area for child in children) == Box.from_list(box).area
            assert not any(one.meets(other) for one in children for other in children if one is not other)


@given(nestings(most=20, factors=(2, 3)), st.integers(0, 2**32 - 1))
def test_values_by_parent_are_those_of_the_children(tree: Nesting, seed: int) -> None:
    for level in range(1, tree.levels):
        values = np.random.default_rng(seed).integers(1, 100, tree.count(level))
        rows = tree.by_parent(level, values)
        for parent, row in enumerate(rows.tolist()):
            children = tree.children(level - 1, np.array([parent]))
            assert [value for value in row if value] == values[children].tolist()


def test_children_come_one_parent_after_the_other_in_the_order_given() -> None:
    tree = nesting(8, 8, factor=2)
    assert tree.children(1, np.array([5, 0])).tolist() == [18, 19, 26, 27, 0, 1, 8, 9]


def test_no_parents_have_no_children() -> None:
    assert nesting(8, 8).children(0, np.empty(0, np.int64)).size == 0
