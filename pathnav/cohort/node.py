"""What a file of diagnostic trees is made of (`docs/tree-format.md`); rules between nodes are in `tree_faults.py`."""

import difflib
import math
from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PlainSerializer

from pathnav.cohort.complaints import shown
from pathnav.cohort.protocol import MAGNIFICATIONS
from pathnav.errors import AnnotationError
from pathnav.geometry import Box


def is_number(value: Any) -> bool:
    """Return whether a value is a JSON number: `true` and `"3"` are not."""
    return isinstance(value, int | float) and not isinstance(value, bool)


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


def _text(value: Any) -> Any:
    if isinstance(value, str) and not value.strip():
        raise ValueError("must not be empty")
    return value


Text = Annotated[str, BeforeValidator(_text)]
BoxField = Annotated[Box, BeforeValidator(_box), PlainSerializer(Box.as_list)]
Magnification = Annotated[float, BeforeValidator(_magnification)]


class Frozen(BaseModel):
    """A value object: unknown keys are errors, nothing changes after it is made."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", strict=True, allow_inf_nan=False, arbitrary_types_allowed=True
    )


class Node(Frozen):
    """One region that a pathologist described."""

    id: Text
    """Unique within the slide."""
    magnification: Magnification
    """2.5, 10 or 40."""
    box: BoxField
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
        """Return the node of an id.

        Raises:
            AnnotationError: If there is none, with the nearest ids.
        """
        nodes = {node.id: node for node in self.nodes}
        if node_id not in nodes:
            near = difflib.get_close_matches(node_id, nodes, n=5, cutoff=0.4) or list(nodes)[:20]
            raise AnnotationError(f"slide {self.slide!r} has no node {node_id!r}; it has {', '.join(near)}")
        return nodes[node_id]
