"""Which cells of an overview are stained tissue, which are glass and which are ink: rules on colour alone.

Colours are three planes (red, green, blue) relative to the glass, which is 1.0 in each, so that a tinted lamp or
coverslip does not count as stain.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pathnav.slide.areas import Mask, holding, mostly_beside

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


def is_dark_field(rgb: NDArray[np.uint8], scanned: Mask) -> bool:
    """Return whether the background of a uint8 RGB image, shape (rows, columns, 3), is dark, as in fluorescence."""
    low, high = _extremes(np.moveaxis(rgb, -1, 0))
    cells = int(np.count_nonzero(scanned))
    dark = np.count_nonzero(scanned & (high < DARK)) / cells
    bright = np.count_nonzero(scanned & (low > BRIGHT)) / cells
    return bool(dark > DARK_SHARE and dark > bright)


def relative_to_glass(rgb: NDArray[np.uint8], scanned: Mask) -> Planes:
    """Return smoothed colours with the glass at 1.0: float32, shape (3, rows, columns), in [1/256, 1].

    Smoothing over about 3 cells takes the noise of JPEG out of the spread of the channels.
    """
    from PIL import Image, ImageFilter

    blurred = Image.fromarray(np.ascontiguousarray(rgb)).filter(ImageFilter.GaussianBlur(1))
    planes = np.ascontiguousarray(np.moveaxis(np.asarray(blurred), -1, 0))
    relative = planes / _glass_colour(planes, scanned)[:, None, None]
    return np.clip(relative, 1 / 256, 1)


def stained(colours: Planes, scanned: Mask) -> Mask:
    """Return the cells coloured beyond glass, grey shadows and black ink: bool, shape (rows, columns)."""
    low, high = _extremes(colours)
    spread = high - low
    inside = spread[scanned]
    coloured = spread > np.clip(_otsu(inside), *SPREAD_RANGE)
    dull = (low < 1 - DULL_DARKNESS) & (spread > DULL_COLOUR * (1 - low))
    return np.asarray(scanned & (coloured | dull))


def inked(colours: Planes, candidates: Mask) -> Mask:
    """Return the candidate cells that are marker ink: blue and green ink by colour, red ink where it lies on glass.

    Black ink is no candidate, since it is not coloured. Violet ink, and red ink on tissue, cannot be told from stain.
    """
    red, green, blue = -np.log10(colours)
    core = candidates & (red > INK_OD) & (red > INK_RATIO * green)
    fringe = candidates & (red > FRINGE_OD) & (red > FRINGE_RATIO * green)
    ink = holding(core | fringe, core)
    bloody = candidates & (green > RED_OD) & (blue > RED_BLUE_RATIO * green) & (red < RED_RED_RATIO * green)
    least = round(RED_AREA * candidates.size)
    red_ink = mostly_beside(bloody & ~ink, ~candidates, least, RED_MARGIN, RED_GLASS)
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
