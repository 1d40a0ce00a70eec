"""Diagnostic trees: where a pathologist found what, from the whole slide down to 40x (`docs/tree-format.md`)."""

import difflib
import itertools
import json
import math
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BeforeValidator, Field, PlainSerializer, PrivateAttr, ValidationError

from pathnav.cohort.protocol import BUDGETS, MAGNIFICATIONS, budget_for
from pathnav.cohort.query import Query, Target, slide_handle
from pathnav.cohort.sample import jittered
from pathnav.errors import AnnotationError
from pathnav.geometry import Box
from pathnav.settings import Frozen, Place, Text, dotted, faults, is_number, shown, value_at

if TYPE_CHECKING:
    from pathnav.slide import Slide

TREE_FORMAT = "pathnav-tree-1"
MPP_TOLERANCE = 0.05
"""Vendors round: 0.499 and 0.5 are one scan; 0.25 and 0.5 are two, and boxes drawn on one miss on the other."""


def _box(value: Any) -> Box:
    if isinstance(value, Box):
        return value
    if not isinstance(value, Sequence) or len(value) != 4 or not all(is_number(number) for number in value):
        raise ValueError(f"must be four numbers [x, y, w, h], got {shown(value)}")
    if not all(math.isfinite(number) for number in value):
        raise ValueError(f"must be four finite numbers, got {shown(value)}")
    if not (value[2] > 0 and value[3] > 0):
        raise ValueError(f"must have a positive width and height, got {shown(value)}")
    return Box.from_list(value)


def _magnification(value: Any) -> float:
    if not is_number(value) or value not in MAGNIFICATIONS:
        raise ValueError(f"must be 2.5, 10 or 40, got {shown(value)}")
    return float(value)


Magnification = Annotated[float, BeforeValidator(_magnification)]


def normalised(finding: str) -> str:
    """Return a finding without what makes no difference: case, and the amount of space."""
    return " ".join(finding.casefold().split())


class Node(Frozen):
    """One region that a pathologist described."""

    id: Text
    """Unique within the slide."""
    magnification: Magnification
    """2.5, 10 or 40."""
    box: Annotated[Box, BeforeValidator(_box), PlainSerializer(Box.as_list)]
    """Level-0 pixels of the slide's plane; [x, y, w, h] in the file."""
    parent: str | None = None
    """The node one step coarser whose box holds this one's centre; None at 2.5x."""
    finding: Text
    """The pathologist's sentence about the region."""


class Route(Frozen):
    """A diagnostic route through the tree."""

    nodes: Annotated[tuple[str, ...], Field(min_length=1, strict=False)]
    """Node ids from a 2.5x node down to a leaf, each the parent of the next."""
    summary: str = ""
    """The pathologist's conclusion from the route."""


class TreeSlide(Frozen):
    """The annotated regions of one slide."""

    slide: Text
    """Name or relative path; only its stem counts, and only where a file holds several slides."""
    mpp: Annotated[float, Field(gt=0)] | None = None
    """Micrometres per level-0 pixel of the slide that was annotated."""
    organ: str | None = None
    nodes: Annotated[tuple[Node, ...], Field(min_length=1, strict=False)]
    paths: Annotated[tuple[Route, ...], Field(strict=False)] = ()

    def node(self, node_id: str) -> Node:
        """Return the node of an id; an unknown one is refused with the nearest ids."""
        nodes = {node.id: node for node in self.nodes}
        if node_id not in nodes:
            near = difflib.get_close_matches(node_id, nodes, n=5, cutoff=0.4) or list(nodes)[:20]
            raise AnnotationError(f"slide {self.slide!r} has no node {node_id!r}; it has {', '.join(near)}")
        return nodes[node_id]

    def pose(
        self, node: Node, slide: "Slide", budget: int, *, jitter: float = 0.0, seed: int = 0
    ) -> tuple[Query, Target]:
        """Turn a node into what is asked and what is true (docs/protocol.md, section 2, Search region).

        Args:
            node: One of the nodes; the tree was checked against the slide.
            slide: The open slide.
            budget: ROIs that may be looked at.
            jitter: Largest shift of the search region as a share of its side.
            seed: Draws the shift.
        """
        whole_slide = slide.bounds
        region = whole_slide if node.parent is None else self.node(node.parent).box.intersection(whole_slide)
        if jitter > 0:
            region = jittered(region, node.box.centre, whole_slide, jitter, (seed, slide.fingerprint, node.id))
        width, height = min(node.box.width, whole_slide.width), min(node.box.height, whole_slide.height)
        query = Query(
            handle=slide_handle(slide.fingerprint),
            magnification=node.magnification,
            finding=node.finding,
            region=region,
            target_width=width,
            target_height=height,
            budget=budget,
            organ=self.organ,
        )
        cut = (width, height) != (node.box.width, node.box.height)
        return query, Target(node.box, self._equivalents(node, region), cut)

    def _equivalents(self, node: Node, region: Box) -> tuple[Box, ...]:
        """Return the boxes that the same words describe: the node's own, then those of its like in the region."""
        others = {
            other.box
            for other in self.nodes
            if other.magnification == node.magnification
            and normalised(other.finding) == normalised(node.finding)
            and region.holds_point(other.box.centre)
        }
        return node.box, *sorted(others - {node.box}, key=Box.as_list)


class Tree(Frozen):
    """A file of diagnostic trees. Read one with `load_tree`, which checks every rule of the format."""

    format: Literal["pathnav-tree-1"]
    slides: Annotated[tuple[TreeSlide, ...], Field(min_length=1, strict=False)]
    _path: str = PrivateAttr("tree")

    def entry(self, slide_path: str | Path) -> TreeSlide:
        """Return the tree of a slide: the only one, else the one whose name has the same stem.

        Raises:
            AnnotationError: If no entry, or more than one, has that stem.
        """
        if len(self.slides) == 1:
            return self.slides[0]
        stem = PurePath(slide_path).stem
        found = [entry for entry in self.slides if PurePath(entry.slide).stem == stem]
        if len(found) != 1:
            names = ", ".join(entry.slide for entry in self.slides)
            raise AnnotationError(f"expected one tree for a slide named {stem!r}, found {len(found)} among {names}")
        return found[0]

    def case(self, node_id: str, slide: "Slide", budget: int | None = None) -> tuple[Query, Target]:
        """Turn a node into what is asked and what is true.

        Args:
            node_id: Which node.
            slide: The open slide; its entry is found by `entry`.
            budget: ROIs that may be looked at; None is the protocol's base budget at the node's magnification.

        Raises:
            AnnotationError: If there is no such node, or the annotation does not fit the slide.
        """
        entry = self.entry(slide.path)
        node = entry.node(node_id)
        _refuse(misfits(entry, slide), self._path)
        granted = budget_for(node.magnification, BUDGETS["base"]) if budget is None else budget
        return entry.pose(node, slide, granted)


def load_tree(path: str | Path) -> Tree:
    """Read a file of diagnostic trees and check every rule that needs no slide.

    Raises:
        AnnotationError: With one sentence a line for every rule that is broken: file, slide, node and reason.
    """
    document = _read_json(Path(path))
    if document.get("format") != TREE_FORMAT:
        raise AnnotationError(f"{path}: format must be {TREE_FORMAT!r}, got {shown(document.get('format'))}")
    try:
        tree = Tree.model_validate(document)
    except ValidationError as error:
        lines = [_named(document, *fault) for fault in faults(error, Tree)]
        raise AnnotationError("\n".join(f"{path}: {line}" for line in lines)) from error
    _refuse(_broken_rules(tree), path)
    tree._path = str(path)
    return tree


def _refuse(broken: Iterable[str], path: str | Path) -> None:
    if lines := [f"{path}: {line}" for line in broken]:
        raise AnnotationError("\n".join(lines))


def _read_json(path: Path) -> dict[str, Any]:
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise AnnotationError(f"{path}: cannot be read: {error.strerror or error}") from error
    except (ValueError, RecursionError) as error:
        raise AnnotationError(f"{path}: is not JSON: {error}") from error
    if not isinstance(document, dict):
        raise AnnotationError(f"{path}: expected an object with format and slides, got {shown(document)}")
    return document


def _named(document: dict[str, Any], place: Place, text: str) -> str:
    """Return a sentence on the value at a place, under the names of its slide and node where they have one."""
    named, rest = [], place
    for depth, what, key in ((2, "slide", "slide"), (4, "node", "id")):
        if len(place) >= depth and place[depth - 2] in ("slides", "nodes"):
            entry = value_at(document, place[:depth])
            if isinstance(entry, dict) and isinstance(entry.get(key), str):
                named.append(f"{what} {entry[key]!r}")
                rest = place[depth:]
    return ": ".join(part for part in (", ".join(named), dotted(rest), text) if part)


def _broken_rules(tree: Tree) -> Iterator[str]:
    """Yield what is wrong between the nodes of each slide, in the file's order."""
    stems: set[str] = set()
    for entry in tree.slides:
        slide, stem = f"slide {entry.slide!r}", PurePath(entry.slide).stem
        if stem in stems:
            yield f"{slide}: a second entry for {stem!r}; entries are told apart by the stem of their name"
        stems.add(stem)
        by_id: dict[str, Node] = {}
        for node in entry.nodes:
            if by_id.setdefault(node.id, node) is not node:
                yield f"{slide}, node {node.id!r}: the id is used more than once in this slide"
        for node in entry.nodes:
            yield from (f"{slide}, node {node.id!r}: {text}" for text in _broken_parent(node, by_id))
        for number, route in enumerate(entry.paths):
            if text := _broken_route(route, by_id):
                yield f"{slide}: paths.{number}: {text}"


def _broken_parent(node: Node, by_id: dict[str, Node]) -> Iterator[str]:
    step = MAGNIFICATIONS.index(node.magnification)
    if step == 0:
        if node.parent is not None:
            yield f"a 2.5x node has no parent, got {node.parent!r}"
        return
    needs = f"a {node.magnification:g}x node needs a parent at {MAGNIFICATIONS[step - 1]:g}x"
    if node.parent is None:
        yield needs
    elif (parent := by_id.get(node.parent)) is None:
        yield f"its parent {node.parent!r} is not in this slide"
    else:
        if parent.magnification != MAGNIFICATIONS[step - 1]:
            yield f"{needs}, but {parent.id!r} is at {parent.magnification:g}x"
        if not parent.box.holds_point(node.box.centre):
            box, centre = shown(parent.box.as_list()), shown(list(node.box.centre))
            yield f"its centre {centre} lies outside the box {box} of its parent {parent.id!r}"


def _broken_route(route: Route, by_id: dict[str, Node]) -> str | None:
    if unknown := [name for name in route.nodes if name not in by_id]:
        return f"there is no node {', '.join(map(repr, unknown))} in this slide"
    first, last = by_id[route.nodes[0]], route.nodes[-1]
    if first.magnification != MAGNIFICATIONS[0]:
        return f"a path starts at a 2.5x node, but {first.id!r} is at {first.magnification:g}x"
    for upper, lower in itertools.pairwise(route.nodes):
        if by_id[lower].parent != upper:
            return f"{upper!r} is not the parent of {lower!r}"
    children = [node.id for node in by_id.values() if node.parent == last]
    return f"a path ends at a leaf, but {last!r} is the parent of {', '.join(children)}" if children else None


def misfits(entry: TreeSlide, slide: "Slide") -> list[str]:
    """Return where a tree does not fit an open slide: another scale, a box beyond the plane, a centre off the scan."""
    found = []
    if entry.mpp is not None and slide.has_mpp:
        mpp_x, mpp_y = slide.mpp_um
        if any(abs(mpp / entry.mpp - 1) > MPP_TOLERANCE for mpp in (mpp_x, mpp_y)):
            text = f"was annotated at {entry.mpp:g} um per pixel, but {slide.path} has {mpp_x:g} x {mpp_y:g}"
            found.append(f"slide {entry.slide!r}: {text}")
    for node in entry.nodes:
        box, named = node.box, f"slide {entry.slide!r}, node {node.id!r}"
        if box.x < 0 or box.y < 0 or box.right > slide.width or box.bottom > slide.height:
            text = f"its box {shown(box.as_list())} leaves the slide of {slide.width} x {slide.height} px"
            found.append(f"{named}: {text}")
        elif not slide.bounds.holds_point(box.centre):
            centre, area = shown(list(box.centre)), shown(slide.bounds.as_list())
            found.append(f"{named}: its centre {centre} lies outside the scanned area {area}")
    return found
