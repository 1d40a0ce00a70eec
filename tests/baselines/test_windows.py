"""The tissue baselines against brute force: sub-cell counting on small masks."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from pathnav_baselines.grid_centroid import nearest_cell, tissue_centroid
from pathnav_baselines.windows import densest_window, weighted_windows, window_boxes

from pathnav.geometry import Box
from pathnav.slide import TissueMask, TissueStatus

CELL_PX = 4
"""Each mask cell is 4 x 4 level-0 px, so that whole-pixel windows cut cells and can still be counted by hand."""


@st.composite
def masks(draw: st.DrawFn) -> TissueMask:
    """Draw a small mask of a region that does not start at the slide's corner."""
    rows, columns = draw(st.integers(1, 5)), draw(st.integers(1, 5))
    cells = draw(st.lists(st.booleans(), min_size=rows * columns, max_size=rows * columns))
    return mask_of(np.array(cells).reshape(rows, columns))


def mask_of(cells: NDArray[np.bool_]) -> TissueMask:
    rows, columns = cells.shape
    status = TissueStatus.TISSUE if cells.any() else TissueStatus.NO_TISSUE
    return TissueMask(Box(100, 60, columns * CELL_PX, rows * CELL_PX), cells, status)


def centres(mask: TissueMask) -> list[tuple[float, float]]:
    """Return the centres of the mask's cells, row by row."""
    rows, columns = mask.array.shape
    return [
        (mask.region.x + CELL_PX * (column + 0.5), mask.region.y + CELL_PX * (row + 0.5))
        for row, column in itertools.product(range(rows), range(columns))
    ]


def counted_share(mask: TissueMask, box: Box) -> float:
    """Return the tissue share of a window of whole pixels by looking at each pixel."""
    rows, columns = mask.array.shape
    held = 0
    for x, y in itertools.product(range(int(box.x), int(box.right)), range(int(box.y), int(box.bottom))):
        row, column = (y - int(mask.region.y)) // CELL_PX, (x - int(mask.region.x)) // CELL_PX
        held += 0 <= row < rows and 0 <= column < columns and bool(mask.array[row, column])
    return held / box.area


even = st.integers(1, 14).map(lambda half: 2 * half)


@given(masks(), even, even)
def test_one_window_stands_around_each_mask_cell(mask: TissueMask, width: int, height: int) -> None:
    expected = [Box.centred(centre, width, height).as_list() for centre in centres(mask)]
    assert window_boxes(mask, width, height).tolist() == expected


@given(masks(), even, even, st.integers(0, 9))
def test_the_densest_window_holds_as_much_as_any(mask: TissueMask, width: int, height: int, seed: int) -> None:
    found = densest_window(mask, width, height, np.random.default_rng(seed))
    counted = [counted_share(mask, Box.centred(centre, width, height)) for centre in centres(mask)]
    assert (found.width, found.height) == (width, height)
    assert counted_share(mask, found) == pytest.approx(max(counted))


def test_equals_are_decided_by_the_seed_and_all_can_win() -> None:
    cells = np.zeros((1, 9), dtype=bool)
    cells[0, [1, 4, 7]] = True
    mask = mask_of(cells)
    drawn = [densest_window(mask, 4, 4, np.random.default_rng(seed)).x for seed in range(200)]
    assert drawn == [densest_window(mask, 4, 4, np.random.default_rng(seed)).x for seed in range(200)]
    assert {x: drawn.count(x) > 40 for x in drawn} == {104.0: True, 116.0: True, 128.0: True}


@given(masks(), even, even)
def test_windows_weigh_what_they_hold(mask: TissueMask, width: int, height: int) -> None:
    boxes, weights = weighted_windows(mask, width, height)
    found = {tuple(box): weight for box, weight in zip(boxes.tolist(), weights.tolist(), strict=True)}
    windows = [Box.centred(centre, width, height) for centre in centres(mask)]
    counted = [counted_share(mask, window) for window in windows]
    total = sum(counted)
    for window, share in zip(windows, counted, strict=True):
        expected = share / total if total else 1 / len(windows)
        assert found.get(tuple(window.as_list()), 0.0) == pytest.approx(expected, abs=1e-9)
    assert weights.sum() == pytest.approx(1)


@given(masks())
def test_the_centroid_is_the_mean_of_the_tissue_cells(mask: TissueMask) -> None:
    tissue = [centre for centre, held in zip(centres(mask), mask.array.ravel(), strict=True) if held]
    found = tissue_centroid(mask)
    assert (found is None) == (not tissue)
    if found is not None:
        assert found == pytest.approx(tuple(np.mean(tissue, axis=0)))


sides = st.integers(1, 60)


@given(sides, sides, sides, sides, st.tuples(st.integers(0, 60), st.integers(0, 60)))
def test_the_cell_is_the_nearest_whose_centre_lies_in_the_region(
    region_width: int, region_height: int, width: int, height: int, point: tuple[int, int]
) -> None:
    region = Box(100, 60, region_width, region_height)
    middle = (100 + min(point[0], region_width), 60 + min(point[1], region_height))
    found = nearest_cell(region, width, height, middle)
    assert (found.width, found.height) == (width, height)

    def axis_centres(start: float, length: int, cell: int) -> list[float]:
        all_cells = [start + cell * (index + 0.5) for index in range(61)]
        return [centre for centre in all_cells if centre <= start + length] or [start + length / 2]

    grid = itertools.product(axis_centres(100, region_width, width), axis_centres(60, region_height, height))
    nearest = min(grid, key=lambda centre: (np.hypot(centre[0] - middle[0], centre[1] - middle[1]), *centre))
    assert found.centre == pytest.approx(nearest)
