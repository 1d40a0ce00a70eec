"""GeoJSON as QuPath writes it: a FeatureCollection, a bare list of features, or one feature."""

from collections import Counter
from typing import Any

from pathnav.cohort.annotation_drawing import (
    UNCLASSIFIED,
    AnnotationFormat,
    Drawing,
    Drawings,
    Rings,
    named_role,
    ring,
)
from pathnav.errors import AnnotationError
from pathnav.settings import shown

_NAMING_KEYS = ("classification", "class", "label", "name")
_WITHOUT_AREA = ("Point", "MultiPoint", "LineString", "MultiLineString")
_GEOMETRIES = (*_WITHOUT_AREA, "Polygon", "MultiPolygon", "GeometryCollection")

KEPT_FORMAT = "pathnav-kept-tiles-1"
"""The `format` of the GeoJSON in which a search of pathnav writes the tiles that it kept."""


def is_geojson(document: Any) -> bool:
    """Return whether a JSON document is GeoJSON, by its outermost objects."""
    if isinstance(document, list):
        return all(isinstance(one, dict) and one.get("type") == "Feature" for one in document)
    return isinstance(document, dict) and document.get("type") in ("FeatureCollection", "Feature")


def is_bare_geometry(document: Any) -> bool:
    """Return whether a JSON document is GeoJSON without a feature around it, which alone can have a class."""
    documents = document if isinstance(document, list) else [document]
    return bool(documents) and all(isinstance(one, dict) and one.get("type") in _GEOMETRIES for one in documents)


def read_geojson(document: Any) -> Drawings:
    """Read the polygons of a document for which `is_geojson` holds; the QuPath class of each is its class.

    Raises:
        AnnotationError: If a feature or a geometry is not what GeoJSON allows.
    """
    features, prefix = document, ""
    if isinstance(document, dict):
        is_collection = document["type"] == "FeatureCollection"
        features, prefix = (document.get("features"), "features.") if is_collection else ([document], "features.")
    if not isinstance(features, list):
        raise AnnotationError(f"features must be a list, got {shown(features)}")
    drawings: list[Drawing] = []
    ignored: Counter[str] = Counter()
    for index, feature in enumerate(features):
        place = f"{prefix}{index}"
        if not isinstance(feature, dict):
            raise AnnotationError(f"{place} must be a Feature, got {shown(feature)}")
        polygons, without_area = _polygons(feature.get("geometry"), f"{place}.geometry")
        ignored += without_area
        if polygons:
            name = _class_name(feature.get("properties"))
            drawings.append(Drawing(name, tuple(polygons), named_role(name)))
    is_kept_tiles = isinstance(document, dict) and document.get("format") == KEPT_FORMAT
    return Drawings(AnnotationFormat.GEOJSON, tuple(drawings), dict(ignored), is_kept_tiles=is_kept_tiles)


def _class_name(properties: Any) -> str:
    """Return the class of a feature: QuPath's classification, else what other tools name it by."""
    if isinstance(properties, dict):
        for key in _NAMING_KEYS:
            name = named(properties.get(key))
            if name is not None:
                return name
    return UNCLASSIFIED


def named(value: Any) -> str | None:
    """Return the name in `"tumor"`, `{"name": "tumor"}`, `{"names": ["tumor", "CD3"]}` or `{"value": "tumor"}`."""
    if isinstance(value, dict):
        names = value.get("names")
        if isinstance(names, list) and names:
            return ": ".join(map(str, names))  # as QuPath shows a derived class
        return named(value.get("name")) or named(value.get("value"))
    return value.strip() or None if isinstance(value, str) else None


def _polygons(geometry: Any, place: str) -> tuple[list[Rings], Counter[str]]:
    """Return the polygons of a geometry, and how many geometries of each kind without area it has."""
    if geometry is None:  # GeoJSON allows a feature without a place
        return [], Counter({"no geometry": 1})
    kind = geometry.get("type") if isinstance(geometry, dict) else None
    if kind in _WITHOUT_AREA:
        return [], Counter({str(kind).lower(): 1})
    if kind == "GeometryCollection":
        return _collected(geometry.get("geometries"), place)
    if kind not in ("Polygon", "MultiPolygon"):
        raise AnnotationError(f"{place} must be a GeoJSON geometry, got {shown(geometry)}")
    coordinates = geometry.get("coordinates")
    parts = coordinates if kind == "MultiPolygon" else [coordinates]
    if not isinstance(parts, list) or not all(isinstance(part, list) for part in parts):
        raise AnnotationError(f"{place}.coordinates must be lists of rings, got {shown(coordinates)}")
    return [tuple(ring(points, f"{place}.coordinates") for points in part) for part in parts], Counter()


def _collected(geometries: Any, place: str) -> tuple[list[Rings], Counter[str]]:
    if not isinstance(geometries, list):
        raise AnnotationError(f"{place}.geometries must be a list, got {shown(geometries)}")
    polygons: list[Rings] = []
    ignored: Counter[str] = Counter()
    for index, geometry in enumerate(geometries):
        inner, without_area = _polygons(geometry, f"{place}.geometries.{index}")
        polygons += inner
        ignored += without_area
    return polygons, ignored
