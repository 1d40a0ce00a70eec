"""ASAP XML (Automated Slide Analysis Platform; CAMELYON16 and 17, TIGER): annotations that belong to groups."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

import numpy as np

from pathnav.cohort.annotation_drawing import AnnotationFormat, Drawing, Drawings, Role, is_exclusion, ring
from pathnav.cohort.annotation_xml import Tag, number
from pathnav.geometry import Floats

ROOT = "ASAP_Annotations"

_CLOSED = ("Polygon", "Spline", "Rectangle")
_CAMELYON16_EXCLUSION = "_2"  # its groups _0 and _1 are tumour
_NO_GROUP = "None"


def read_asap(tags: Iterable[Tag]) -> Drawings:
    """Read the annotations of an ASAP file; the group of each is its class.

    Raises:
        AnnotationError: If a coordinate is not a number.
    """
    closed: list[tuple[str, Floats]] = []
    ignored: Counter[str] = Counter()
    parents: dict[str, str] = {}
    started: dict[str, str] = {}
    place = ""
    count = 0
    rows: list[tuple[float, float, float]] = []
    for name, attributes in tags:
        if name == "Annotation":
            if attributes is not None:
                count += 1
                started, rows, place = attributes, [], _place(count, attributes)
            elif started.get("Type", _CLOSED[0]) in _CLOSED:
                closed.append((started.get("PartOfGroup", _NO_GROUP), _ring(rows, place)))
            else:
                ignored[started["Type"].lower()] += 1
        elif attributes is not None and name == "Coordinate":
            rows.append(_coordinate(attributes, len(rows), place))
        elif attributes is not None and name == "Group":
            parents[attributes.get("Name", "")] = attributes.get("PartOfGroup", _NO_GROUP)
    drawings = tuple(Drawing(group, ((outline,),), _role(group, parents)) for group, outline in closed)
    return Drawings(AnnotationFormat.ASAP, drawings, dict(ignored))


def _place(count: int, annotation: Mapping[str, str]) -> str:
    """Return which annotation of the file it is, from 1; names may be empty or stand twice."""
    name = annotation.get("Name", "")
    return f"annotation no. {count}" + (f" ({name!r})" if name else "")


def _coordinate(attributes: dict[str, str], count: int, place: str) -> tuple[float, float, float]:
    order = number(attributes, "Order", place) if "Order" in attributes else float(count)
    return order, number(attributes, "X", place), number(attributes, "Y", place)


def _ring(rows: list[tuple[float, float, float]], place: str) -> Floats:
    ordered = np.array(rows, dtype=np.float64).reshape(-1, 3)
    return ring(ordered[np.argsort(ordered[:, 0], kind="stable"), 1:], place)


def _role(group: str, parents: Mapping[str, str]) -> Role:
    """Return the role of a group: it is that of the groups it lies in."""
    excluded = any(name == _CAMELYON16_EXCLUSION or is_exclusion(name) for name in _lineage(group, parents))
    return Role.EXCLUSION if excluded else Role.REGION


def _lineage(group: str, parents: Mapping[str, str]) -> Iterator[str]:
    seen: set[str] = set()
    while group not in seen:
        yield group
        seen.add(group)
        group = parents.get(group, group)
