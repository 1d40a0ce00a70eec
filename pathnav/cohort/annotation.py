"""Tumour annotations of other tools: which part of a slide's plane is tumour.

annotation = load_annotation("case.geojson", classes=["tumor"])
shares = overlap_fractions(annotation, grid)

The formats and the rules are told in `docs/annotations.md`.
"""

import difflib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import shapely

from pathnav.cohort.annotation_drawing import AnnotationFormat, Drawings, Role
from pathnav.cohort.annotation_file import read_drawings
from pathnav.cohort.annotation_regions import ClassRegion, class_regions, minus, union
from pathnav.errors import AnnotationError
from pathnav.geometry import Box

__all__ = ["ANNOTATION_FORMAT", "Annotation", "AnnotationFormat", "ClassRow", "describe_annotation", "load_annotation"]

ANNOTATION_FORMAT = "pathnav-annotation-1"

_MOST_NAMES = 20


@dataclass(frozen=True, slots=True)
class ClassRow:
    """What a file has of one class.

    Args:
        name: The class, as it is chosen.
        count: Drawings that have an area.
        area_px2: What they cover together, in square level-0 pixels; holes cut out, exclusions not yet.
        repaired: Polygons that were invalid and were repaired.
        dropped: Polygons and holes that have no area.
    """

    name: str
    count: int
    area_px2: float
    repaired: int
    dropped: int


@dataclass(frozen=True, slots=True)
class Annotation:
    """The tumour of a slide, as one file draws it.

    Args:
        path: The file.
        file_format: What kind of file it is.
        chosen: The classes that are tumour.
        region: The tumour: valid polygons in level-0 pixels of the slide's plane, exclusions cut out; empty where the
            file says that there is none.
        classes: Every class of the file but the exclusions.
        exclusions: The classes that were cut out.
        ignored: How many objects of each kind have no area, such as points.
        excluded: All that the file says is no tumour, before it is cut out: valid polygons in level-0 pixels.
    """

    path: str
    file_format: AnnotationFormat
    chosen: tuple[str, ...]
    region: shapely.Geometry
    classes: tuple[ClassRow, ...]
    exclusions: tuple[ClassRow, ...]
    ignored: Mapping[str, int]
    excluded: shapely.Geometry = field(default_factory=shapely.Polygon)

    @property
    def area_px2(self) -> float:
        """The area of the tumour in square level-0 pixels."""
        return float(self.region.area)

    @property
    def repaired(self) -> int:
        """How many polygons of the whole file were repaired."""
        return sum(row.repaired for row in (*self.classes, *self.exclusions))

    @property
    def dropped(self) -> int:
        """How many polygons and holes of the whole file have no area."""
        return sum(row.dropped for row in (*self.classes, *self.exclusions))


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
    regions = class_regions(found.drawings, found.declared, offset)
    _check_that_something_is_drawn(path, found)
    chosen = _choose(path, classes, regions)
    cut = union([one.region for one in regions if one.role == Role.EXCLUSION])
    tumour = union([one.region for one in chosen])
    return Annotation(
        str(path),
        found.file_format,
        tuple(one.name for one in chosen),
        minus(tumour, cut),
        _rows(regions, Role.REGION),
        _rows(regions, Role.EXCLUSION),
        found.ignored,
        cut,
    )


def describe_annotation(path: str | Path) -> dict[str, Any]:
    """Return what an annotation file holds, as plain JSON: areas in square level-0 pixels, extent as [x, y, w, h].

    Raises:
        AnnotationError: If the file cannot be read or draws nothing.
    """
    found = read_drawings(path)
    regions = class_regions(found.drawings, found.declared)
    if not found.is_kept_tiles:
        _check_that_something_is_drawn(path, found)
    return {
        "format": ANNOTATION_FORMAT,
        "path": str(path),
        "file_format": str(found.file_format),
        "classes": [_as_json(row) for row in _rows(regions, Role.REGION)],
        "exclusions": [_as_json(row) for row in _rows(regions, Role.EXCLUSION)],
        "extent": _extent(regions),
        "repaired": sum(one.repaired for one in regions),
        "dropped": sum(one.dropped for one in regions),
        "ignored": dict(sorted(found.ignored.items())),
    }


def _check_that_something_is_drawn(path: str | Path, found: Drawings) -> None:
    if found.drawings or found.declared:
        return
    if found.is_kept_tiles:
        raise AnnotationError(f"{path}: holds no kept tiles: it was written by a search that kept none")
    ignored = ", ".join(f"{count} {kind}" for kind, count in sorted(found.ignored.items()))
    raise AnnotationError(f"{path}: holds no closed region" + (f", only {ignored}" if ignored else ""))


def _choose(path: str | Path, wanted: Sequence[str], regions: Iterable[ClassRegion]) -> list[ClassRegion]:
    """Return the regions of the wanted classes; of the only one where none is named."""
    named = {one.name: one for one in regions if one.role == Role.REGION}
    if not wanted and len(named) != 1:
        raise AnnotationError(f"{path}: say which class is tumour; it has {_listed(named)}")
    chosen = [_chosen(path, name, named) for name in dict.fromkeys(wanted or named)]
    lost = [one.name for one in chosen if one.dropped and not one.count]
    if lost:
        raise AnnotationError(f"{path}: nothing that it draws of class {lost[0]!r} has an area")
    return chosen


def _chosen(path: str | Path, name: str, named: Mapping[str, ClassRegion]) -> ClassRegion:
    if name in named:
        return named[name]
    folded = {known.casefold(): known for known in named}
    near = difflib.get_close_matches(name.casefold(), folded, n=1, cutoff=0.6)
    hint = f" (did you mean {folded[near[0]]!r}?)" if near else ""
    raise AnnotationError(f"{path}: has no class {name!r}{hint}; it has {_listed(named)}")


def _listed(named: Mapping[str, ClassRegion]) -> str:
    """Return the classes with their counts, the most frequent first."""
    counts = Counter({name: one.count for name, one in named.items()})
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    shown = ", ".join(f"{name!r} ({count})" for name, count in ordered[:_MOST_NAMES])
    further = len(ordered) - _MOST_NAMES
    return (shown or "only exclusions") + (f" and {further} more" if further > 0 else "")


def _rows(regions: Iterable[ClassRegion], role: Role) -> tuple[ClassRow, ...]:
    return tuple(
        ClassRow(one.name, one.count, one.area_px2, one.repaired, one.dropped) for one in regions if one.role == role
    )


def _as_json(row: ClassRow) -> dict[str, Any]:
    return {
        "name": row.name,
        "count": row.count,
        "area_px2": row.area_px2,
        "repaired": row.repaired,
        "dropped": row.dropped,
    }


def _extent(regions: Sequence[ClassRegion]) -> list[float] | None:
    """Return the box around everything drawn, None where nothing has an area."""
    boxes = [one.region.bounds for one in regions if not one.region.is_empty]
    if not boxes:
        return None
    left, top, right, bottom = zip(*boxes, strict=True)
    return Box.from_corners(min(left), min(top), max(right), max(bottom)).as_list()
