"""Annotation files of other tools as closed outlines in level-0 pixels; their kind is told by what they hold.

A reader yields a `Drawing` for each closed outline, and the name of its kind for each object that has no area.
"""

import json
import math
from array import array
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, BinaryIO, NoReturn
from xml.parsers import expat

import numpy as np

from pathnav.errors import AnnotationError
from pathnav.geometry import Floats
from pathnav.settings import is_number, shown

KEPT_FORMAT = "pathnav-kept-tiles-1"
"""The `format` of the GeoJSON in which a search of pathnav writes the tiles that it kept, if any."""
MOST_BYTES = 1 << 29
"""JSON takes about eight times its size in memory: 4 GB for the largest file that is read."""

_UNCLASSIFIED = "unclassified"
_MAX_COORDINATE = 2.0**40
"""No slide is a trillion pixels wide, and beyond it areas lose their last digits."""
_KNOWN = "QuPath GeoJSON, ASAP XML, ImageScope XML, DSA JSON or NCRF JSON"
_WITHOUT_AREA = ("Point", "MultiPoint", "LineString", "MultiLineString")
_ELLIPSE_POINTS = 128
_CHUNK_BYTES = 1 << 16


class AnnotationFormat(StrEnum):
    """The kinds of files that can be read."""

    GEOJSON = "geojson"
    ASAP = "asap-xml"
    IMAGESCOPE = "imagescope-xml"
    DSA = "dsa-json"
    NCRF = "ncrf-json"


class Role(StrEnum):
    """What a drawing does to the tumour: a hole is cut out of its own class, an exclusion out of every class."""

    REGION = "region"
    HOLE = "hole"
    EXCLUSION = "exclusion"


Rings = tuple[Floats, ...]
"""A polygon: the outer ring, then its holes; each float64, shape (n, 2), rows (x, y); closed or not, valid or not."""
Attributes = Mapping[str, str]
Tag = tuple[str, Attributes | None]
"""The name of an XML element with its attributes where it starts, with None where it ends."""


@dataclass(frozen=True, slots=True)
class Drawing:
    """One object of a file: its class, the polygons it covers, and what they do to the tumour."""

    name: str
    polygons: tuple[Rings, ...]
    role: Role


@dataclass(frozen=True, slots=True)
class Drawings:
    """All objects of a file, in its order."""

    file_format: AnnotationFormat
    drawings: tuple[Drawing, ...]
    ignored: Mapping[str, int]
    """How many objects of each kind have no area: points, lines, arrows."""


def read_drawings(path: str | Path) -> Drawings:
    """Read all drawings of an annotation file.

    Raises:
        AnnotationError: If it cannot be read, is of no known kind, breaks the rules of its kind, or draws nothing.
    """
    try:
        with Path(path).open("rb") as stream:
            return _read(stream)
    except OSError as error:
        raise AnnotationError(f"{path}: cannot be read: {error.strerror or error}") from error
    except AnnotationError as error:
        raise AnnotationError(f"{path}: {error}") from error
    except RecursionError as error:
        raise AnnotationError(f"{path}: is nested more deeply than any annotation") from error


def _read(stream: BinaryIO) -> Drawings:
    file_bytes = stream.seek(0, 2)
    if file_bytes > MOST_BYTES:
        at_most = f"at most {MOST_BYTES >> 20} MiB are read; export only the regions, without cells"
        raise AnnotationError(f"has {file_bytes / 2**20:,.0f} MiB, and {at_most}")
    stream.seek(0)
    is_xml = stream.read(256).lstrip(b"\xef\xbb\xbf\xff\xfe\0 \t\r\n").startswith(b"<")  # marks of UTF-8 and UTF-16
    stream.seek(0)
    source, kind = _xml_kind(stream) if is_xml else _json_kind(stream)
    drawings: list[Drawing] = []
    ignored: Counter[str] = Counter()
    for found in _READERS[kind](source):
        if isinstance(found, Drawing):
            drawings.append(found)
        else:
            ignored[found] += 1
    if not drawings and not (isinstance(source, dict) and source.get("format") == KEPT_FORMAT):
        only = ", ".join(f"{count} {name}" for name, count in sorted(ignored.items()))
        raise AnnotationError("holds no closed region" + (f", only {only}" if only else ""))
    return Drawings(kind, tuple(drawings), dict(sorted(ignored.items())))


def _xml_kind(stream: BinaryIO) -> tuple[Iterator[Tag], AnnotationFormat]:
    tags = _xml_tags(stream)
    root, _ = next(tags)  # a file without any element is not XML
    kinds = {"ASAP_Annotations": AnnotationFormat.ASAP, "Annotations": AnnotationFormat.IMAGESCOPE}
    if root not in kinds:
        raise AnnotationError(f"expected {_KNOWN}, got XML whose root is <{root}>")
    return tags, kinds[root]


def _json_kind(stream: BinaryIO) -> tuple[Any, AnnotationFormat]:
    try:
        document = json.loads(stream.read())
    except ValueError as error:
        raise AnnotationError(f"is neither JSON nor XML: {error}") from error
    outer = document if isinstance(document, list) else [document]
    objects = outer if all(isinstance(one, dict) for one in outer) else []
    types = {str(one.get("type")) for one in objects}
    if document == [] or types == {"Feature"} or (types == {"FeatureCollection"} and isinstance(document, dict)):
        return document, AnnotationFormat.GEOJSON
    if isinstance(document, dict) and ("positive" in document or "negative" in document):
        return document, AnnotationFormat.NCRF
    if objects and all("annotation" in one or "elements" in one for one in objects):
        return document, AnnotationFormat.DSA
    if types and types <= {*_WITHOUT_AREA, "Polygon", "MultiPolygon", "GeometryCollection"}:
        raise AnnotationError(
            f"expected a GeoJSON Feature or FeatureCollection, or a list of Features, got a bare {objects[0]['type']}: "
            'put it into {"type": "Feature", "properties": {"classification": {"name": CLASS}}, "geometry": ...}'
        )
    raise AnnotationError(
        f"expected {_KNOWN}, got JSON with {shown(list(document)[:5] if isinstance(document, dict) else document)}"
    )


def read_geojson(document: Any) -> Iterator[Drawing | str]:
    """Read GeoJSON as QuPath writes it: a FeatureCollection, a bare list of features, or one feature."""
    is_collection = isinstance(document, dict) and document["type"] == "FeatureCollection"
    features = document.get("features") if is_collection else document if isinstance(document, list) else [document]
    if not isinstance(features, list):
        raise AnnotationError(f"features must be a list, got {shown(features)}")
    for index, feature in enumerate(features):
        if not isinstance(feature, dict):
            raise AnnotationError(f"features.{index} must be a Feature, got {shown(feature)}")
        polygons: list[Rings] = []
        for found in _geometry(feature.get("geometry"), f"features.{index}.geometry"):
            if isinstance(found, str):
                yield found
            else:
                polygons.append(found)
        if polygons:
            properties = feature.get("properties")
            values = properties if isinstance(properties, dict) else {}
            names = (_named(values.get(key)) for key in ("classification", "class", "label", "name"))
            name = next((name for name in names if name is not None), _UNCLASSIFIED)
            yield Drawing(name, tuple(polygons), _role(name))


def _geometry(geometry: Any, place: str) -> Iterator[Rings | str]:
    """Yield the polygons of a geometry, and the kind of each part without an area."""
    if geometry is None:  # GeoJSON allows a feature without a place
        yield "no geometry"
        return
    kind = geometry.get("type") if isinstance(geometry, dict) else None
    if kind in _WITHOUT_AREA:
        yield str(kind).lower()
    elif kind == "GeometryCollection":
        for index, part in enumerate(_listed(geometry.get("geometries"), f"{place}.geometries")):
            yield from _geometry(part, f"{place}.geometries.{index}")
    elif kind in ("Polygon", "MultiPolygon"):
        coordinates = geometry.get("coordinates")
        for rings in _listed(coordinates if kind == "MultiPolygon" else [coordinates], f"{place}.coordinates"):
            yield tuple(_ring(points, f"{place}.coordinates") for points in _listed(rings, f"{place}.coordinates"))
    else:
        raise AnnotationError(f"{place} must be a GeoJSON geometry, got {shown(geometry)}")


def _named(value: Any) -> str | None:
    """Return the name in `"tumor"`, `{"name": "tumor"}`, `{"names": ["tumor", "CD3"]}` or `{"value": "tumor"}`."""
    if isinstance(value, dict):
        names = value.get("names")
        if isinstance(names, list) and names:
            return ": ".join(map(str, names))  # as QuPath shows a derived class
        return _named(value.get("name")) or _named(value.get("value"))
    return value.strip() or None if isinstance(value, str) else None


def read_dsa(document: Any) -> Iterator[Drawing | str]:
    """Read annotations of the Digital Slide Archive (HistomicsUI, girder large_image), in the server's envelope or not.

    The group of an element is its class, else its label, else the name of its annotation.
    """
    for number, envelope in enumerate(document if isinstance(document, list) else [document]):
        annotation = envelope.get("annotation", envelope)
        elements = annotation.get("elements", []) if isinstance(annotation, dict) else None
        if not isinstance(elements, list):
            raise AnnotationError(f"{number}: expected an annotation with a list of elements, got {shown(annotation)}")
        title = _named(annotation) or _UNCLASSIFIED
        for index, element in enumerate(elements):
            place = f"{number}.elements.{index}"
            if not isinstance(element, dict):
                raise AnnotationError(f"{place} must be an object, got {shown(element)}")
            rings = _element_rings(element, place)
            if rings is None:
                kind = str(element.get("type"))
                yield "open polyline" if kind == "polyline" else kind
            else:
                name = _named(element.get("group")) or _named(element.get("label")) or title
                yield Drawing(name, (rings,), _role(name))


def _element_rings(element: dict[str, Any], place: str) -> Rings | None:
    """Return what an element encloses, None where it is of a kind that encloses nothing."""

    def number(key: str, least: float = 0.0) -> float:
        value: Any = element.get(key)
        if not (is_number(value) and least <= value <= _MAX_COORDINATE):  # not-a-number is refused, too
            raise AnnotationError(f"{place}.{key} must be a finite number, at least {least:g}, got {shown(value)}")
        return float(value)

    kind = element.get("type")
    if kind == "polyline" and element.get("closed", True):
        holes = _listed(element.get("holes") or [], f"{place}.holes")
        return tuple(_ring(points, place) for points in (element.get("points"), *holes))
    if kind not in ("rectangle", "rectanglegrid", "ellipse", "circle"):
        return None
    centre = _ring([element.get("center")], f"{place}.center")
    if kind == "circle":
        return (_shape(True, centre, 2 * number("radius"), 2 * number("radius")),)
    # large_image turns from +x towards +y, which looks clockwise on a slide
    rotation = number("rotation", -_MAX_COORDINATE) if "rotation" in element else 0.0
    return (_shape(kind == "ellipse", centre, number("width"), number("height"), rotation),)


def read_ncrf(document: Any) -> Iterator[Drawing | str]:
    """Read CAMELYON16 in the JSON of NCRF: class `positive`, with what is negative excluded.

    The class is there even where its list is empty: so these files say that a slide has no tumour.
    """
    yield Drawing("positive", (), Role.REGION)
    for name, role in (("positive", Role.REGION), ("negative", Role.EXCLUSION)):
        for index, outline in enumerate(_listed(document.get(name, []), name)):
            vertices = outline.get("vertices") if isinstance(outline, dict) else None
            if not isinstance(vertices, list):
                raise AnnotationError(f"{name}.{index} must be an object with a list of vertices, got {shown(outline)}")
            yield Drawing(name, ((_ring(vertices, f"{name}.{index}.vertices"),),), role)


def read_asap(tags: Iterator[Tag]) -> Iterator[Drawing | str]:
    """Read XML of ASAP (Automated Slide Analysis Platform; CAMELYON16 and 17, TIGER); groups are the classes."""
    drawn: list[tuple[str, Attributes, array[float]]] = []
    parents: dict[str, str] = {}
    for name, attributes in tags:
        if attributes is None:
            continue
        if name == "Annotation":
            called = attributes.get("Name", "")  # may be empty or stand twice
            place = f"annotation no. {len(drawn) + 1}" + (f" ({called!r})" if called else "")
            drawn.append((place, attributes, array("d")))
        elif name == "Coordinate" and drawn:
            place, _, rows = drawn[-1]
            order = _number(attributes, "Order", place) if "Order" in attributes else len(rows) / 3
            rows.extend((order, _number(attributes, "X", place), _number(attributes, "Y", place)))
        elif name == "Group":
            parents[attributes.get("Name", "")] = attributes.get("PartOfGroup", "None")
    for place, attributes, rows in drawn:
        kind = attributes.get("Type", "Polygon")
        if kind in ("Polygon", "Spline", "Rectangle"):
            points = np.array(rows).reshape(-1, 3)
            outline = _ring(points[np.argsort(points[:, 0], kind="stable"), 1:], place)
            group = attributes.get("PartOfGroup", "None")
            yield Drawing(group, ((outline,),), _group_role(group, parents))
        else:
            yield kind.lower()


def _group_role(group: str, parents: Mapping[str, str]) -> Role:
    """Return the role of a group: an exclusion if it or a group that it lies in is one."""
    seen: set[str] = set()
    while group not in seen:
        if group == "_2" or _role(group) == Role.EXCLUSION:  # CAMELYON16: _0 and _1 are tumour, _2 is none
            return Role.EXCLUSION
        seen.add(group)
        group = parents.get(group, group)
    return Role.REGION


@dataclass
class _Layer:
    """A layer of an ImageScope file, and its regions: where each is in the file, its attributes, its vertices."""

    attributes: Attributes
    named: dict[str, str] = field(default_factory=dict)
    regions: list[tuple[str, Attributes, "array[float]"]] = field(default_factory=list)

    @property
    def name(self) -> str:
        """The layer's own name, else what one of its attributes says, else its number."""
        candidates = [self.attributes.get("Name", "").strip(), self.named.get("Description", "")]
        candidates += [*self.named.values(), *self.named]
        chosen = next((text for text in candidates if text and text != "Description"), None)
        return chosen or f"layer {self.attributes.get('Id', '')}".rstrip()


def read_imagescope(tags: Iterator[Tag]) -> Iterator[Drawing | str]:
    """Read Aperio ImageScope XML: layers are the classes, negative regions are holes in them.

    Vertices are level-0 pixels; the file's `MicronsPerPixel`, at times 0, is not needed.
    """
    for layer in _layers(tags):
        for place, attributes, rows in layer.regions:
            kind = attributes.get("Type", "0")
            if kind in ("0", "1", "2"):
                role = Role.HOLE if attributes.get("NegativeROA", "0") == "1" else _role(layer.name)
                yield Drawing(layer.name, ((_region_ring(kind, rows, place),),), role)
            else:
                yield {"3": "arrow", "4": "ruler"}.get(kind, f"region of type {kind}")


def _layers(tags: Iterator[Tag]) -> list[_Layer]:
    layers: list[_Layer] = []
    inside_region = False
    for name, attributes in tags:
        if name == "Region":
            inside_region = attributes is not None
        if attributes is None:
            continue
        if name == "Annotation":
            layers.append(_Layer(attributes))
        elif name == "Region" and layers:
            layer, regions = layers[-1].attributes, layers[-1].regions
            ids = layer.get("Id") or f"no. {len(layers)}", attributes.get("Id") or f"no. {len(regions) + 1}"
            regions.append((f"layer {ids[0]}, region {ids[1]}", attributes, array("d")))
        elif name == "Vertex" and inside_region and layers and layers[-1].regions:
            place, _, rows = layers[-1].regions[-1]
            rows.extend((_number(attributes, "X", place), _number(attributes, "Y", place)))
        elif name == "Attribute" and not inside_region and layers:
            layers[-1].named[attributes.get("Name", "").strip()] = attributes.get("Value", "").strip()
    return layers


def _region_ring(kind: str, rows: "array[float]", place: str) -> Floats:
    """Return the ring of a region of type 0; a rectangle (1) or an ellipse (2) may be given by two opposite corners."""
    points = _ring(np.array(rows).reshape(-1, 2), place)
    if kind == "0" or len(points) < 2 or (kind == "1" and len(points) > 2):
        return points
    low, high = points.min(axis=0), points.max(axis=0)
    return _shape(kind == "2", low + (high - low) / 2, *(high - low))


_READERS: Mapping[AnnotationFormat, Callable[[Any], Iterator[Drawing | str]]] = {
    AnnotationFormat.GEOJSON: read_geojson,
    AnnotationFormat.ASAP: read_asap,
    AnnotationFormat.IMAGESCOPE: read_imagescope,
    AnnotationFormat.DSA: read_dsa,
    AnnotationFormat.NCRF: read_ncrf,
}


def _xml_tags(stream: BinaryIO) -> Iterator[Tag]:
    """Yield where each element starts and ends; nothing is kept, so that a vertex costs its numbers and no more.

    Every way to define or fetch an entity stands in a document type declaration: refusing that refuses all of them.
    """
    found: list[Tag] = []

    def refuse(*_: object) -> NoReturn:
        raise AnnotationError("declares a document type (<!DOCTYPE ...>), which no annotation needs: refused as unsafe")

    parser = expat.ParserCreate()
    parser.StartElementHandler = lambda name, attributes: found.append((name, attributes))
    parser.EndElementHandler = lambda name: found.append((name, None))
    parser.StartDoctypeDeclHandler = refuse
    more = True
    while more:
        chunk = stream.read(_CHUNK_BYTES)
        more = bool(chunk)
        try:
            parser.Parse(chunk, not more)
        except (expat.ExpatError, LookupError, ValueError) as error:  # the last two: an unknown encoding
            raise AnnotationError(f"is not XML that can be read: {error}") from error
        yield from found
        found.clear()


def _number(attributes: Attributes, name: str, place: str) -> float:
    """Return an attribute's number; some locales write a comma for the point."""
    text = attributes.get(name)
    try:
        return float((text or "").replace(",", "."))
    except ValueError:
        got = "and is missing" if text is None else f"got {shown(text)}"
        raise AnnotationError(f"{place}: {name} must be a number, {got}") from None


def _listed(value: Any, place: str) -> list[Any]:
    if not isinstance(value, list):
        raise AnnotationError(f"{place} must be a list, got {shown(value)}")
    return value


def _role(name: str) -> Role:
    """Return the role that the name of a class alone gives: in files of every kind an `Exclusion` is not counted."""
    return Role.EXCLUSION if name.casefold() == "exclusion" else Role.REGION


def _ring(points: Any, place: str) -> Floats:
    """Return float64, shape (n, 2), of a list of points [x, y, ...] that a slide can hold."""
    try:
        rows = np.asarray(points, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        rows = np.zeros(1)
    if rows.ndim and not len(rows):
        return np.empty((0, 2))
    if rows.ndim != 2 or rows.shape[1] < 2:
        raise AnnotationError(f"{place}: expected a list of points [x, y], got {shown(points)}")
    flat = rows[:, :2]
    wrong = np.flatnonzero(~(np.abs(flat) <= _MAX_COORDINATE).all(axis=1))  # also not-a-number
    if len(wrong):
        raise AnnotationError(f"{place}: point {wrong[0]} must be two finite numbers, got {flat[wrong[0]].tolist()}")
    return flat


def _shape(is_ellipse: bool, centre: Floats, width: float, height: float, rotation: float = 0.0) -> Floats:
    """Return a ring of an ellipse's exact area, or of a rectangle, turned by radians from +x towards +y."""
    if is_ellipse:
        angles = np.linspace(0, 2 * np.pi, _ELLIPSE_POINTS, endpoint=False)
        step = 2 * math.pi / _ELLIPSE_POINTS
        outward = math.sqrt(step / math.sin(step))  # an inscribed polygon would be 0.04 % too small
        points = np.column_stack([np.cos(angles) * width, np.sin(angles) * height]) / 2 * outward
    else:
        points = np.array([(-1, -1), (1, -1), (1, 1), (-1, 1)]) * (width / 2, height / 2)
    cos, sin = math.cos(rotation), math.sin(rotation)
    turned: Floats = points @ np.array([(cos, sin), (-sin, cos)]) + centre
    return turned
