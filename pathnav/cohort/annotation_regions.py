"""From drawings to valid regions: rings become polygons, what is broken is repaired or dropped and counted."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import shapely
from numpy.typing import NDArray

from pathnav.cohort.annotation_drawing import Drawing, Rings, Role
from pathnav.geometry import Floats

_FEWEST_POINTS = 3


@dataclass(frozen=True, slots=True)
class ClassRegion:
    """What a file draws of one class.

    Args:
        name: The class.
        role: Whether it is a class of regions or one that is cut out of all others.
        region: Valid polygons in level-0 pixels, holes cut out; overlapping drawings count once.
        count: Drawings of the class that have an area.
        repaired: Polygons that crossed themselves or were otherwise invalid.
        dropped: Polygons and holes without an area.
    """

    name: str
    role: Role
    region: shapely.Geometry
    count: int
    repaired: int
    dropped: int

    @property
    def area_px2(self) -> float:
        """The area in square level-0 pixels."""
        return float(self.region.area)


def class_regions(
    drawings: Sequence[Drawing], declared: Iterable[str] = (), offset: tuple[float, float] = (0.0, 0.0)
) -> list[ClassRegion]:
    """Return the region of each class, in the order in which the classes first appear.

    Args:
        drawings: What is drawn.
        declared: Classes that exist even if nothing is drawn of them.
        offset: Added to all x and y, in level-0 pixels.
    """
    by_name: dict[str, list[Drawing]] = {name: [] for name in declared}
    for drawing in drawings:
        by_name.setdefault(drawing.name, []).append(drawing)
    return [_class_region(name, found, offset) for name, found in by_name.items()]


def _class_region(name: str, drawings: Sequence[Drawing], offset: tuple[float, float]) -> ClassRegion:
    holes = _Shapes.of([drawing for drawing in drawings if drawing.role == Role.HOLE], offset)
    solid = _Shapes.of([drawing for drawing in drawings if drawing.role != Role.HOLE], offset)
    is_exclusion = any(drawing.role == Role.EXCLUSION for drawing in drawings)
    return ClassRegion(
        name,
        Role.EXCLUSION if is_exclusion else Role.REGION,
        minus(union(solid.polygons), union(holes.polygons)),
        solid.count,
        solid.repaired + holes.repaired,
        solid.dropped + holes.dropped,
    )


def union(shapes: Sequence[shapely.Geometry] | NDArray[np.object_]) -> shapely.Geometry:
    """Return the union of valid polygons; empty where there is none.

    Those that lie apart are only put side by side: 1,000 polygons with 100,000 vertices take 0.07 s instead of 0.95.
    """
    return (
        shapely.disjoint_subset_union_all(np.asarray(shapes, dtype=object)) if len(shapes) else shapely.MultiPolygon()
    )


def minus(region: shapely.Geometry, cut: shapely.Geometry) -> shapely.Geometry:
    """Return what of a region is not cut out."""
    return region if cut.is_empty else shapely.difference(region, cut)


@dataclass(frozen=True, slots=True)
class _Shapes:
    polygons: NDArray[np.object_]
    count: int
    repaired: int
    dropped: int

    @classmethod
    def of(cls, drawings: Sequence[Drawing], offset: tuple[float, float]) -> "_Shapes":
        """Return the valid polygons of some drawings, with what was wrong with them."""
        owners: list[int] = []
        drawn: list[shapely.Polygon] = []
        dropped = 0
        for owner, drawing in enumerate(drawings):
            for rings in drawing.polygons:
                polygon, lost = _polygon(rings, offset)
                dropped += lost
                if polygon is not None:
                    drawn.append(polygon)
                    owners.append(owner)
        polygons = np.array(drawn, dtype=object)
        invalid = ~shapely.is_valid(polygons)
        for number in np.flatnonzero(invalid):
            polygons[number], lost = _repaired(polygons[number])
            dropped += lost
        has_area = shapely.area(polygons) > 0
        return cls(
            polygons[has_area],
            len(set(np.array(owners, dtype=np.intp)[has_area].tolist())),
            int((invalid & has_area).sum()),
            dropped + int((~has_area).sum()),
        )


def _polygon(rings: Rings, offset: tuple[float, float]) -> tuple[shapely.Polygon | None, int]:
    """Return the polygon of some rings, None where the outer one has under three points; and the rings lost."""
    if not rings or _points(rings[0]) < _FEWEST_POINTS:
        return None, 1
    usable = [ring + offset for ring in rings if _points(ring) >= _FEWEST_POINTS]
    return shapely.Polygon(usable[0], usable[1:]), len(rings) - len(usable)


def _points(ring: Floats) -> int:
    """Return how many points a ring has; one that closes it is not counted again."""
    closes = len(ring) > 1 and bool((ring[0] == ring[-1]).all())
    return len(ring) - closes


def _repaired(polygon: shapely.Polygon) -> tuple[shapely.Geometry, int]:
    """Return a polygon made valid: its outline less its holes, wherever those lie; and the holes without an area.

    Each ring is repaired alone: repaired together, a hole outside the outline would become a part of the region.
    `structure` keeps what a ring encloses twice, as a pen does where its end overshoots its start; the default,
    `linework`, would make a hole of it.
    """
    rings = [shapely.Polygon(ring) for ring in (polygon.exterior, *polygon.interiors)]
    outline, *holes = shapely.make_valid(rings, method="structure", keep_collapsed=False)
    usable = [hole for hole in holes if hole.area > 0]
    return minus(outline, union(usable)), len(holes) - len(usable)
