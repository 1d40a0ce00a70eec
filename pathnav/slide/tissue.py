"""Where the tissue is: a mask of a brightfield slide at overview scale, deterministic and without a model.

Colours are three planes (red, green, blue) relative to the glass, which is 1.0 in each, so that a tinted lamp or
coverslip does not count as stain.
"""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from pathnav.geometry import Box, Floats

Mask = NDArray[np.bool_]
Labels = NDArray[np.int64]
Planes = NDArray[np.float32]

# Fluorescence: more dark than bright cells, and at least a quarter dark. Dense haematoxylin stays above 0.2 of full
# scale in its brightest channel; black frames on a brightfield slide leave more bright cells than dark ones.
DARK, BRIGHT, DARK_SHARE = 0.2 * 255, 0.7 * 255, 0.25

# Glass, of 255: its darkest channel, how far green may lie below the highest channel (stain absorbs green) and how far
# the lowest (a yellow lamp).
GLASS_MIN, GLASS_STAIN, GLASS_SPREAD = 175, 20, 40
GLASS_SHARE = 0.01  # of the scanned area; with less glass in view, glass is taken to be white

# Spread of the channels beyond which a cell is stained. Otsu's threshold lies at 0.11-0.19 on slides with tissue, where
# it loses pale stroma, and near 0.01 on blank glass, half of which it calls tissue; empty fat has 0.04, glass to 0.03.
SPREAD_RANGE = (0.035, 0.07)

# Blue counterstain beside brown DAB is dark but hardly coloured: a spread of 0.17 of its darkness; black ink has 0.05.
DULL_DARKNESS, DULL_COLOUR = 0.2, 0.1

# Ink in optical density (OD). Haematoxylin and eosin absorb green most, blue ink red, green ink red and blue. The
# bluest counterstain of a DAB slide has a ratio of 1.15 at the 99th percentile, markers have 1.3 to 2.
INK_OD, INK_RATIO = 0.35, 1.25  # the core of a mark: OD of red, and its ratio to the OD of green
FRINGE_OD, FRINGE_RATIO = 0.06, 1.15  # its faded edge, where it touches a core

# Red ink has the colour of blood, so only a large patch with glass around most of it is ink: haemorrhage of 0.2 % of a
# real ovarian slide had 41 % glass around it, simulated strokes on glass 65-99 %.
RED_OD, RED_BLUE_RATIO, RED_RED_RATIO = 0.35, 0.65, 0.30  # OD of green; of blue and of red relative to it
RED_AREA, RED_GLASS = 0.002, 0.5  # share of the overview; of the ring around the patch
RED_MARGIN = 5  # cells of faded edge; also the width of the ring

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
    if _is_dark_field(rgb, inside):
        return TissueMask(region, array, TissueStatus.NOT_BRIGHTFIELD)
    colours = _relative_to_glass(rgb, inside)
    candidates = _stained(colours, inside)
    array = _without_specks(candidates & ~_inked(colours, candidates))
    return TissueMask(region, array, TissueStatus.TISSUE if array.any() else TissueStatus.NO_TISSUE)


def _without_specks(array: Mask) -> Mask:
    """Return the mask without patches of dust and without pinholes in tissue."""
    least = max(round(SPECK_SHARE * array.size), min(SPECK_CELLS, array.size // 500))
    return ~_of_at_least(~_of_at_least(array, least), least)


def _is_dark_field(rgb: NDArray[np.uint8], scanned: Mask) -> bool:
    """Return whether the background of a uint8 RGB image, shape (rows, columns, 3), is dark, as in fluorescence."""
    low, high = _extremes(np.moveaxis(rgb, -1, 0))
    cells = int(np.count_nonzero(scanned))
    dark = np.count_nonzero(scanned & (high < DARK)) / cells
    bright = np.count_nonzero(scanned & (low > BRIGHT)) / cells
    return bool(dark > DARK_SHARE and dark > bright)


def _relative_to_glass(rgb: NDArray[np.uint8], scanned: Mask) -> Planes:
    """Return smoothed colours with the glass at 1.0: float32, shape (3, rows, columns), in [1/256, 1].

    Smoothing over about 3 cells takes the noise of JPEG out of the spread of the channels.
    """
    from PIL import Image, ImageFilter

    blurred = Image.fromarray(np.ascontiguousarray(rgb)).filter(ImageFilter.GaussianBlur(1))
    planes = np.ascontiguousarray(np.moveaxis(np.asarray(blurred), -1, 0))
    relative = planes / _glass_colour(planes, scanned)[:, None, None]
    return np.clip(relative, 1 / 256, 1)


def _stained(colours: Planes, scanned: Mask) -> Mask:
    """Return the cells coloured beyond glass, grey shadows and black ink: bool, shape (rows, columns)."""
    low, high = _extremes(colours)
    spread = high - low
    inside = spread[scanned]
    coloured = spread > np.clip(_otsu(inside), *SPREAD_RANGE)
    dull = (low < 1 - DULL_DARKNESS) & (spread > DULL_COLOUR * (1 - low))
    return np.asarray(scanned & (coloured | dull))


def _inked(colours: Planes, candidates: Mask) -> Mask:
    """Return the candidate cells that are marker ink: blue and green ink by colour, red ink where it lies on glass.

    Black ink is no candidate, since it is not coloured. Violet ink, and red ink on tissue, cannot be told from stain.
    """
    red, green, blue = -np.log10(colours)
    core = candidates & (red > INK_OD) & (red > INK_RATIO * green)
    fringe = candidates & (red > FRINGE_OD) & (red > FRINGE_RATIO * green)
    ink = _holding(core | fringe, core)
    bloody = candidates & (green > RED_OD) & (blue > RED_BLUE_RATIO * green) & (red < RED_RED_RATIO * green)
    least = round(RED_AREA * candidates.size)
    red_ink = _mostly_beside(bloody & ~ink, ~candidates, least, RED_MARGIN, RED_GLASS)
    return np.asarray(ink | (candidates & red_ink))


def _glass_colour(planes: NDArray[np.uint8], scanned: Mask) -> Planes:
    """Return the colour of the glass: float32, shape (3,), of 255; white where there is hardly any in view.

    It is the median of the brighter half of what may be glass: the darker half may be pale tissue.
    """
    low, high = _extremes(planes)
    may_be = scanned & (low >= GLASS_MIN) & (high - planes[1] <= GLASS_STAIN) & (high - low <= GLASS_SPREAD)
    if np.count_nonzero(may_be) <= GLASS_SHARE * np.count_nonzero(scanned):
        return np.full(3, 255, dtype=np.float32)
    found = planes[:, may_be]
    brightness = found.sum(axis=0, dtype=np.int64)
    return np.asarray(np.median(found[:, brightness >= np.median(brightness)], axis=1), dtype=np.float32)


def _otsu(values: Planes) -> float:
    """Return the threshold in [0, 1] that parts the values into two groups of least variance (Otsu 1979)."""
    counts, edges = np.histogram(values, bins=256, range=(0.0, 1.0))
    centres = (edges[1:] + edges[:-1]) / 2
    below, mass = counts.cumsum(), (counts * centres).cumsum()
    above, mass_above = below[-1] - below, mass[-1] - mass
    parted = (below > 0) & (above > 0)
    if not parted.any():
        return 0.0
    gap = mass[parted] / below[parted] - mass_above[parted] / above[parted]
    between = below[parted] * above[parted] * gap**2
    return float(centres[parted][np.argmax(between)])


def _extremes(planes: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the lowest and the highest of three planes; five times as fast as `min` along an axis of three."""
    red, green, blue = planes
    return np.minimum(np.minimum(red, green), blue), np.maximum(np.maximum(red, green), blue)


def _labelled(mask: Mask, diagonal: bool = False) -> Labels:
    """Return the number of the connected area that each cell belongs to, 0 outside: int64, the mask's shape."""
    from skimage.measure import label

    return cast(Labels, label(mask, connectivity=2 if diagonal else 1))  # type: ignore[no-untyped-call]


def _of_at_least(mask: Mask, cells: int) -> Mask:
    """Return the connected areas of at least so many cells."""
    labels = _labelled(mask)
    chosen = np.bincount(labels.ravel()) >= cells
    chosen[0] = False
    return np.asarray(chosen[labels])


def _holding(mask: Mask, seeds: Mask) -> Mask:
    """Return the connected areas that hold one of the seeds, which lie inside the mask."""
    labels = _labelled(mask, diagonal=True)
    chosen = np.zeros(int(labels.max()) + 1, dtype=np.bool_)
    chosen[labels[seeds]] = True
    return np.asarray(chosen[labels])


def _mostly_beside(mask: Mask, beside: Mask, cells: int, margin: int, share: float) -> Mask:
    """Return the large connected areas, with a margin, that have more than a share of the ring around them beside.

    Args:
        mask: The areas.
        beside: What should lie around them.
        cells: How many cells make an area large.
        margin: By how many cells an area is widened, and the width of the ring around that.
        share: Of the ring.
    """
    if np.count_nonzero(mask) < cells:
        return np.zeros_like(mask)
    labels = _labelled(mask, diagonal=True)
    large = np.bincount(labels.ravel()) >= cells
    large[0] = False
    if not large.any():  # as on most slides: widening takes 0.3 s
        return np.zeros_like(mask)
    labels *= large[labels]
    near = _widened(labels, margin)
    ring = np.where(near > 0, 0, _widened(labels, 2 * margin))
    around = np.bincount(ring.ravel(), minlength=large.size)
    found = np.bincount(ring[beside], minlength=large.size)
    return np.asarray((large & (found > share * around))[near])


def _widened(labels: Labels, cells: int) -> Labels:
    from skimage.segmentation import expand_labels

    return cast(Labels, expand_labels(labels, cells))  # type: ignore[no-untyped-call]
