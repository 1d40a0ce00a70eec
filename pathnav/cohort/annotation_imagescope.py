"""Aperio ImageScope XML: layers of regions in level-0 pixels; its `MicronsPerPixel`, at times 0, is not needed."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from pathnav.cohort.annotation_drawing import (
    AnnotationFormat,
    Drawing,
    Drawings,
    Role,
    ellipse_ring,
    named_role,
    rectangle_ring,
    ring,
)
from pathnav.cohort.annotation_xml import Tag, number
from pathnav.geometry import Box, Floats

ROOT = "Annotations"

_POLYGON, _RECTANGLE, _ELLIPSE = "0", "1", "2"
_KINDS_WITHOUT_AREA = {"3": "arrow", "4": "ruler"}


@dataclass
class _Region:
    number: int
    attributes: Mapping[str, str]
    rows: list[tuple[float, float]] = field(default_factory=list)

    @property
    def kind(self) -> str:
        return self.attributes.get("Type", _POLYGON)

    @property
    def is_negative(self) -> bool:
        return self.attributes.get("NegativeROA", "0") == "1"


@dataclass
class _Layer:
    number: int
    attributes: Mapping[str, str]
    named: list[Mapping[str, str]] = field(default_factory=list)
    regions: list[_Region] = field(default_factory=list)

    @property
    def name(self) -> str:
        """The layer's own name, else what one of its attributes says, else its number."""
        values = {one.get("Name", "").strip(): one.get("Value", "").strip() for one in self.named}
        candidates = [self.attributes.get("Name", "").strip(), values.get("Description", ""), *values.values(), *values]
        chosen = next((text for text in candidates if text and text != "Description"), None)
        return chosen or f"layer {self.attributes.get('Id', '')}".rstrip()


def read_imagescope(tags: Iterable[Tag]) -> Drawings:
    """Read the regions of an ImageScope file; the layer of each is its class, negative regions are holes in it.

    Raises:
        AnnotationError: If a coordinate is not a number.
    """
    drawings: list[Drawing] = []
    ignored: Counter[str] = Counter()
    for layer in _layers(tags):
        for region in layer.regions:
            if region.kind in (_POLYGON, _RECTANGLE, _ELLIPSE):
                role = Role.HOLE if region.is_negative else named_role(layer.name)
                drawings.append(Drawing(layer.name, ((_outline(region, layer),),), role))
            else:
                ignored[_KINDS_WITHOUT_AREA.get(region.kind, f"region of type {region.kind}")] += 1
    return Drawings(AnnotationFormat.IMAGESCOPE, tuple(drawings), dict(ignored))


def _layers(tags: Iterable[Tag]) -> list[_Layer]:
    layers: list[_Layer] = []
    inside_region = False
    for name, attributes in tags:
        if name == "Region":
            inside_region = attributes is not None
        if attributes is None:
            continue
        if name == "Annotation":
            layers.append(_Layer(len(layers) + 1, attributes))
        elif name == "Region" and layers:
            layers[-1].regions.append(_Region(len(layers[-1].regions) + 1, attributes))
        elif name == "Vertex" and inside_region and layers:
            place = _place(layers[-1].regions[-1], layers[-1])
            layers[-1].regions[-1].rows.append((number(attributes, "X", place), number(attributes, "Y", place)))
        elif name == "Attribute" and layers and not inside_region:
            layers[-1].named.append(attributes)
    return layers


def _place(region: _Region, layer: _Layer) -> str:
    """Return which region of the file it is, by the ids, else by the numbers from 1."""
    places = (("layer", layer), ("region", region))
    return ", ".join(f"{what} {one.attributes.get('Id') or f'no. {one.number}'}" for what, one in places)


def _outline(region: _Region, layer: _Layer) -> Floats:
    """Return the ring of a region; rectangles and ellipses may be given by two opposite corners."""
    points = ring(region.rows, _place(region, layer))
    if region.kind == _POLYGON or len(points) < 2 or (region.kind == _RECTANGLE and len(points) > 2):
        return points
    (left, top), (right, bottom) = points.min(axis=0), points.max(axis=0)
    frame = Box.from_corners(left, top, right, bottom)
    make = rectangle_ring if region.kind == _RECTANGLE else ellipse_ring
    return make(frame.centre, frame.width, frame.height)
