"""Windows of a region: where they stand, in which blocks they are read, and which are peaks."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pathnav.geometry import Box, iou, union_area
from pathnav.retrieval.windows import PEAK_IOU, WindowGrid, peaks

sides = st.floats(20, 400)
regions = st.builds(Box, st.floats(0, 1000), st.floats(0, 1000), st.floats(50, 6000), st.floats(50, 6000))


def test_windows_stand_half_a_window_apart_and_end_at_the_regions_edge() -> None:
    grid = WindowGrid.over(Box(100, 0, 250, 100), 100, 100)
    assert grid.lefts.tolist() == [100, 150, 200, 250]
    assert grid.tops.tolist() == [0]
    assert grid.boxes()[-1].tolist() == [250, 0, 100, 100]


@given(region=regions, width=sides, height=sides)
def test_windows_cover_the_region_and_nothing_else(region: Box, width: float, height: float) -> None:
    grid = WindowGrid.over(region, width, height)
    for starts, side, first, last in (
        (grid.lefts, grid.width, region.x, region.right),
        (grid.tops, grid.height, region.y, region.bottom),
    ):
        assert starts[0] == first
        assert abs(starts[-1] + side - last) < 1e-3
        assert (np.diff(starts) > 0).all()
        assert (np.diff(starts) <= side / 2 + 1e-9).all()


def test_a_window_larger_than_the_region_is_the_region() -> None:
    grid = WindowGrid.over(Box(10, 20, 30, 40), 100, 10)
    assert grid.boxes()[0].tolist() == [10, 20, 30, 10]


@given(region=regions, width=sides, height=sides)
def test_every_window_is_read_in_one_block(region: Box, width: float, height: float) -> None:
    grid = WindowGrid.over(region, width, height)
    numbers = np.concatenate([grid.numbers(block) for block in grid.blocks()])
    assert sorted(numbers.tolist()) == list(range(grid.count))


def test_the_extent_of_a_block_is_that_of_its_windows() -> None:
    grid = WindowGrid.over(Box(0, 0, 5000, 3000), 100, 80)
    for block in grid.blocks():
        boxes = grid.boxes(grid.numbers(block))
        corner = boxes[:, :2].min(axis=0)
        far = (boxes[:, :2] + boxes[:, 2:]).max(axis=0)
        assert np.allclose(grid.extent(block).as_list(), [*corner, *(far - corner)])


@given(kept=st.sets(st.integers(0, 20), min_size=1))
def test_what_some_windows_cover_is_their_union(kept: set[int]) -> None:
    grid = WindowGrid.over(Box(5, 5, 350, 200), 100, 100)
    numbers = np.array(sorted(number % grid.count for number in kept))
    boxes = [Box.from_list(box) for box in grid.boxes(np.unique(numbers)).tolist()]
    assert np.isclose(union_area(grid.covered(np.unique(numbers))), union_area(boxes))


@given(st.lists(st.integers(0, 9), min_size=28, max_size=28), st.integers(1, 30))
def test_peaks_are_the_best_that_overlap_little(values: list[int], most: int) -> None:
    grid = WindowGrid.over(Box(0, 0, 400, 250), 100, 100)
    boxes = grid.boxes()
    scores = np.array(values, np.float64)
    found = peaks(boxes, scores, most)
    assert scores[found[0]] == scores.max()
    assert len(found) <= most
    shown = [Box.from_list(boxes[place].tolist()) for place in found]
    assert all(iou(a, b) < PEAK_IOU for i, a in enumerate(shown) for b in shown[:i])
    assert (np.diff(scores[found]) <= 0).all()
    if len(found) < most:  # then nothing is left that no peak overlaps
        rest = (Box.from_list(box) for box in boxes.tolist())
        assert all(any(iou(box, peak) >= PEAK_IOU for peak in shown) for box in rest)
