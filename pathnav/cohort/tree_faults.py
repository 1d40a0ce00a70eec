"""The rules of diagnostic trees, each broken one told with its slide and node, all at once."""

import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import BaseModel, ValidationError

from pathnav.cohort.complaints import Place, complaints, dotted, reason, shown, suggestion, value_at
from pathnav.cohort.node import Node, Route, TreeSlide
from pathnav.cohort.protocol import MAGNIFICATIONS
from pathnav.errors import AnnotationError

if TYPE_CHECKING:
    from pathnav.slide import Slide

Model = TypeVar("Model", bound=BaseModel)

MPP_TOLERANCE = 0.05
"""Vendors round: 0.499 and 0.5 are one scan; 0.25 and 0.5 are two, and boxes drawn on one miss on the other."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One broken rule.

    Args:
        place: Where in the document, for ordering; also told where neither slide nor node have a name.
        slide: Name of the slide's entry.
        node: Id of the node.
        reason: What is wrong.
    """

    place: Place
    slide: str | None
    node: str | None
    reason: str

    def __str__(self) -> str:
        named = [f"slide {self.slide!r}"] * (self.slide is not None) + [f"node {self.node!r}"] * (self.node is not None)
        return f"{', '.join(named)}: {self.reason}" if named else self.reason


def raise_faults(faults: Iterable[Fault], path: str | Path) -> None:
    """Raise one error that lists all faults of a file, one a line; return where there is none.

    Raises:
        AnnotationError: If there is a fault.
    """
    lines = fault_lines(faults, path)
    if lines:
        raise AnnotationError("\n".join(lines))


def fault_lines(faults: Iterable[Fault], path: str | Path) -> list[str]:
    """Return one sentence for each fault of a file, in the file's order."""
    ordered = sorted(faults, key=lambda fault: ([str(step).zfill(6) for step in fault.place], str(fault)))
    return [f"{path}: {fault}" for fault in ordered]


def faults_of_shape(model: type[BaseModel], document: Any, error: ValidationError) -> list[Fault]:
    """Return what is wrong with single values: missing, unknown, of the wrong kind, out of range."""
    faults = []
    for detail in complaints(error):
        place = detail["loc"]
        slide = value_at(document, (*place[:2], "slide")) if place[:1] == ("slides",) else None
        node = value_at(document, (*place[:4], "id")) if place[2:3] == ("nodes",) else None
        named = 4 if isinstance(node, str) else 2 if isinstance(slide, str) else 0
        text = f"{dotted(place[named:])} {reason(detail)}" if place[named:] else reason(detail)
        if detail["type"] in ("missing", "extra_forbidden"):
            hint = f" ({suggestion(model, place)})" if detail["type"] == "extra_forbidden" else ""
            text = f"{dotted(place[named:])}: {reason(detail)}{hint}"
        faults.append(
            Fault(place, slide if isinstance(slide, str) else None, node if isinstance(node, str) else None, text)
        )
    return faults


def faults_between_nodes(document: Any) -> list[Fault]:
    """Return what is wrong between the nodes of each slide, as far as their values can be read."""
    slides = value_at(document, ("slides",))
    if not isinstance(slides, list):
        return []
    faults = list(_double_slides(slides))
    for index, entry in enumerate(slides):
        if isinstance(entry, Mapping):
            faults += _Links(index, entry).faults()
    return faults


def _double_slides(slides: Sequence[Any]) -> Iterator[Fault]:
    names = [entry.get("slide") if isinstance(entry, Mapping) else None for entry in slides]
    stems = [PurePath(name).stem if isinstance(name, str) else None for name in names]
    for index, stem in enumerate(stems):
        if stem is not None and stem in stems[:index]:
            text = f"a second entry for {stem!r}; entries are told apart by the stem of their name"
            yield Fault(("slides", index), str(names[index]), None, text)


class _Links:
    """The nodes of one raw entry, those that can be read and the ids of all."""

    def __init__(self, index: int, entry: Mapping[str, Any]) -> None:
        self.place: Place = ("slides", index)
        self.slide = str(entry.get("slide"))
        raw = entry.get("nodes")
        raw_nodes = raw if isinstance(raw, list) else []
        self.ids = Counter(node["id"] for node in raw_nodes if isinstance(node, Mapping) and _has_id(node))
        self.nodes = {number: node for number, one in enumerate(raw_nodes) if (node := _parsed(Node, one))}
        self.by_id = {node.id: node for node in reversed(self.nodes.values())}
        paths = entry.get("paths")
        raw_paths = paths if isinstance(paths, list) else []
        self.routes = {number: route for number, one in enumerate(raw_paths) if (route := _parsed(Route, one))}

    def faults(self) -> Iterator[Fault]:
        """Yield every broken rule."""
        seen: set[str] = set()
        for number, node in self.nodes.items():
            reasons = list(self._reasons(node))
            if node.id in seen:
                reasons.append("the id is used more than once in this slide")
            seen.add(node.id)
            for text in reasons:
                yield Fault((*self.place, "nodes", number), self.slide, node.id, text)
        for number, route in self.routes.items():
            broken = self._broken_route(route)
            if broken is not None:
                yield Fault((*self.place, "paths", number), self.slide, None, f"paths.{number}: {broken}")

    def _reasons(self, node: Node) -> Iterator[str]:
        step = MAGNIFICATIONS.index(node.magnification)
        if step == 0:
            if node.parent is not None:
                yield f"a 2.5x node has no parent, got {node.parent!r}"
            return
        coarser = MAGNIFICATIONS[step - 1]
        if node.parent is None:
            yield f"a {node.magnification:g}x node needs a parent at {coarser:g}x"
        elif node.parent not in self.ids:
            yield f"its parent {node.parent!r} is not in this slide"
        elif (parent := self.by_id.get(node.parent)) is not None:
            if parent.magnification != coarser:
                given = f"{parent.id!r} is at {parent.magnification:g}x"
                yield f"a {node.magnification:g}x node needs a parent at {coarser:g}x, but {given}"
            if not parent.box.holds_point(node.box.centre):
                box, centre = shown(parent.box.as_list()), shown(list(node.box.centre))
                yield f"its centre {centre} lies outside the box {box} of its parent {parent.id!r}"

    def _broken_route(self, route: Route) -> str | None:
        unknown = [name for name in route.nodes if name not in self.ids]
        if unknown:
            return f"there is no node {', '.join(map(repr, unknown))} in this slide"
        if any(name not in self.by_id for name in route.nodes):
            return None
        first, last = self.by_id[route.nodes[0]], route.nodes[-1]
        if first.magnification != MAGNIFICATIONS[0]:
            return f"a path starts at a 2.5x node, but {first.id!r} is at {first.magnification:g}x"
        for upper, lower in itertools.pairwise(route.nodes):
            if self.by_id[lower].parent != upper:
                return f"{upper!r} is not the parent of {lower!r}"
        children = [node.id for node in self.nodes.values() if node.parent == last]
        return f"a path ends at a leaf, but {last!r} is the parent of {', '.join(children)}" if children else None


def _has_id(node: Mapping[str, Any]) -> bool:
    return isinstance(node.get("id"), str)


def _parsed(model: type[Model], raw: Any) -> Model | None:
    try:
        return model.model_validate(raw)
    except ValidationError:
        return None


def faults_on_slide(entry: TreeSlide, slide: "Slide") -> list[Fault]:
    """Return where a tree does not fit an open slide: another scale, a box beyond the plane, a centre off the scan."""
    faults = [
        Fault(("nodes", number), entry.slide, node.id, text)
        for number, node in enumerate(entry.nodes)
        for text in _misfits(node, slide)
    ]
    if entry.mpp is not None and slide.has_mpp:
        mpp_x, mpp_y = slide.mpp_um
        if any(abs(mpp / entry.mpp - 1) > MPP_TOLERANCE for mpp in (mpp_x, mpp_y)):
            text = f"was annotated at {entry.mpp:g} um per pixel, but {slide.path} has {mpp_x:g} x {mpp_y:g}"
            faults.append(Fault((), entry.slide, None, text))
    return faults


def _misfits(node: Node, slide: "Slide") -> Iterator[str]:
    box = node.box
    if box.x < 0 or box.y < 0 or box.right > slide.width or box.bottom > slide.height:
        yield f"its box {shown(box.as_list())} leaves the slide of {slide.width} x {slide.height} px"
    elif not slide.bounds.holds_point(box.centre):
        area = shown(slide.bounds.as_list())
        yield f"its centre {shown(list(box.centre))} lies outside the scanned area {area}"
