"""Small annotation files, written by tests."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pathnav.cohort.annotations import Annotation, load_annotation

Points = Sequence[Sequence[float]]


def square(x: float, y: float, side: float) -> list[list[float]]:
    """Return the corners of a square, not closed."""
    return [[x, y], [x + side, y], [x + side, y + side], [x, y + side]]


def feature(name: str | None, *rings: Points, kind: str = "Polygon") -> dict[str, Any]:
    """Return a feature as QuPath writes it."""
    coordinates: Any = list(rings) if kind == "Polygon" else rings[0]
    properties = {"objectType": "annotation", **({} if name is None else {"classification": {"name": name}})}
    return {"type": "Feature", "geometry": {"type": kind, "coordinates": coordinates}, "properties": properties}


def write_geojson(folder: Path, *features: dict[str, Any]) -> Path:
    """Write a FeatureCollection and return its path."""
    return write_text(folder, json.dumps({"type": "FeatureCollection", "features": features}))


def write_text(folder: Path, text: str) -> Path:
    """Write an annotation file, whose name tells nothing about what it is."""
    path = folder / "annotation.dat"
    path.write_text(text, encoding="utf-8")
    return path


def tumour(folder: Path, text: str, *classes: str, offset: tuple[float, float] = (0, 0)) -> Annotation:
    """Write an annotation file and load it."""
    return load_annotation(write_text(folder, text), classes=classes, offset=offset)


def counts(annotation: Annotation) -> dict[str, int]:
    """Return how many drawings each class has, exclusions left out."""
    return {row.name: row.count for row in annotation.classes}


def asap(*annotations: str, groups: str = "") -> str:
    """Return an ASAP file."""
    return (
        '<?xml version="1.0"?><ASAP_Annotations><Annotations>'
        f"{''.join(annotations)}</Annotations><AnnotationGroups>{groups}</AnnotationGroups></ASAP_Annotations>"
    )


def asap_annotation(group: str, points: Points, kind: str = "Polygon", order: Sequence[int] | None = None) -> str:
    """Return one annotation of an ASAP file; its points stand in the file as given, numbered by `order`."""
    numbers = range(len(points)) if order is None else order
    rows = "".join(
        f'<Coordinate Order="{number}" X="{x}" Y="{y}" />' for number, (x, y) in zip(numbers, points, strict=True)
    )
    return (
        f'<Annotation Name="a" Type="{kind}" PartOfGroup="{group}" Color="#F4FA58">'
        f"<Coordinates>{rows}</Coordinates></Annotation>"
    )


def imagescope(*layers: str, mpp: str = "0.25") -> str:
    """Return an ImageScope file."""
    return f'<Annotations MicronsPerPixel="{mpp}">{"".join(layers)}</Annotations>'


def imagescope_layer(number: int, *regions: str, name: str = "", attribute: str = "") -> str:
    """Return a layer; `attribute` is a whole <Attribute> element."""
    return (
        f'<Annotation Id="{number}" Name="{name}"><Attributes>{attribute}</Attributes>'
        f"<Regions>{''.join(regions)}</Regions></Annotation>"
    )


def imagescope_region(points: Points, kind: int = 0, negative: bool = False) -> str:
    """Return a region of a layer; an attribute of its own must not name the layer."""
    rows = "".join(f'<Vertex X="{x}" Y="{y}" Z="0"/>' for x, y in points)
    return (
        f'<Region Id="1" Type="{kind}" NegativeROA="{int(negative)}">'
        f'<Attributes><Attribute Name="Area" Id="9" Value="12"/></Attributes><Vertices>{rows}</Vertices></Region>'
    )
