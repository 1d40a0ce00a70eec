"""The ground of a phantom slide, below all cells: stain, fibres and the edge of the section as coarse maps."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pathnav.cohort.phantom_layout import CELL, Layout, Tissue
from pathnav.cohort.phantom_noise import Plane, Reals, blurred, smooth_noise, to_plane
from pathnav.cohort.phantom_palette import Streams

# Eosin, strength of the fibres and haematoxylin of each tissue, 0..255.
_OPEN = {
    Tissue.GLASS: (0, 0, 0),
    Tissue.STROMA: (106, 78, 6),
    Tissue.FAT: (88, 40, 5),
    Tissue.GLANDS: (86, 66, 9),
    Tissue.LYMPHOID: (46, 18, 24),
    Tissue.SHEETS: (92, 60, 12),
    Tissue.NESTS: (96, 66, 14),
    Tissue.PALE: (60, 56, 10),
}
# The same inside tumour nests: cytoplasm instead of collagen.
_NESTS = {Tissue.SHEETS: (92, 14, 46), Tissue.NESTS: (88, 14, 38), Tissue.PALE: (46, 16, 18)}
_SWING = (0.13, 0.0, 0.12)  # how much eosin, fibres and haematoxylin vary from place to place
# Where a noise of unit variance exceeds this, tumour is nests; else it is the stroma between them.
_NEST_CUT = {Tissue.SHEETS: -1.25, Tissue.NESTS: 0.05, Tissue.PALE: -0.6}
_NEST_WAVELENGTH_PX = 300
_CLEFT = 0.12  # what is left of the stain where tissue shrank away from a nest


@dataclass(frozen=True)
class Ground:
    """Coarse maps; a map's pixel covers `CELL` x `CELL` level-0 pixels.

    Args:
        nests: bool, tumour cells rather than the stroma between them.
        eosin: uint8 stain.
        fibre_strength: uint8, how visible collagen is.
        haematoxylin: uint8 stain.
        cover: uint8, 255 on the section and 0 on glass.
        eosin_gain: uint8, local strength of the stain, 128 for normal.
        haematoxylin_gain: uint8, likewise.
    """

    nests: NDArray[np.bool_]
    eosin: Plane
    fibre_strength: Plane
    haematoxylin: Plane
    cover: Plane
    eosin_gain: Plane
    haematoxylin_gain: Plane


def lay_ground(rng: Streams, layout: Layout) -> Ground:
    """Return the ground of a layout."""
    depth = _nest_depth(rng("nests"), layout)
    eosin, fibre_strength, haematoxylin = _stains(rng("ground"), layout, depth)
    return Ground(
        nests=depth > 0,
        eosin=eosin,
        fibre_strength=fibre_strength,
        haematoxylin=haematoxylin,
        cover=np.where(layout.raster == Tissue.GLASS, np.uint8(0), np.uint8(255)),
        eosin_gain=_drift(rng("eosin drift"), layout),
        haematoxylin_gain=_drift(rng("haematoxylin drift"), layout),
    )


def _nest_depth(rng: np.random.Generator, layout: Layout) -> Reals:
    """Return how far a place lies inside (above 0) or outside a tumour nest, in standard deviations of a noise."""
    cut = np.full(len(Tissue), np.inf, dtype=np.float32)
    for tissue, value in _NEST_CUT.items():
        cut[tissue] = value
    return smooth_noise(rng, layout.cells, _NEST_WAVELENGTH_PX / CELL) - cut[layout.raster]


def _stains(rng: np.random.Generator, layout: Layout, depth: Reals) -> tuple[Plane, Plane, Plane]:
    """Return eosin, fibre strength and haematoxylin."""
    outside = np.array([_OPEN[tissue] for tissue in Tissue], dtype=np.float32)
    inside = np.array([_NESTS.get(tissue, _OPEN[tissue]) for tissue in Tissue], dtype=np.float32)
    cloud = smooth_noise(rng, layout.cells, 700 / CELL)
    cleft = (depth <= 0) & (depth > -0.1) & (smooth_noise(rng, layout.cells, 500 / CELL) > 0.4)
    cleft &= layout.raster != Tissue.PALE
    planes: list[Plane] = []
    for column, swing in enumerate(_SWING):
        values = np.where(depth > 0, inside[layout.raster, column], outside[layout.raster, column])
        values *= np.where(cleft, np.float32(_CLEFT), 1 + swing * cloud)
        planes.append(blurred(to_plane(values), 0.9))
    return planes[0], planes[1], planes[2]


def _drift(rng: np.random.Generator, layout: Layout) -> Plane:
    """Return the stain's local strength, 128 for normal: it drifts over the slide by up to a quarter each way."""
    return to_plane(128 * (1 + 0.13 * np.clip(smooth_noise(rng, layout.cells, 0.47 * layout.cells), -2, 2)))
