"""Boxes and grids in level-0 pixels: pure arithmetic, no pixels, no files.

All boxes are half-open rectangles of the slide's own plane: `x` and `y` are the top-left corner, a box covers
`[x, x + width) x [y, y + height)`.
"""

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Box:
    """A rectangle in level-0 pixels.

    Args:
        x: Left edge.
        y: Top edge.
        width: Extent along x, finite; a box of no width holds no point.
        height: Extent along y.

    Raises:
        ValueError: If a number is not finite or an extent is negative.
    """

    x: float
    y: float
    width: float
    height: float

    def __post_init__(self) -> None:
        if not all(math.isfinite(number) for number in (self.x, self.y, self.width, self.height)):
            raise ValueError(f"a box needs four finite numbers, got {self.as_list()}")
        if self.width < 0 or self.height < 0:
            raise ValueError(f"a box's extent must not be negative, got {self.as_list()}")

    @classmethod
    def from_corners(cls, left: float, top: float, right: float, bottom: float) -> "Box":
        """Return the box between two corners; empty where they are out of order."""
        return cls(left, top, max(0.0, right - left), max(0.0, bottom - top))

    @classmethod
    def from_list(cls, numbers: Sequence[float]) -> "Box":
        """Return the box of `[x, y, w, h]`."""
        x, y, width, height = numbers
        return cls(x, y, width, height)

    @classmethod
    def centred(cls, centre: tuple[float, float], width: float, height: float) -> "Box":
        """Return the box of the given extent around a centre (x, y)."""
        return cls(centre[0] - width / 2, centre[1] - height / 2, width, height)

    @property
    def right(self) -> float:
        """The first x beyond the box."""
        return self.x + self.width

    @property
    def bottom(self) -> float:
        """The first y beyond the box."""
        return self.y + self.height

    @property
    def centre(self) -> tuple[float, float]:
        """The centre (x, y)."""
        return self.x + self.width / 2, self.y + self.height / 2

    @property
    def area(self) -> float:
        """The area in square level-0 pixels."""
        return self.width * self.height

    @property
    def is_empty(self) -> bool:
        """Whether the box holds no point."""
        return self.area == 0

    def as_list(self) -> list[float]:
        """Return `[x, y, w, h]`, whole numbers as integers: the form of every record."""
        # Beyond 2**53 a float no longer says which integer it is, and records take 64 bits at most.
        numbers = (float(n) for n in (self.x, self.y, self.width, self.height))
        return [int(n) if n.is_integer() and abs(n) < 2**53 else n for n in numbers]

    def intersection(self, other: "Box") -> "Box":
        """Return the common part; empty (zero extent) where there is none."""
        return Box.from_corners(
            max(self.x, other.x),
            max(self.y, other.y),
            min(self.right, other.right),
            min(self.bottom, other.bottom),
        )

    def meets(self, other: "Box") -> bool:
        """Return whether the two boxes share an area."""
        return not self.intersection(other).is_empty

    def holds(self, other: "Box") -> bool:
        """Return whether `other` lies wholly inside."""
        return self.x <= other.x and self.y <= other.y and other.right <= self.right and other.bottom <= self.bottom

    def holds_point(self, point: tuple[float, float]) -> bool:
        """Return whether a point (x, y) lies inside, edges included."""
        return self.x <= point[0] <= self.right and self.y <= point[1] <= self.bottom

    def clamp_point(self, point: tuple[float, float]) -> tuple[float, float]:
        """Return the nearest point (x, y) of the box."""
        return min(max(point[0], self.x), self.right), min(max(point[1], self.y), self.bottom)

    def shifted_into(self, outer: "Box") -> "Box":
        """Return this box moved as little as needed to lie inside `outer`, cut per side where it is larger."""
        width, height = min(self.width, outer.width), min(self.height, outer.height)
        x = min(max(self.x, outer.x), outer.right - width)
        y = min(max(self.y, outer.y), outer.bottom - height)
        return Box(x, y, width, height)

    def rounded_out(self) -> "Box":
        """Return the smallest box of whole pixels that holds this one."""
        left, top = math.floor(self.x), math.floor(self.y)
        return Box(left, top, math.ceil(self.right) - left, math.ceil(self.bottom) - top)


@dataclass(frozen=True, slots=True)
class Grid:
    """Equal tiles over an area, numbered in reading order; those at its right and lower edge are cut to it.

    Args:
        area: What is covered, in level-0 pixels; the first tile starts at its corner.
        tile_width: Extent of a whole tile along x, in level-0 pixels.
        tile_height: Extent along y.

    Raises:
        ValueError: If the area is empty or a tile has no extent.
    """

    area: Box
    tile_width: float
    tile_height: float

    def __post_init__(self) -> None:
        if self.area.is_empty or self.tile_width <= 0 or self.tile_height <= 0:
            sides = f"{self.tile_width} x {self.tile_height}"
            raise ValueError(f"a grid needs an area and tiles of some extent, got {self.area.as_list()} and {sides}")

    @property
    def columns(self) -> int:
        """Tiles along x."""
        return math.ceil(self.area.width / self.tile_width)

    @property
    def rows(self) -> int:
        """Tiles along y."""
        return math.ceil(self.area.height / self.tile_height)

    @property
    def count(self) -> int:
        """Tiles in all."""
        return self.rows * self.columns

    def box(self, row: int, column: int) -> Box:
        """Return a tile's part of the area."""
        x, y = self.area.x + column * self.tile_width, self.area.y + row * self.tile_height
        right, bottom = min(x + self.tile_width, self.area.right), min(y + self.tile_height, self.area.bottom)
        return Box(x, y, right - x, bottom - y)

    def edges(self) -> tuple[Floats, Floats]:
        """Return where the columns and the rows begin, and where the last one ends.

        Returns: float64, shapes (columns + 1,) and (rows + 1,), in level-0 pixels.
        """
        across = np.minimum(self.area.x + np.arange(self.columns + 1) * self.tile_width, self.area.right)
        down = np.minimum(self.area.y + np.arange(self.rows + 1) * self.tile_height, self.area.bottom)
        return across.astype(np.float64), down.astype(np.float64)

    def boxes(self) -> Floats:
        """Return every tile's part of the area, in reading order.

        Returns: float64, shape (count, 4), rows [x, y, w, h] in level-0 pixels.
        """
        across, down = self.edges()
        boxes = np.empty((self.rows, self.columns, 4))
        boxes[..., 0], boxes[..., 1] = across[:-1], down[:-1, None]
        boxes[..., 2], boxes[..., 3] = np.diff(across), np.diff(down)[:, None]
        return boxes.reshape(-1, 4)

    def areas(self) -> Floats:
        """Return every tile's area inside, in square level-0 pixels: float64, shape (count,)."""
        across, down = self.edges()
        return np.outer(np.diff(down), np.diff(across)).ravel()


def iou(first: Box, second: Box) -> float:
    """Return the intersection over union of two boxes, 0 where both are empty."""
    common = first.intersection(second).area
    union = first.area + second.area - common
    return common / union if union > 0 else 0.0


def ious(boxes: Floats, target: Box) -> Floats:
    """Return the IoU of many boxes with one.

    Args:
        boxes: float64, shape (n, 4), rows [x, y, w, h] in level-0 pixels.
        target: The box to compare with.

    Returns: float64, shape (n,).
    """
    x, y, width, height = boxes.T
    across = np.clip(np.minimum(x + width, target.right) - np.maximum(x, target.x), 0, None)
    down = np.clip(np.minimum(y + height, target.bottom) - np.maximum(y, target.y), 0, None)
    common = across * down
    union = width * height + target.area - common
    result: Floats = np.divide(common, union, out=np.zeros_like(common), where=union > 0)
    return result


def union_area(boxes: Iterable[Box]) -> float:
    """Return the area in square level-0 pixels that at least one of the boxes covers."""
    found = [box for box in boxes if not box.is_empty]
    edges = sorted({edge for box in found for edge in (box.x, box.right)})
    total = 0.0
    for left, right in itertools.pairwise(edges):
        spans = sorted((box.y, box.bottom) for box in found if box.x <= left and box.right >= right)
        total += (right - left) * _covered_length(spans)
    return total


def _covered_length(spans: list[tuple[float, float]]) -> float:
    """Return the length covered by sorted spans."""
    total, reached = 0.0, -math.inf
    for start, end in spans:
        total += max(0.0, end - max(start, reached))
        reached = max(reached, end)
    return total
