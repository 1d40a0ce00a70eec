"""All that is drawn on a phantom slide, ready to be rendered window by window."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pathnav.cohort.phantom_cells import FAT_REACH_PX, CellSower, Placed, place_decals, place_fat_cells
from pathnav.cohort.phantom_ground import Ground, lay_ground
from pathnav.cohort.phantom_ink import Ink, draw_ink
from pathnav.cohort.phantom_layout import Layout, Tissue, plan_layout
from pathnav.cohort.phantom_palette import Palette, Streams, mix_palette

_GLAND_TRIES = 9.0  # per area of a mean gland: packs a region densely
_VESSEL_TRIES = 0.05  # scattered


@dataclass(frozen=True)
class Scene:
    """What the renderer needs; places are level-0 pixels.

    Args:
        layout: The regions.
        palette: What everything is drawn with.
        ground: What lies below the cells.
        glands: Places and stamps of `palette.glands`.
        vessels: Places and stamps of `palette.vessels`.
        fat_cells: Rows (x, y, radius bonus), shape (n, 3).
        nuclei: All nuclei but those that glands and vessels bring.
        ink: A pen mark, or None.
    """

    layout: Layout
    palette: Palette
    ground: Ground
    glands: Placed
    vessels: Placed
    fat_cells: NDArray[np.float32]
    nuclei: Placed
    ink: Ink | None


def compose(rng: Streams, side: int, *, pen: bool = False) -> Scene:
    """Return the scene of a phantom slide; the same streams and side give the same scene, with or without a pen."""
    layout = plan_layout(rng("layout"), side)
    palette = mix_palette(rng)
    ground = lay_ground(rng, layout)
    glands = place_decals(rng("gland places"), layout, palette.glands, Tissue.GLANDS, _GLAND_TRIES)
    vessels = place_decals(rng("vessel places"), layout, palette.vessels, Tissue.STROMA, _VESSEL_TRIES)
    fat_cells = place_fat_cells(rng("fat cells"), layout)
    sower = CellSower(layout, ground.nests, palette.fibres, palette.banks)
    for placed, decals in ((glands, palette.glands), (vessels, palette.vessels)):
        sower.block(placed.xy, np.array([1.08 * decals[stamp].radius_px for stamp in placed.stamp]))
    sower.block(fat_cells[:, :2], FAT_REACH_PX + fat_cells[:, 2] + 8)
    nuclei = sower.sow(rng("cells"), fat_cells)
    ink = draw_ink(rng("pen"), layout) if pen else None
    return Scene(layout, palette, ground, glands, vessels, fat_cells, nuclei, ink)
