"""Tumour annotations of other tools: which part of a slide's plane is tumour, and how much of each tile.

annotation = load_annotation("case.geojson", classes=["tumor"])
shares = overlap_fractions(annotation, grid)

The formats and the rules are told in `docs/annotations.md`.
"""

import difflib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import shapely
from numpy.typing import NDArray

from pathnav.cohort.annotation_formats import AnnotationFormat, Drawing, Role, read_drawings
from pathnav.errors import AnnotationError
from pathnav.geometry import Box, Floats, Grid
from pathnav.settings import shown

if TYPE_CHECKING:
    from pathnav.slide import Slide

ANNOTATION_FORMAT = "pathnav-annotation-1"
TOLERATED_SHARE = 0.001
"""Pens slip over the slide's edge by a few pixels; more than this of what is drawn outside is told."""

_MOST_NAMES = 20
_FEWEST_POINTS = 3
_PIECE_POINTS = 256
"""With 64 to 512 points to a piece 1,000 polygons with 100,000 vertices took the same 3 to 4 s; uncut ones 28 s."""
_DECIMALS = 12
"""Sums are off by up to 1e-13; a tile of which exactly 5 % is tumour must not become one of more than that."""


@dataclass(frozen=True, slots=True)
class ClassRegion:
    """What a file draws of one class."""

    name: str
    role: Role
    region: shapely.Geometry
    """Valid polygons in level-0 pixels: overlapping drawings count once, holes are cut out, exclusions not yet."""
    count: int
    """Drawings that have an area."""
    repaired: int
    """Polygons that were invalid."""
    dropped: int
    """Polygons and holes without an area."""

    @property
    def area_px2(self) -> float:
        """The area in square level-0 pixels."""
        return float(self.region.area)

    def as_json(self) -> dict[str, Any]:
        """Return the row that `pathnav annotations` prints."""
        return {name: getattr(self, name) for name in ("name", "count", "area_px2", "repaired", "dropped")}


@dataclass(frozen=True, slots=True)
class Annotation:
    """The tumour of a slide, as one file draws it."""

    path: str
    file_format: AnnotationFormat
    chosen: tuple[str, ...]
    """The classes that are tumour."""
    region: shapely.Geometry
    """The tumour: valid polygons in level-0 pixels, exclusions cut out; empty where the file says there is none."""
    classes: tuple[ClassRegion, ...]
    """Every class of the file but the exclusions."""
    exclusions: tuple[ClassRegion, ...]
    ignored: Mapping[str, int]
    """How many objects of each kind have no area, such as points."""

    @property
    def area_px2(self) -> float:
        """The area of the tumour in square level-0 pixels."""
        return float(self.region.area)

    @property
    def excluded(self) -> shapely.Geometry:
        """All that the file says is no tumour, in level-0 pixels."""
        return _union([one.region for one in self.exclusions])

    @property
    def repaired(self) -> int:
        """How many polygons of the whole file were repaired."""
        return sum(one.repaired for one in (*self.classes, *self.exclusions))

    @property
    def dropped(self) -> int:
        """How many polygons and holes of the whole file have no area."""
        return sum(one.dropped for one in (*self.classes, *self.exclusions))


def load_annotation(
    path: str | Path, *, classes: Sequence[str], offset: tuple[float, float] = (0.0, 0.0)
) -> Annotation:
    """Read the tumour of an annotation file.

    Args:
        path: A file of any format of `AnnotationFormat`; told apart by its content.
        classes: The classes that are tumour, spelled as in the file; may be left empty where the file has only one.
        offset: Added to all x and y, in level-0 pixels: (bounds.x, bounds.y) of the slide for an export that is
            relative to its scanned area.

    Raises:
        AnnotationError: If the file cannot be read, draws nothing, or lacks one of the classes.
    """
    found = read_drawings(path)
    regions, exclusions = _class_regions(found.drawings, offset)
    if not (regions or exclusions):
        raise AnnotationError(f"{path}: holds no kept tiles: it was written by a search that kept none")
    chosen = _chosen(path, classes, {one.name: one for one in regions})
    tumour = _minus(_union([one.region for one in chosen]), _union([one.region for one in exclusions]))
    names = tuple(one.name for one in chosen)
    return Annotation(str(path), found.file_format, names, tumour, regions, exclusions, found.ignored)


def describe_annotation(path: str | Path) -> dict[str, Any]:
    """Return what an annotation file holds, as plain JSON: areas in square level-0 pixels, extent as [x, y, w, h].

    Raises:
        AnnotationError: If the file cannot be read or draws nothing.
    """
    found = read_drawings(path)
    classes, exclusions = _class_regions(found.drawings)
    everything = (*classes, *exclusions)
    drawn = [one.region for one in everything if not one.region.is_empty]
    return {
        "format": ANNOTATION_FORMAT,
        "path": str(path),
        "file_format": str(found.file_format),
        "classes": [one.as_json() for one in classes],
        "exclusions": [one.as_json() for one in exclusions],
        "extent": Box.from_corners(*shapely.total_bounds(drawn).tolist()).as_list() if drawn else None,
        "repaired": sum(one.repaired for one in everything),
        "dropped": sum(one.dropped for one in everything),
        "ignored": dict(found.ignored),
    }


def _chosen(path: str | Path, wanted: Sequence[str], named: Mapping[str, ClassRegion]) -> list[ClassRegion]:
    """Return the regions of the wanted classes; of the only one where none is named."""
    ordered = sorted(named.values(), key=lambda one: (-one.count, one.name))
    listed = ", ".join(f"{one.name!r} ({one.count})" for one in ordered[:_MOST_NAMES]) or "only exclusions"
    listed += f" and {len(ordered) - _MOST_NAMES} more" if len(ordered) > _MOST_NAMES else ""
    if not wanted and len(named) != 1:
        raise AnnotationError(f"{path}: say which class is tumour; it has {listed}")
    folded = {known.casefold(): known for known in named}
    for name in wanted:
        if name not in named:
            near = difflib.get_close_matches(name.casefold(), folded, n=1, cutoff=0.6)
            hint = f" (did you mean {folded[near[0]]!r}?)" if near else ""
            raise AnnotationError(f"{path}: has no class {name!r}{hint}; it has {listed}")
    chosen = [named[name] for name in dict.fromkeys(wanted or named)]
    for one in chosen:
        if one.dropped and not one.count:
            raise AnnotationError(f"{path}: nothing that it draws of class {one.name!r} has an area")
    return chosen


def _class_regions(
    drawings: Iterable[Drawing], offset: tuple[float, float] = (0.0, 0.0)
) -> tuple[tuple[ClassRegion, ...], tuple[ClassRegion, ...]]:
    """Return the classes and the exclusions, each in the order in which they first appear."""
    by_name: dict[str, list[Drawing]] = {}
    for drawing in drawings:
        by_name.setdefault(drawing.name, []).append(drawing)
    regions = [_class_region(name, drawn, offset) for name, drawn in by_name.items()]
    classes = tuple(one for one in regions if one.role == Role.REGION)
    return classes, tuple(one for one in regions if one.role == Role.EXCLUSION)


def _class_region(name: str, drawings: Sequence[Drawing], offset: tuple[float, float]) -> ClassRegion:
    role = Role.EXCLUSION if any(drawing.role == Role.EXCLUSION for drawing in drawings) else Role.REGION
    solid, *counts = _valid([drawing for drawing in drawings if drawing.role != Role.HOLE], offset)
    holes, _, repaired, dropped = _valid([drawing for drawing in drawings if drawing.role == Role.HOLE], offset)
    region = _minus(_union(solid), _union(holes))
    return ClassRegion(name, role, region, counts[0], counts[1] + repaired, counts[2] + dropped)


def _union(shapes: Sequence[shapely.Geometry] | NDArray[np.object_]) -> shapely.Geometry:
    """Return the union of valid polygons; empty where there is none.

    Those that lie apart are only put side by side: 1,000 polygons with 100,000 vertices take 0.07 s instead of 0.95.
    """
    return shapely.disjoint_subset_union_all(np.asarray(shapes, object)) if len(shapes) else shapely.MultiPolygon()


def _minus(region: shapely.Geometry, cut: shapely.Geometry) -> shapely.Geometry:
    return region if cut.is_empty else shapely.difference(region, cut)


def _valid(drawings: Sequence[Drawing], offset: tuple[float, float]) -> tuple[NDArray[np.object_], int, int, int]:
    """Return valid polygons, how many drawings have an area, and how many polygons were repaired and dropped."""
    owners: list[int] = []
    drawn: list[shapely.Polygon] = []
    dropped = 0
    for owner, drawing in enumerate(drawings):
        for rings in drawing.polygons:
            usable = [ring + offset for ring in rings if _points(ring) >= _FEWEST_POINTS]
            if rings and _points(rings[0]) >= _FEWEST_POINTS:
                drawn.append(shapely.Polygon(usable[0], usable[1:]))
                owners.append(owner)
                dropped += len(rings) - len(usable)
            else:
                dropped += 1
    polygons = np.array(drawn, dtype=object)
    invalid = ~shapely.is_valid(polygons)
    for number in np.flatnonzero(invalid):
        polygons[number], lost = _repaired(polygons[number])
        dropped += lost
    has_area = shapely.area(polygons) > 0
    count = len(np.unique(np.array(owners, dtype=np.intp)[has_area]))
    return polygons[has_area], count, int((invalid & has_area).sum()), dropped + int((~has_area).sum())


def _points(ring: Floats) -> int:
    """Return how many points a ring has; one that closes it is not counted again."""
    return len(ring) - (len(ring) > 1 and bool((ring[0] == ring[-1]).all()))


def _repaired(polygon: shapely.Polygon) -> tuple[shapely.Geometry, int]:
    """Return a polygon made valid: its outline less its holes, wherever those lie; and the holes without an area.

    Each ring is repaired alone: repaired together, a hole outside the outline would become a part of the region.
    `structure` keeps what a ring encloses twice, as a pen does where its end overshoots its start; the default,
    `linework`, would make a hole of it.
    """
    rings = [shapely.Polygon(ring) for ring in (polygon.exterior, *polygon.interiors)]
    outline, *holes = shapely.make_valid(rings, method="structure", keep_collapsed=False)
    usable = [hole for hole in holes if hole.area > 0]
    return _minus(outline, _union(usable)), len(holes) - len(usable)


def warnings_on_slide(annotation: Annotation, slide: "Slide") -> list[str]:
    """Return what is odd about an annotation on an open slide, one sentence each; the user may still go on.

    Where there is no tumour, what the file says is none is looked at in its place: a file of another slide would make
    all tiles negative.

    Raises:
        AnnotationError: If there is tumour, but none of it in the scanned area.
    """
    has_tumour = not annotation.region.is_empty
    drawn = annotation.region if has_tumour else annotation.excluded
    if drawn.is_empty:
        return []
    scanned = slide.bounds
    area = shapely.box(scanned.x, scanned.y, scanned.right, scanned.bottom)
    outside = 1 - float(shapely.intersection(drawn, area).area) / float(drawn.area)
    extent = shown([round(number) for number in Box.from_corners(*drawn.bounds).as_list()])
    told = f"{'the tumour' if has_tumour else 'what is no tumour'} of {annotation.path}, extent {extent},"
    where = f"the scanned area {shown(scanned.as_list())} of {slide.path}"
    advice = "is it of another slide or scan" + ", or relative to the scanned area" * bool(scanned.x or scanned.y)
    if outside >= 1 and has_tumour:
        raise AnnotationError(f"{told} lies outside {where}: {advice}?")
    return [f"{outside:.1%} of {told} lies outside {where}: {advice}?"] if outside > TOLERATED_SHARE else []


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
        return _shares_of_grid(annotation.region, *tiles.edges()).ravel().round(_DECIMALS)
    if tiles.ndim != 2 or tiles.shape[1] != 4 or not (tiles[:, 2:] > 0).all():
        raise ValueError(f"boxes must be rows [x, y, w, h] with positive extents, got shape {tiles.shape}")
    return _shares_of_boxes(annotation.region, tiles).round(_DECIMALS)


def _shares_of_grid(region: shapely.Geometry, column_edges: Floats, row_edges: Floats) -> Floats:
    """Return float64, shape (rows, columns): the share of each tile between increasing edges, in one pass.

    Green's theorem, tile by tile, as rasterisers of fonts use it: an edge that goes down by dy inside a tile adds dy
    times its mean distance from the tile's right side, and dy times the full width to every tile farther right in that
    row; the edges on the polygon's other side, which go up, take away what lies beyond them. Exact but for rounding,
    and linear in the edges and the tiles they cross.
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

    def summed(amount: Floats) -> Floats:
        return np.bincount(tile, amount, rows * columns).astype(np.float64).reshape(rows, columns)

    gone_down = summed(down)
    width, height = np.diff(column_edges), np.diff(row_edges)
    area = summed(down * (column_edges[column + 1] - x)) + (np.cumsum(gone_down, axis=1) - gone_down) * width
    share = np.clip(area / np.outer(height, width), 0, 1)
    is_crossed = summed(np.ones(len(tile))) > 0
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
    return np.insert(start, edge + 1, crossing, axis=0), np.insert(end, edge, crossing, axis=0)


def _shares_of_boxes(region: shapely.Geometry, boxes: Floats) -> Floats:
    """Return the share of each box, from the pieces of the region that lie near it."""
    x, y, width, height = boxes.T
    shapes = shapely.box(x, y, x + width, y + height)
    tree = shapely.STRtree(shapes)
    areas: Floats = shapely.area(shapes)
    covered = np.zeros(len(boxes))
    for piece in _pieces(region):
        near = tree.query(piece)
        shapely.prepare(piece)
        inside = shapely.contains_properly(piece, shapes[near])  # the prepared test costs a tenth of an intersection
        covered[near[inside]] += areas[near[inside]]
        crossed = near[~inside]
        with np.errstate(all="ignore"):  # shapely 2.1.0 lets the floating-point flags of GEOS through as warnings
            covered[crossed] += shapely.area(shapely.intersection(piece, shapes[crossed]))
    return np.clip(covered / areas, 0, 1)


def _pieces(region: shapely.Geometry) -> list[shapely.Polygon]:
    """Return polygons that make up a region without overlap, halved until none has too many points.

    One outline with 100,000 points would otherwise be walked along for each of the tiles that it crosses.
    """
    todo, done = list(shapely.get_parts(region)), []
    while todo:
        polygon = todo.pop()
        points = shapely.get_num_coordinates(polygon)
        halves = _halves(polygon) if points > _PIECE_POINTS else []
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
    sides = ((left, top, cut, bottom), (cut, top, right, bottom))
    if axis == 1:
        sides = ((left, top, right, cut), (left, cut, right, bottom))
    parts = shapely.intersection(polygon, [shapely.box(*side) for side in sides])
    polygons = shapely.get_parts(shapely.get_parts(parts))  # a collection may hold multi-polygons
    return list(polygons[shapely.area(polygons) > 0])  # without lines and points, where two shapes only touch
