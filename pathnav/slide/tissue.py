"""Where the tissue is: a mask of a brightfield slide at overview scale, deterministic and without a model."""

from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from pathnav.geometry import Box, Floats
from pathnav.slide.areas import Mask, of_at_least
from pathnav.slide.stain import inked, is_dark_field, relative_to_glass, stained

# Smaller patches are dust: 42 cells of a 1,024 px overview, 0.02 mm2 of a slide of 46,000 px at 0.5 um. Smoothing makes
# 13 cells of a speck of 2 x 2; masks of under 100 x 100 cells keep smaller patches.
SPECK_SHARE, SPECK_CELLS = 4e-5, 20


class TissueStatus(StrEnum):
    """What was found."""

    TISSUE = "tissue"
    NO_TISSUE = "no-tissue"
    NOT_BRIGHTFIELD = "not-brightfield"


@dataclass(frozen=True, slots=True, eq=False)
class TissueMask:
    """Which cells of a grid over a region hold tissue.

    Args:
        region: The region in level-0 pixels that the grid covers exactly.
        array: bool, shape (rows, columns); empty of tissue unless the status is `tissue`.
        status: What was found.
    """

    region: Box
    array: Mask
    status: TissueStatus
    _integral: Floats = field(init=False, repr=False)

    def __post_init__(self) -> None:
        rows, columns = self.array.shape
        integral = np.zeros((rows + 1, columns + 1))
        integral[1:, 1:] = self.array.cumsum(0, dtype=np.int64).cumsum(1)
        object.__setattr__(self, "_integral", integral)

    @property
    def cell_px(self) -> tuple[float, float]:
        """Level-0 pixels per cell (x, y)."""
        rows, columns = self.array.shape
        return self.region.width / columns, self.region.height / rows

    @property
    def share(self) -> float:
        """The share of the region that is tissue."""
        return float(self._integral[-1, -1] / self.array.size)

    def share_of(self, box: Box) -> float:
        """Return the share of a level-0 box that is tissue; its part outside the region counts as no tissue."""
        return float(self.shares_of(np.array([[box.x, box.y, box.width, box.height]], dtype=np.float64))[0])

    def shares_of(self, boxes: Floats) -> Floats:
        """Return the tissue share of many boxes: exact, a cell cut by an edge counts by its part inside.

        Args:
            boxes: float64, shape (n, 4), rows [x, y, w, h] in level-0 pixels.

        Returns: float64, shape (n,); 0 for a box of no area.
        """
        x, y, width, height = boxes.T
        cell_width, cell_height = self.cell_px
        left, right = ((edge - self.region.x) / cell_width for edge in (x, x + width))
        top, bottom = ((edge - self.region.y) / cell_height for edge in (y, y + height))
        cells = (
            self._up_to(right, bottom) - self._up_to(left, bottom) - self._up_to(right, top) + self._up_to(left, top)
        )
        area = width * height
        shares: Floats = np.divide(cells * cell_width * cell_height, area, out=np.zeros_like(area), where=area > 0)
        return np.clip(shares, 0.0, 1.0)  # against rounding

    def _up_to(self, column: Floats, row: Floats) -> Floats:
        """Return the tissue, in cells, above and left of points in cell coordinates; bilinear between grid corners."""
        rows, columns = self.array.shape
        column, row = np.clip(column, 0, columns), np.clip(row, 0, rows)
        left, top = np.minimum(column.astype(int), columns - 1), np.minimum(row.astype(int), rows - 1)
        across, down = column - left, row - top
        above = self._integral[top, left] * (1 - across) + self._integral[top, left + 1] * across
        below = self._integral[top + 1, left] * (1 - across) + self._integral[top + 1, left + 1] * across
        found: Floats = above * (1 - down) + below * down
        return found


def find_tissue(rgb: NDArray[np.uint8], region: Box, scanned: Mask | None = None) -> TissueMask:
    """Return the tissue of an overview image.

    Args:
        rgb: uint8, shape (rows, columns, 3): the region, white outside the scanned area.
        region: The region in level-0 pixels.
        scanned: bool, shape (rows, columns): where the slide was scanned; everywhere if None.

    Returns: The mask; its status is `not-brightfield` on a dark background, `no-tissue` where nothing is left.
    """
    inside = np.ones(rgb.shape[:2], dtype=np.bool_) if scanned is None else scanned
    array = np.zeros_like(inside)
    if not inside.any():
        return TissueMask(region, array, TissueStatus.NO_TISSUE)
    if is_dark_field(rgb, inside):
        return TissueMask(region, array, TissueStatus.NOT_BRIGHTFIELD)
    colours = relative_to_glass(rgb, inside)
    candidates = stained(colours, inside)
    array = _without_specks(candidates & ~inked(colours, candidates))
    return TissueMask(region, array, TissueStatus.TISSUE if array.any() else TissueStatus.NO_TISSUE)


def _without_specks(array: Mask) -> Mask:
    """Return the mask without patches of dust and without pinholes in tissue."""
    least = max(round(SPECK_SHARE * array.size), min(SPECK_CELLS, array.size // 500))
    return ~of_at_least(~of_at_least(array, least), least)
