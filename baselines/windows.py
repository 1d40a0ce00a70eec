"""Windows of the target's size over a tissue mask: where each lies, and which holds most tissue.

One window is considered per mask cell: the one centred on the cell's centre. The mask covers the search region, so
what of a window sticks out of it counts as bare.
"""

import numpy as np
from numpy.typing import NDArray

from pathnav.geometry import Box
from pathnav.slide import TissueMask

TIE_TOLERANCE = 1e-9
"""Tissue shares closer than this are equal: sums over a million cells differ by up to 1e-10 with rounding."""


def window_boxes(mask: TissueMask, width: float, height: float) -> NDArray[np.float64]:
    """Return the windows around all mask cells, row by row.

    Args:
        mask: Tissue of the search region.
        width: Extent of the windows along x, level-0 px.
        height: Extent along y, level-0 px.

    Returns: float64, shape (rows * columns, 4), rows [x, y, w, h] in level-0 px.
    """
    rows, columns = mask.array.shape
    boxes = np.empty((rows, columns, 4))
    boxes[..., 0] = mask.region.x + (np.arange(columns) + 0.5) * mask.cell_px[0] - width / 2
    boxes[..., 1] = mask.region.y + (np.arange(rows)[:, None] + 0.5) * mask.cell_px[1] - height / 2
    boxes[..., 2:] = width, height
    return boxes.reshape(-1, 4)


def densest_window(mask: TissueMask, width: float, height: float, rng: np.random.Generator) -> Box:
    """Return the window with most tissue; one of the equals, drawn with `rng`, where several have most."""
    boxes = window_boxes(mask, width, height)
    shares = mask.shares_of(boxes)
    equals = np.flatnonzero(shares >= shares.max() - TIE_TOLERANCE)
    return Box.from_list(boxes[rng.choice(equals)].tolist())


def weighted_windows(mask: TissueMask, width: float, height: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the windows that hold tissue and their shares of it; all windows, alike, where none holds any.

    Returns: float64 boxes of shape (n, 4), rows [x, y, w, h] in level-0 px, and float64 weights of shape (n,), sum 1.
    """
    boxes = window_boxes(mask, width, height)
    shares = mask.shares_of(boxes)
    held = shares > TIE_TOLERANCE
    if not held.any():
        return boxes, np.full(len(boxes), 1 / len(boxes))
    return boxes[held], shares[held] / shares[held].sum()
