"""Annotation files that cannot be read: one sentence that names the file and says what is wrong."""

import json
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from pathnav.cohort.annotation_formats import MOST_BYTES, read_drawings
from pathnav.cohort.annotations import describe_annotation, load_annotation
from pathnav.errors import AnnotationError
from support.annotations import (
    asap,
    asap_annotation,
    feature,
    imagescope,
    imagescope_layer,
    imagescope_region,
    square,
    tumour,
    write_text,
)

BOMB = '<!DOCTYPE a [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;">]>'
FILE = '<!DOCTYPE a [<!ENTITY a SYSTEM "file:///etc/hostname">]>'
REMOTE = '<!DOCTYPE a SYSTEM "http://127.0.0.1:9/a.dtd">'
PARAMETER = '<!DOCTYPE a [<!ENTITY % a SYSTEM "file:///etc/hostname"> %a;]>'


def refusal(folder: Path, text: str) -> str:
    """Return the one sentence with which a file is refused, whether it is to be loaded or described."""
    path = write_text(folder, text)
    with pytest.raises(AnnotationError) as loaded:
        load_annotation(path, classes=["tumor"])
    with pytest.raises(AnnotationError) as described:
        describe_annotation(path)
    assert str(loaded.value) == str(described.value)
    assert str(loaded.value).startswith(f"{path}: ")
    assert "\n" not in str(loaded.value)
    return str(loaded.value)


@pytest.mark.parametrize(
    "prolog", [BOMB, FILE, REMOTE, PARAMETER, "<!DOCTYPE a>"], ids=["bomb", "file", "remote", "parameter", "bare"]
)
def test_xml_with_a_document_type_is_refused_before_anything_is_expanded(prolog: str, tmp_path: Path) -> None:
    text = f'<?xml version="1.0"?>{prolog}<ASAP_Annotations><Annotations>&a;</Annotations></ASAP_Annotations>'
    assert "<!DOCTYPE" in refusal(tmp_path, text)


def test_an_entity_that_nothing_defines_is_refused_and_a_predefined_one_is_read(tmp_path: Path) -> None:
    assert "undefined entity" in refusal(tmp_path, asap("&secret;"))
    found = tumour(tmp_path, asap(asap_annotation("a &lt; b &amp; &#x63;", square(0, 0, 1))))
    assert found.chosen == ("a < b & c",)


@pytest.mark.parametrize("encoding", ["utf-16", "utf-8-sig", "iso-8859-1", "windows-1252"])
def test_xml_may_come_in_another_encoding(encoding: str, tmp_path: Path) -> None:
    body = asap(asap_annotation("Tumör", square(0, 0, 1))).partition("?>")[2]
    path = tmp_path / "a.xml"
    path.write_bytes(f'<?xml version="1.0" encoding="{encoding.removesuffix("-sig")}"?>{body}'.encode(encoding))
    assert load_annotation(path, classes=["Tumör"]).area_px2 == 1


def layer(*points: Any) -> str:
    """Return an ImageScope file with one region."""
    return imagescope(imagescope_layer(1, imagescope_region(points)))


def vertices(*points: Any) -> str:
    """Return a GeoJSON file with one polygon."""
    return json.dumps(feature("tumor", points))


def element(kind: str, **values: Any) -> str:
    """Return a DSA file with one element."""
    return json.dumps({"elements": [{"type": kind, "center": [0, 0], **values}]})


GEOMETRY = feature("T", square(0, 0, 1))["geometry"]
BAD_POINT: Any = [("x", 1)]

REFUSED = {
    "empty": ("", "is neither JSON nor XML"),
    "JSON cut short": ('{"type": "FeatureCollection", "features": [', "is neither JSON nor XML"),
    "XML cut short": (asap()[:-20], "is not XML"),
    "only an XML prolog": ('<?xml version="1.0"?>', "no element found"),
    "unknown encoding": ('<?xml version="1.0" encoding="klingon"?><a/>', "is not XML"),
    "other XML": ("<svg/>", "<svg>"),
    "other JSON": ('{"shapes": [], "version": 1}', '["shapes", "version"]'),
    "bare geometry": (json.dumps(GEOMETRY), "bare Polygon: put it into"),
    "bare geometries": (json.dumps([GEOMETRY]), "bare Polygon: put it into"),
    "a number": ("3", "got JSON with 3"),
    "nested": ("[" * 100_000, "nested more deeply"),
    "no features": ('{"type": "FeatureCollection"}', "features must be a list, got null"),
    "feature is a list": ('{"type": "FeatureCollection", "features": [[]]}', "features.0 must be a Feature, got []"),
    "empty list": ("[]", "holds no closed region"),
    "points only": (json.dumps([feature("tumor", [1, 2], kind="Point")] * 3), "no closed region, only 3 point"),
    "strange geometry": (json.dumps(feature("tumor", [], kind="Curve")), "features.0.geometry must be"),
    "flat polygon": (json.dumps(feature("tumor", 1, 2)), "features.0.geometry.coordinates"),  # type: ignore[arg-type]
    "ragged points": (vertices([0, 0], [1], [2, 2]), "features.0.geometry.coordinates"),
    "text for a number": (vertices([0, 0], ["a", 1], [2, 2]), "expected a list of points"),
    "null for a number": (vertices([0, 0], [None, 1], [2, 2]), "point 1 must be two finite numbers"),
    "infinite": (vertices([0, 0], [1, 1], [float("inf"), 2]), "point 2 must be two finite numbers"),
    "a trillion pixels": (vertices([0, 0], [1, 1], [1e13, 2]), "point 2 must be two finite numbers"),
    "a huge whole number": (vertices([0, 0], [1, 1], [10**400, 2]), "expected a list of points"),
    "ASAP text": (asap(asap_annotation("T", BAD_POINT)), "annotation no. 1 ('a'): X must be a number, got \"x\""),
    "ASAP without Y": (
        asap(asap_annotation("T", [(1, 1)])).replace(" Y=", " Z="),
        "annotation no. 1 ('a'): Y must be a number, and is missing",
    ),
    "ASAP nameless": (
        asap(asap_annotation("T", square(0, 0, 1)), asap_annotation("T", BAD_POINT)).replace('"a"', '""'),
        "annotation no. 2: X",
    ),
    "ASAP infinite": (asap(asap_annotation("T", [(float("inf"), 1)])), "point 0 must be two finite numbers"),
    "ImageScope text": (layer(("1px", 2)), 'layer 1, region 1: X must be a number, got "1px"'),
    "ImageScope without ids": (layer((1, 2), ("x", 2)).replace('Id="1"', ""), "layer no. 1, region no. 1: X must be"),
    "ImageScope arrows": (imagescope(imagescope_layer(1, imagescope_region([(0, 0)], kind=3))), "only 1 arrow"),
    "DSA without elements": ('{"annotation": 3}', "list of elements, got 3"),
    "DSA element": ('{"elements": [3]}', "0.elements.0 must be an object, got 3"),
    "DSA holes": (element("polyline", points=[], holes=3), "0.elements.0.holes must be a list"),
    "DSA no centre": (element("circle", center=None, radius=3), "0.elements.0.center"),
    "DSA empty centre": (element("circle", center=[], radius=3), "0.elements.0.center"),
    "DSA infinite radius": (element("circle", radius=float("inf")), "0.elements.0.radius"),
    "DSA circle turned inside out": (element("circle", radius=-5), "0.elements.0.radius"),
    "DSA negative height": (element("rectangle", width=5, height=-0.5), "0.elements.0.height"),
    "NCRF list": ('{"positive": 3}', "positive must be a list, got 3"),
    "NCRF vertices": ('{"positive": [{"name": "a"}]}', "positive.0 must be an object with a list of vertices"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_file_that_cannot_be_read_is_refused_in_one_sentence(name: str, tmp_path: Path) -> None:
    text, says = REFUSED[name]
    assert says in refusal(tmp_path, text)


def test_a_missing_file_and_a_folder_are_refused(tmp_path: Path) -> None:
    for path, says in ((tmp_path / "none.json", "No such file"), (tmp_path, "Is a directory")):
        with pytest.raises(AnnotationError, match=says):
            load_annotation(path, classes=[])


def test_a_file_too_large_to_parse_is_refused_unread(tmp_path: Path) -> None:
    path = tmp_path / "large.json"
    with path.open("wb") as stream:
        stream.truncate(MOST_BYTES + 1)  # sparse: takes no room
    with pytest.raises(AnnotationError, match="at most 512 MiB are read"):
        load_annotation(path, classes=[])


def test_xml_is_read_in_a_small_part_of_the_memory_of_its_tree(tmp_path: Path) -> None:
    points = [(number % 1000, number // 1000) for number in range(20_000)]
    path = write_text(tmp_path, asap(asap_annotation("T", points)))
    tracemalloc.start()
    try:
        found = read_drawings(path)
        peak_bytes = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert len(found.drawings[0].polygons[0][0]) == 20_000
    assert peak_bytes / 20_000 < 250, "a tree of it takes 700 bytes a point"
