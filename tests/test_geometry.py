"""Boxes against brute force on small grids and against the properties that the rest relies on."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pathnav.geometry import Box, Grid, iou, ious, union_area

GRID_SIDE = 12

whole = st.integers(0, GRID_SIDE)
# Thousandths of a pixel: an extent of 1e-6 px at x = 1e6 is lost in the last bits of the far edge.
numbers = st.integers(-(10**9), 10**9).map(lambda thousandths: thousandths / 1000)
extents = st.integers(0, 10**9).map(lambda thousandths: thousandths / 1000)
boxes = st.builds(Box, numbers, numbers, extents, extents)
grid_boxes = st.builds(
    lambda x, y, right, bottom: Box(min(x, right), min(y, bottom), abs(right - x), abs(bottom - y)),
    whole,
    whole,
    whole,
    whole,
)


def painted(*found: Box) -> np.ndarray:
    """Return the unit cells of the grid that the boxes cover, one by one."""
    cells = np.zeros((GRID_SIDE, GRID_SIDE), dtype=bool)
    for box in found:
        for x, y in itertools.product(range(GRID_SIDE), repeat=2):
            cells[y, x] |= box.x <= x < box.right and box.y <= y < box.bottom
    return cells


@given(st.lists(grid_boxes, max_size=6))
def test_union_area_is_the_number_of_covered_cells(found: list[Box]) -> None:
    assert union_area(found) == painted(*found).sum()


@given(st.lists(boxes, max_size=8))
def test_union_area_lies_between_the_largest_box_and_the_sum(found: list[Box]) -> None:
    areas = [box.area for box in found]
    area = union_area(found)
    assert max(areas, default=0.0) <= area * (1 + 1e-6) + 1e-3
    assert area <= sum(areas) * (1 + 1e-6) + 1e-3


@given(grid_boxes, grid_boxes)
def test_iou_is_the_share_of_common_cells(first: Box, second: Box) -> None:
    common, either = (painted(first) & painted(second)).sum(), (painted(first) | painted(second)).sum()
    assert iou(first, second) == pytest.approx(common / either if either else 0.0)


@given(st.lists(boxes, min_size=1, max_size=8), boxes)
def test_many_ious_are_the_single_ones(found: list[Box], target: Box) -> None:
    rows = np.array([[box.x, box.y, box.width, box.height] for box in found])
    assert ious(rows, target) == pytest.approx([iou(box, target) for box in found], abs=1e-9)


@given(grid_boxes, grid_boxes)
def test_intersection_holds_the_common_cells(first: Box, second: Box) -> None:
    common = first.intersection(second)
    assert (painted(common) == (painted(first) & painted(second))).all()
    assert first.meets(second) == bool((painted(first) & painted(second)).any())


@given(boxes, boxes)
def test_a_shifted_box_lies_inside_and_keeps_what_fits(box: Box, outer: Box) -> None:
    shifted = box.shifted_into(outer)
    slack = 1e-6
    assert shifted.x >= outer.x - slack
    assert shifted.y >= outer.y - slack
    assert shifted.right <= outer.right + slack
    assert shifted.bottom <= outer.bottom + slack
    assert (shifted.width, shifted.height) == (min(box.width, outer.width), min(box.height, outer.height))


@given(grid_boxes, grid_boxes)
def test_a_box_that_lies_inside_is_not_shifted(box: Box, outer: Box) -> None:
    if outer.holds(box):
        assert box.shifted_into(outer) == box


@given(boxes, st.tuples(numbers, numbers))
def test_a_clamped_point_is_in_the_box_and_the_nearest(box: Box, point: tuple[float, float]) -> None:
    clamped = box.clamp_point(point)
    assert box.holds_point(clamped)
    assert not box.holds_point(point) or clamped == point


@given(boxes)
def test_rounding_out_covers_the_box_with_whole_pixels(box: Box) -> None:
    rounded = box.rounded_out()
    assert rounded.x <= box.x
    assert rounded.y <= box.y
    assert rounded.right >= box.right
    assert rounded.bottom >= box.bottom
    assert all(float(number).is_integer() for number in rounded.as_list())


@given(boxes)
def test_the_json_form_gives_the_box_back(box: Box) -> None:
    assert Box.from_list(box.as_list()) == box


@pytest.mark.parametrize("numbers", [(0, 0, -1, 1), (0, 0, 1, -1), (float("nan"), 0, 1, 1), (0, float("inf"), 1, 1)])
def test_a_box_of_negative_or_endless_extent_is_refused(numbers: tuple[float, float, float, float]) -> None:
    with pytest.raises(ValueError, match="a box"):
        Box(*numbers)


def test_whole_numbers_are_written_as_integers() -> None:
    assert Box(1.0, 2.5, 3.0, 4.0).as_list() == [1, 2.5, 3, 4]
    assert isinstance(Box(1.0, 2.5, 3.0, 4.0).as_list()[0], int)


@given(
    st.integers(-50, 50),
    st.integers(-50, 50),
    st.integers(1, 100),
    st.integers(1, 100),
    st.tuples(*[st.integers(1, 40)] * 2),
)
def test_the_tiles_of_a_grid_cover_its_area_once(
    x: int, y: int, width: int, height: int, side: tuple[int, int]
) -> None:
    area = Box(x, y, width, height)
    grid = Grid(area, *side)
    boxes = [Box.from_list(row) for row in grid.boxes().tolist()]
    assert len(boxes) == grid.count == grid.rows * grid.columns
    assert all(area.holds(box) and not box.is_empty for box in boxes)
    assert sum(box.area for box in boxes) == area.area == sum(grid.areas().tolist())
    assert union_area(boxes) == area.area
    assert boxes == [grid.box(row, column) for row in range(grid.rows) for column in range(grid.columns)]
    assert all(box.width == side[0] for box in boxes if box.right < area.right)


@pytest.mark.parametrize(("area", "side"), [(Box(0, 0, 0, 5), (1, 1)), (Box(0, 0, 5, 5), (0, 1))])
def test_a_grid_has_an_area_and_tiles_of_some_extent(area: Box, side: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match="a grid needs"):
        Grid(area, *side)
