"""A pen mark on the cover glass of a phantom slide, as pathologists draw around what they want to find again."""

from dataclasses import dataclass

import numpy as np
from PIL import Image, ImageDraw

from pathnav.cohort.phantom_layout import CELL, Layout, Tissue
from pathnav.cohort.phantom_noise import Plane, blurred

COLOURS = ((38, 62, 160), (24, 118, 72), (44, 42, 52))  # RGB of blue, green and black markers
_DENSEST = 225  # of 255: marker ink lets a little light through
_DOTS = 900  # close enough to make a line


@dataclass(frozen=True)
class Ink:
    """A pen mark.

    Args:
        cover: uint8 raster of `CELL` level-0 pixels, 255 where the ink lets nothing through.
        colour: RGB of the ink at full cover.
    """

    cover: Plane
    colour: tuple[int, int, int]


def draw_ink(rng: np.random.Generator, layout: Layout) -> Ink:
    """Return a hand-drawn open ring around benign tissue: a mark that gives the tumour away would be too kind."""
    benign = [region.shape for region in layout.regions if not region.tissue.is_tumour]
    glands = [region.shape for region in layout.regions if region.tissue is Tissue.GLANDS]
    ringed = (glands or benign or [layout.outline])[0]
    x, y = ringed.centroid.coords[0]
    radius = float(np.sqrt(ringed.area / np.pi)) * 1.45
    angles = np.linspace(0, rng.uniform(5.6, 6.6), _DOTS) + rng.uniform(0, 2 * np.pi)
    wobble = 1 + 0.05 * np.sin(2 * angles + rng.uniform(0, 6)) + np.linspace(0, rng.uniform(-0.1, 0.12), _DOTS)
    pressure = _DENSEST - 14 * (1 + np.sin(7 * angles + rng.uniform(0, 6)))
    points = np.column_stack([x + radius * wobble * np.cos(angles), y + radius * wobble * np.sin(angles)])
    width = max(5, round(layout.side * 0.011 / CELL))
    image = Image.new("L", (layout.cells, layout.cells), 0)
    draw = ImageDraw.Draw(image)
    places = np.clip(points / CELL, width, layout.cells - width)
    for place, ink in zip(places, pressure.tolist(), strict=True):
        draw.ellipse([*(place - width / 2), *(place + width / 2)], fill=round(ink))
    colour = COLOURS[int(rng.integers(len(COLOURS)))]
    return Ink(blurred(np.array(image), 0.8), colour)
