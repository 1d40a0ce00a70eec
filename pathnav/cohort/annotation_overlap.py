"""How much of each tile is tumour, exactly: of the tiles of a grid in one pass, of any boxes by a spatial index."""

import numpy as np
import shapely

from pathnav.cohort.annotation import Annotation
from pathnav.cohort.annotation_coverage import covered_shares
from pathnav.geometry import Floats, Grid

_PIECE_POINTS = 256
"""With 64 to 512 points to a piece 1,000 polygons with 100,000 vertices took the same 3 to 4 s; uncut ones 28 s."""

_DECIMALS = 12
"""Sums are off by up to 1e-13; a tile of which exactly 5 % is tumour must not become one of more than that."""


def overlap_fractions(annotation: Annotation, tiles: Grid | Floats) -> Floats:
    """Return the share of each tile's area that is tumour.

    1,000 polygons with 100,000 vertices in all against 153,000 tiles: 0.03 s as a grid, 4 s as boxes.

    Args:
        annotation: The tumour.
        tiles: A grid, whose cut tiles count with their part inside; or boxes: float64, shape (n, 4), rows [x, y, w, h]
            in level-0 pixels.

    Returns: float64 in [0, 1], shape (n,); of a grid in reading order.

    Raises:
        ValueError: If a box has no area.
    """
    if isinstance(tiles, Grid):
        return covered_shares(annotation.region, *tiles.edges()).ravel().round(_DECIMALS)
    if tiles.ndim != 2 or tiles.shape[1] != 4 or not (tiles[:, 2:] > 0).all():
        raise ValueError(f"boxes must be rows [x, y, w, h] with positive extents, got shape {tiles.shape}")
    return _shares_of_boxes(annotation.region, tiles).round(_DECIMALS)


def _shares_of_boxes(region: shapely.Geometry, boxes: Floats) -> Floats:
    """Return the share of each box, from the pieces of the region that lie near it."""
    x, y, width, height = boxes.T
    shapes = shapely.box(x, y, x + width, y + height)
    tree = shapely.STRtree(shapes)
    areas: Floats = shapely.area(shapes)
    covered = np.zeros(len(boxes))
    for piece in pieces(region, _PIECE_POINTS):
        near = tree.query(piece)
        shapely.prepare(piece)
        inside = shapely.contains_properly(piece, shapes[near])  # the prepared test costs a tenth of an intersection
        covered[near[inside]] += areas[near[inside]]
        crossed = near[~inside]
        with np.errstate(all="ignore"):  # shapely 2.1.0 lets the floating-point flags of GEOS through as warnings
            covered[crossed] += shapely.area(shapely.intersection(piece, shapes[crossed]))
    return np.clip(covered / areas, 0, 1)


def pieces(region: shapely.Geometry, most_points: int) -> list[shapely.Polygon]:
    """Return polygons that make up a region without overlap, halved until none has more than so many points.

    One outline with 100,000 points would otherwise be walked along for each of the tiles that it crosses.
    """
    todo, done = _polygons(region), []
    while todo:
        polygon = todo.pop()
        points = shapely.get_num_coordinates(polygon)
        halves = _halves(polygon) if points > most_points else []
        if halves and max(shapely.get_num_coordinates(halves)) < points:
            todo += halves
        else:
            done.append(polygon)
    return done


def _halves(polygon: shapely.Polygon) -> list[shapely.Polygon]:
    """Return the parts of a polygon on both sides of a line through the middle of its points, across its long axis."""
    left, top, right, bottom = polygon.bounds
    axis = 0 if right - left >= bottom - top else 1
    cut = float(np.median(shapely.get_coordinates(polygon)[:, axis]))
    if axis == 0:
        sides = [shapely.box(left, top, cut, bottom), shapely.box(cut, top, right, bottom)]
    else:
        sides = [shapely.box(left, top, right, cut), shapely.box(left, cut, right, bottom)]
    return [part for side in sides for part in _polygons(shapely.intersection(polygon, side))]


def _polygons(region: shapely.Geometry) -> list[shapely.Polygon]:
    """Return the polygons of a region; lines and points, where two shapes only touch, are left out."""
    parts = shapely.get_parts(shapely.get_parts(region))  # a collection may hold multi-polygons
    return [part for part in parts if part.geom_type == "Polygon" and not part.is_empty]
