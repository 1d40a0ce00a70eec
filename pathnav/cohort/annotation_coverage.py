"""The share of each tile of a grid that polygons cover, in one pass over their edges.

Green's theorem, tile by tile, as rasterisers of fonts use it: an edge that goes down by dy inside a tile adds dy times
its mean distance from the tile's right side, and dy times the full width to every tile farther right in that row; the
edges on the polygon's other side, which go up, take away what lies beyond them. Exact but for rounding, and linear in
the edges and the tiles they cross.
"""

import numpy as np
import shapely
from numpy.typing import NDArray

from pathnav.geometry import Floats


def covered_shares(region: shapely.Geometry, column_edges: Floats, row_edges: Floats) -> Floats:
    """Return which share of each tile a region covers.

    Args:
        region: Valid polygons in level-0 pixels.
        column_edges: float64, shape (columns + 1,), increasing x.
        row_edges: float64, shape (rows + 1,), increasing y.

    Returns: float64 in [0, 1], shape (rows, columns).
    """
    start, end = _edges_near(region, column_edges, row_edges)
    for axis, lines in enumerate((column_edges, row_edges)):
        start, end = _cut(start, end, axis, lines)
    middle, down = (start + end) / 2, (end - start)[:, 1]
    column = np.searchsorted(column_edges, middle[:, 0], side="right") - 1
    row = np.searchsorted(row_edges, middle[:, 1], side="right") - 1
    columns, rows = len(column_edges) - 1, len(row_edges) - 1
    meets = (row >= 0) & (row < rows) & (column < columns)
    row, down, x = row[meets], down[meets], np.maximum(middle[meets, 0], column_edges[0])
    column = np.maximum(column[meets], 0)  # what lies left of the grid acts like its left side
    tile = row * columns + column
    partial = _summed(tile, down * (column_edges[column + 1] - x), (rows, columns))
    gone_down = _summed(tile, down, (rows, columns))
    width, height = np.diff(column_edges), np.diff(row_edges)
    area = partial + (np.cumsum(gone_down, axis=1) - gone_down) * width
    share = np.clip(area / np.outer(height, width), 0, 1)
    is_crossed = _summed(tile, np.ones(len(tile)), (rows, columns)) > 0
    shares: Floats = np.where(is_crossed, share, np.rint(share))  # a tile that no edge crosses is wholly in or out
    return shares


def _edges_near(region: shapely.Geometry, column_edges: Floats, row_edges: Floats) -> tuple[Floats, Floats]:
    """Return where edges start and end, each shape (n, 2), region on their right; only those that can matter."""
    polygons = shapely.orient_polygons(shapely.get_parts(region), exterior_cw=True)
    points, ring = shapely.get_coordinates(shapely.get_rings(polygons), return_index=True)
    joined = ring[1:] == ring[:-1]
    start, end = points[:-1][joined], points[1:][joined]
    low, high = np.minimum(start, end), np.maximum(start, end)
    near = (low[:, 0] < column_edges[-1]) & (low[:, 1] < row_edges[-1]) & (high[:, 1] > row_edges[0])
    return start[near], end[near]


def _cut(start: Floats, end: Floats, axis: int, lines: Floats) -> tuple[Floats, Floats]:
    """Cut edges wherever they cross one of the lines x = ... (axis 0) or y = ... (axis 1); the order is kept."""
    low, high = np.minimum(start, end)[:, axis], np.maximum(start, end)[:, axis]
    first = np.searchsorted(lines, low, side="right")
    last = np.searchsorted(lines, high, side="left")
    crossings = np.maximum(last - first, 0)
    edge = np.repeat(np.arange(len(start)), crossings)
    nth = np.arange(len(edge)) - np.repeat(np.cumsum(crossings) - crossings, crossings)
    rising = start[edge, axis] < end[edge, axis]
    line = lines[np.where(rising, first[edge] + nth, last[edge] - 1 - nth)]
    part = (line - start[edge, axis]) / (end - start)[edge, axis]
    crossing = start[edge] + (end - start)[edge] * part[:, None]
    crossing[:, axis] = line  # not off by rounding, so that all parts of a row add up to its height
    starts = np.insert(start, edge + 1, crossing, axis=0)
    ends = np.insert(end, edge, crossing, axis=0)
    return starts, ends


def _summed(tile: NDArray[np.intp], amount: Floats, shape: tuple[int, int]) -> Floats:
    """Return the sum of the amounts of each tile."""
    sums: Floats = np.bincount(tile, weights=amount, minlength=shape[0] * shape[1]).astype(np.float64).reshape(shape)
    return sums
