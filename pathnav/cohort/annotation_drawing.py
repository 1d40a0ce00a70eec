"""What a reader of annotation files returns: closed outlines in level-0 pixels, as they were drawn."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np

from pathnav.errors import AnnotationError
from pathnav.geometry import Floats
from pathnav.settings import shown

Rings = tuple[Floats, ...]
"""A polygon: the outer ring, then its holes; each float64, shape (n, 2), rows (x, y); closed or not, valid or not."""

UNCLASSIFIED = "unclassified"
"""The class of a drawing that names none."""

MAX_COORDINATE = 2.0**40
"""No slide is a trillion pixels wide, and beyond it areas lose their last digits."""

_ELLIPSE_POINTS = 128


class AnnotationFormat(StrEnum):
    """The kinds of files that can be read."""

    GEOJSON = "geojson"
    ASAP = "asap-xml"
    IMAGESCOPE = "imagescope-xml"
    DSA = "dsa-json"
    NCRF = "ncrf-json"


class Role(StrEnum):
    """What a drawing does to the tumour."""

    REGION = "region"
    HOLE = "hole"
    EXCLUSION = "exclusion"


@dataclass(frozen=True, slots=True)
class Drawing:
    """One object of an annotation file.

    Args:
        name: Its class.
        polygons: What it covers.
        role: A hole is cut out of the regions of its own class, an exclusion out of those of every class.
    """

    name: str
    polygons: tuple[Rings, ...]
    role: Role = Role.REGION


@dataclass(frozen=True, slots=True)
class Drawings:
    """All objects of an annotation file.

    Args:
        file_format: What kind of file it is.
        drawings: Its closed outlines, in the file's order.
        ignored: How many objects of each kind have no area: points, lines, arrows.
        declared: Classes that the file has even where nothing is drawn of them.
        is_kept_tiles: Whether a search of pathnav wrote the file, to which it is no fault to hold nothing.
    """

    file_format: AnnotationFormat
    drawings: tuple[Drawing, ...]
    ignored: dict[str, int]
    declared: tuple[str, ...] = ()
    is_kept_tiles: bool = False


def is_exclusion(name: str) -> bool:
    """Return whether a class means, in files of every kind, that what it covers is not to be counted."""
    return name.casefold() == "exclusion"


def named_role(name: str) -> Role:
    """Return the role of a drawing in a format that knows no other sign of it than the name of its class."""
    return Role.EXCLUSION if is_exclusion(name) else Role.REGION


def ring(points: Any, place: str) -> Floats:
    """Return a ring from a list of points.

    Args:
        points: Rows x, y and possibly more, in level-0 pixels.
        place: Where in the file, for the message.

    Raises:
        AnnotationError: If a point is not two finite numbers that a slide can hold.
    """
    try:
        rows = np.asarray(points, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise AnnotationError(f"{place}: expected a list of points [x, y], got {shown(points)}") from None
    if rows.size == 0:
        return np.empty((0, 2))
    if rows.ndim != 2 or rows.shape[1] < 2:
        raise AnnotationError(f"{place}: expected a list of points [x, y], got {shown(points)}")
    flat = rows[:, :2]
    if not (np.abs(flat) <= MAX_COORDINATE).all():  # also false for not-a-number
        wrong = int(np.flatnonzero(~(np.abs(flat) <= MAX_COORDINATE).all(axis=1))[0])
        raise AnnotationError(f"{place}: point {wrong} must be two finite numbers, got {flat[wrong].tolist()}")
    return flat


def ellipse_ring(centre: tuple[float, float], width: float, height: float, rotation: float = 0.0) -> Floats:
    """Return a ring around an ellipse; it has the ellipse's exact area.

    Args:
        centre: (x, y).
        width: Full extent along x before rotation.
        height: Full extent along y before rotation.
        rotation: Radians from +x towards +y.
    """
    angles = np.linspace(0, 2 * np.pi, _ELLIPSE_POINTS, endpoint=False)
    step = 2 * math.pi / _ELLIPSE_POINTS
    outward = math.sqrt(step / math.sin(step))  # an inscribed polygon would be 0.04 % too small
    circle = np.column_stack([np.cos(angles) * width, np.sin(angles) * height]) / 2 * outward
    return _placed(circle, centre, rotation)


def rectangle_ring(centre: tuple[float, float], width: float, height: float, rotation: float = 0.0) -> Floats:
    """Return a ring around a rectangle; arguments as those of `ellipse_ring`."""
    corners = np.array([(-1, -1), (1, -1), (1, 1), (-1, 1)]) * (width / 2, height / 2)
    return _placed(corners, centre, rotation)


def _placed(points: Floats, centre: Sequence[float], rotation: float) -> Floats:
    cos, sin = math.cos(rotation), math.sin(rotation)
    turned: Floats = points @ np.array([(cos, sin), (-sin, cos)]) + np.asarray(centre, dtype=np.float64)
    return turned
