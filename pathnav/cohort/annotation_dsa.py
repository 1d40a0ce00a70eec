"""Annotations of the Digital Slide Archive (HistomicsUI, girder large_image): documents of elements."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

from pathnav.cohort.annotation_drawing import (
    MAX_COORDINATE,
    UNCLASSIFIED,
    AnnotationFormat,
    Drawing,
    Drawings,
    Rings,
    ellipse_ring,
    named_role,
    rectangle_ring,
    ring,
)
from pathnav.cohort.annotation_geojson import named
from pathnav.errors import AnnotationError
from pathnav.settings import is_number, shown


def is_dsa(document: Any) -> bool:
    """Return whether a JSON document is a DSA annotation or a list of them, with or without the server's envelope."""
    documents = document if isinstance(document, list) else [document]
    return bool(documents) and all(
        isinstance(one, dict) and ("annotation" in one or "elements" in one) for one in documents
    )


def read_dsa(document: Any) -> Drawings:
    """Read the elements of a document for which `is_dsa` holds; the group or label of each is its class.

    Raises:
        AnnotationError: If an element is not what the schema of DSA allows.
    """
    drawings: list[Drawing] = []
    ignored: Counter[str] = Counter()
    for place, element, title in _elements(document):
        rings = _rings(element, place)
        if rings is None:
            ignored[_kind_without_area(element)] += 1
        else:
            name = named(element.get("group")) or named(element.get("label")) or title
            drawings.append(Drawing(name, (rings,), named_role(name)))
    return Drawings(AnnotationFormat.DSA, tuple(drawings), dict(ignored))


def _elements(document: Any) -> Iterator[tuple[str, dict[str, Any], str]]:
    """Yield for each element where it is, itself, and the name of its annotation."""
    for number, envelope in enumerate(document if isinstance(document, list) else [document]):
        annotation = envelope.get("annotation", envelope)
        elements = annotation.get("elements", []) if isinstance(annotation, dict) else None
        if not isinstance(elements, list):
            raise AnnotationError(f"{number}: expected an annotation with a list of elements, got {shown(annotation)}")
        for index, element in enumerate(elements):
            place = f"{number}.elements.{index}"
            if not isinstance(element, dict):
                raise AnnotationError(f"{place} must be an object, got {shown(element)}")
            yield place, element, named(annotation) or UNCLASSIFIED


def _kind_without_area(element: dict[str, Any]) -> str:
    kind = str(element.get("type"))
    return "open polyline" if kind == "polyline" else kind


def _rings(element: dict[str, Any], place: str) -> Rings | None:
    """Return what an element encloses, None where it is of a kind that encloses nothing."""
    match element.get("type"):
        case "polyline" if element.get("closed", True):
            holes = element.get("holes") or []
            if not isinstance(holes, list):
                raise AnnotationError(f"{place}.holes must be a list of rings, got {shown(holes)}")
            return tuple(ring(points, place) for points in (element.get("points"), *holes))
        case "rectangle" | "rectanglegrid":
            return (rectangle_ring(_centre(element, place), *_extent(element, place)),)
        case "ellipse":
            return (ellipse_ring(_centre(element, place), *_extent(element, place)),)
        case "circle":
            diameter = 2 * _size(element, "radius", place)
            return (ellipse_ring(_centre(element, place), diameter, diameter),)
    return None


def _centre(element: dict[str, Any], place: str) -> tuple[float, float]:
    x, y = ring([element.get("center")], f"{place}.center")[0]
    return float(x), float(y)


def _extent(element: dict[str, Any], place: str) -> tuple[float, float, float]:
    """Return width, height and rotation; large_image turns from +x towards +y, which looks clockwise on a slide."""
    rotation = _number(element, "rotation", place) if "rotation" in element else 0.0
    return _size(element, "width", place), _size(element, "height", place), rotation


def _size(element: dict[str, Any], key: str, place: str) -> float:
    size = _number(element, key, place)
    if size < 0:
        raise AnnotationError(f"{place}.{key} must not be negative, got {shown(element[key])}")
    return size


def _number(element: dict[str, Any], key: str, place: str) -> float:
    value: Any = element.get(key)
    if not is_number(value) or not abs(value) <= MAX_COORDINATE:  # written so that not-a-number is refused, too
        raise AnnotationError(f"{place}.{key} must be a finite number, got {shown(value)}")
    return float(value)
