"""Files of diagnostic trees: where a pathologist found what, from the whole slide down to 40x.

The format is described in `docs/tree-format.md`.
"""

import json
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field, PrivateAttr, ValidationError

from pathnav.cohort.complaints import shown
from pathnav.cohort.node import Frozen, Node, Route, TreeSlide
from pathnav.cohort.posing import pose
from pathnav.cohort.protocol import BUDGETS, budget_for
from pathnav.cohort.query import Query, Target
from pathnav.cohort.tree_faults import Fault, faults_between_nodes, faults_of_shape, faults_on_slide, raise_faults
from pathnav.errors import AnnotationError

if TYPE_CHECKING:
    from pathnav.slide import Slide

__all__ = ["TREE_FORMAT", "Node", "Route", "Tree", "TreeSlide", "load_tree"]

TREE_FORMAT = "pathnav-tree-1"


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
        raise_faults(faults_on_slide(entry, slide), self._path)
        granted = budget_for(node.magnification, BUDGETS["base"]) if budget is None else budget
        return pose(entry, node, slide, granted)


def load_tree(path: str | Path) -> Tree:
    """Read a file of diagnostic trees and check every rule that needs no slide.

    Raises:
        AnnotationError: With one sentence a line for every rule that is broken: file, slide, node and reason.
    """
    document = _read_json(Path(path))
    if document.get("format") != TREE_FORMAT:
        raise AnnotationError(f"{path}: format must be {TREE_FORMAT!r}, got {shown(document.get('format'))}")
    raise_faults([*_faults_of_shape(document), *faults_between_nodes(document)], path)
    tree = Tree.model_validate(document)
    tree._path = str(path)
    return tree


def _faults_of_shape(document: dict[str, Any]) -> list[Fault]:
    try:
        Tree.model_validate(document)
    except ValidationError as error:
        return faults_of_shape(Tree, document, error)
    return []


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
