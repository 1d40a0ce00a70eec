"""The windows of a search region: all of the target's size, half a window apart, and the blocks they are read in."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pathnav.geometry import Box, Floats, ious

Numbers = NDArray[np.int64]

BLOCK_WINDOWS = 16
"""Windows a side that share the pixels of one read: 8.5 windows' sides, of which half a one is read twice at a seam."""

PEAK_IOU = 0.3
"""Peaks overlap by less: neighbours half a window apart overlap by a third and show the same thing."""

_EDGE_TOLERANCE = 1e-6  # level-0 px


@dataclass(frozen=True, slots=True)
class Block:
    """Windows that are read at once.

    Args:
        rows: First row, and first one beyond.
        columns: First column, and first one beyond.
    """

    rows: tuple[int, int]
    columns: tuple[int, int]


@dataclass(frozen=True)
class WindowGrid:
    """Windows at stride 1/2 over a region; a last row and column ends at the region's far edge.

    Args:
        region: The search region, level-0 px.
        width: Extent of a window along x, level-0 px; no more than the region's.
        height: Extent along y.
    """

    region: Box
    width: float
    height: float

    @classmethod
    def over(cls, region: Box, width: float, height: float) -> "WindowGrid":
        """Return the windows of a size over a region; a size beyond the region's is cut to it."""
        return cls(region, min(width, region.width), min(height, region.height))

    @cached_property
    def lefts(self) -> Floats:
        """Left edges of the columns, level-0 px."""
        return _starts(self.region.x, self.region.width, self.width)

    @cached_property
    def tops(self) -> Floats:
        """Top edges of the rows, level-0 px."""
        return _starts(self.region.y, self.region.height, self.height)

    @property
    def count(self) -> int:
        """How many windows there are."""
        return self.lefts.size * self.tops.size

    @property
    def settings(self) -> dict[str, Any]:
        """All that says which window a number means, as JSON."""
        return {"region": self.region.as_list(), "window": [self.width, self.height], "stride": 0.5}

    def boxes(self, numbers: Numbers | None = None) -> Floats:
        """Return the boxes of some windows (default: all), in reading order: float64 (n, 4), rows [x, y, w, h]."""
        rows, columns = np.divmod(np.arange(self.count) if numbers is None else numbers, self.lefts.size)
        sides = np.broadcast_to((self.width, self.height), (rows.size, 2))
        return np.column_stack([self.lefts[columns], self.tops[rows], sides])

    def covered(self, numbers: Numbers) -> list[Box]:
        """Return boxes that cover just what some windows cover: those of a row that touch are one."""
        found = []
        rows, columns = np.divmod(np.sort(numbers), self.lefts.size)
        for row in np.unique(rows).tolist():
            inside = columns[rows == row]
            for run in np.split(inside, np.flatnonzero(np.diff(inside) > 2) + 1):
                left, right = float(self.lefts[run[0]]), float(self.lefts[run[-1]]) + self.width
                top = float(self.tops[row])
                found.append(Box.from_corners(left, top, right, top + self.height))
        return found

    def blocks(self) -> Iterator[Block]:
        """Yield the blocks in reading order."""
        for row in range(0, self.tops.size, BLOCK_WINDOWS):
            for column in range(0, self.lefts.size, BLOCK_WINDOWS):
                bottom = min(row + BLOCK_WINDOWS, self.tops.size)
                yield Block((row, bottom), (column, min(column + BLOCK_WINDOWS, self.lefts.size)))

    def numbers(self, block: Block) -> Numbers:
        """Return the windows of a block, in reading order."""
        rows, columns = np.arange(*block.rows), np.arange(*block.columns)
        return (rows[:, None] * self.lefts.size + columns).reshape(-1).astype(np.int64)

    def extent(self, block: Block) -> Box:
        """Return what the windows of a block cover, level-0 px."""
        left, top = float(self.lefts[block.columns[0]]), float(self.tops[block.rows[0]])
        right = float(self.lefts[block.columns[1] - 1]) + self.width
        return Box.from_corners(left, top, right, float(self.tops[block.rows[1] - 1]) + self.height)


def peaks(boxes: Floats, scores: Floats, most: int) -> list[int]:
    """Return the places of the best boxes that overlap each other by less than `PEAK_IOU`, best first.

    Args:
        boxes: float64, shape (n, 4), rows [x, y, w, h].
        scores: float64, shape (n,); equals stand in the order of the boxes.
        most: How many are wanted.
    """
    order = np.argsort(-scores, kind="stable")
    found: list[int] = []
    while order.size and len(found) < most:
        best = int(order[0])
        found.append(best)
        order = order[ious(boxes[order], Box.from_list(boxes[best].tolist())) < PEAK_IOU]
    return found


def _starts(start: float, extent: float, side: float) -> Floats:
    """Return where the windows of an axis begin: half a side apart, and one that ends where the axis ends."""
    room = max(0.0, extent - side)
    starts = np.arange(0.0, room + _EDGE_TOLERANCE, side / 2)
    if room - starts[-1] > _EDGE_TOLERANCE:
        starts = np.append(starts, room)
    return start + starts
