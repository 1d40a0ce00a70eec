"""Windows of the target's size inside an image, and what each is worth."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pathnav.geometry import Box
from pathnav.model.stub_appetite import Appetite, taste_planes, worth
from pathnav.model.stub_conversation import Look
from pathnav.model.stub_vision import Grid

Floats = NDArray[np.float64]
Extent = tuple[float, float]

STEPS = 48  # windows tried along each side of a look: 1/24 of the target's side apart in a wide one
OVERVIEW_STEPS = 128  # the overview shows the most places, and has no more cells
APART = 0.6  # in a small region hardly two windows fit side by side; just outside a close look around the other


@dataclass(frozen=True, slots=True)
class Place:
    """A window of the target's size and its worth."""

    box: Box
    worth: float


@dataclass(frozen=True, slots=True)
class Windows:
    """Windows of one extent.

    Args:
        columns: Their left edges, ascending, level-0 pixels.
        rows: Their top edges, ascending.
        worth: float64, shape (rows, columns).
        extent: Width and height of each.
    """

    columns: Floats
    rows: Floats
    worth: Floats
    extent: Extent

    def best(self) -> Place:
        """Return the window of the highest worth; of equals the topmost, then the leftmost."""
        return self._place(int(self.worth.argmax()))

    def distinct(self, limit: int) -> Iterator[Place]:
        """Yield up to `limit` windows by falling worth, each `APART` of its extent away from all before it."""
        left = self.worth.copy()
        for _ in range(limit):
            place = self._place(int(left.argmax()))
            if left.max() == -math.inf:
                return
            yield place
            near_x = np.abs(self.columns - place.box.x) < APART * self.extent[0]
            near_y = np.abs(self.rows - place.box.y) < APART * self.extent[1]
            left[np.ix_(near_y, near_x)] = -math.inf

    def _place(self, index: int) -> Place:
        row, column = divmod(index, len(self.columns))
        box = Box(round(float(self.columns[column])), round(float(self.rows[row])), *self.extent)
        return Place(box, float(self.worth[row, column]))


def windows_in(look: Look, region: Box, extent: Extent, taste: Appetite, steps: int = STEPS) -> Windows | None:
    """Return the windows that lie inside a look and the region; None where there is none or the image is gone."""
    inside = look.box.intersection(region)
    slack = 0.01 * max(look.box.width, look.box.height)  # looks are rounded to whole pixels
    if look.sight is None or inside.width + slack < extent[0] or inside.height + slack < extent[1]:
        return None
    columns = np.unique(np.linspace(inside.x, max(inside.x, inside.right - extent[0]), steps))
    rows = np.unique(np.linspace(inside.y, max(inside.y, inside.bottom - extent[1]), steps))
    sight = look.sight
    seen = _sums(sight.seen, look.box, columns, rows, extent)
    planes = taste_planes(taste, sight.haematoxylin, sight.tissue)
    sums = [_sums(plane, look.box, columns, rows, extent) for plane in planes]
    return Windows(columns, rows, worth(taste, seen, *sums).round(6), extent)


def blind_windows(region: Box, extent: Extent) -> Windows:
    """Return windows over a region nobody has seen, worth more the nearer they are to its centre."""
    columns = np.linspace(region.x, region.right - extent[0], min(24, math.ceil(2 * region.width / extent[0])))
    rows = np.linspace(region.y, region.bottom - extent[1], min(24, math.ceil(2 * region.height / extent[1])))
    centre = Box.centred(region.centre, *extent)
    return Windows(columns, rows, -np.hypot(*np.meshgrid(columns - centre.x, rows - centre.y)), extent)


def _sums(plane: Grid, shown: Box, columns: Floats, rows: Floats, extent: Extent) -> Floats:
    """Return the sums over all windows, shape (rows, columns), from an integral image; at least one cell each."""
    integral = np.zeros((plane.shape[0] + 1, plane.shape[1] + 1))
    integral[1:, 1:] = plane.cumsum(axis=0, dtype=np.float64).cumsum(axis=1)
    left, right = _cells(columns - shown.x, extent[0], shown.width, plane.shape[1])
    top, bottom = _cells(rows - shown.y, extent[1], shown.height, plane.shape[0])
    sums: Floats = (
        integral[np.ix_(bottom, right)]
        - integral[np.ix_(top, right)]
        - integral[np.ix_(bottom, left)]
        + integral[np.ix_(top, left)]
    )
    return sums


def _cells(starts: Floats, length: float, shown: float, cells: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the first cell and the cell after the last of spans on one axis."""
    first = np.clip(np.rint(starts * cells / shown), 0, cells - 1).astype(np.intp)
    last = np.clip(np.rint((starts + length) * cells / shown), 1, cells).astype(np.intp)
    return first, np.maximum(last, first + 1)
