"""Every format of tumour annotations, by small files whose areas can be done in the head, and by real ones."""

import json
import math
from pathlib import Path
from typing import Any

import pytest
import shapely
from PIL import Image, ImageDraw

from pathnav.cohort.annotation_formats import AnnotationFormat
from pathnav.cohort.annotations import describe_annotation, load_annotation
from support.annotations import (
    asap,
    asap_annotation,
    counts,
    feature,
    imagescope,
    imagescope_layer,
    imagescope_region,
    square,
    tumour,
)

CONTAINERS = {
    "collection": lambda features: {"type": "FeatureCollection", "features": features},
    "bare list": lambda features: features,
    "one feature": lambda features: features[0],
}


@pytest.mark.parametrize("container", CONTAINERS)
def test_geojson_comes_in_three_containers(container: str, tmp_path: Path) -> None:
    document = CONTAINERS[container]([feature("tumor", square(10, 20, 30))])
    found = tumour(tmp_path, json.dumps(document), "tumor")
    assert found.file_format == AnnotationFormat.GEOJSON
    assert found.region.bounds == (10, 20, 40, 50)
    assert found.area_px2 == 900


def test_holes_of_polygons_and_multi_polygons_are_no_tumour(tmp_path: Path) -> None:
    two = [[square(0, 0, 10), square(2, 2, 2)], [square(100, 0, 10), square(102, 2, 3)]]
    features = [feature("tumor", two, kind="MultiPolygon"), feature("tumor", square(0, 50, 10), square(1, 51, 1))]
    found = tumour(tmp_path, json.dumps(features), "tumor")
    assert found.area_px2 == (100 - 4) + (100 - 9) + (100 - 1)
    assert counts(found) == {"tumor": 2}


@pytest.mark.parametrize(
    ("properties", "name"),
    [
        ({"classification": {"name": "Tumor", "colorRGB": -1}, "name": "left"}, "Tumor"),
        ({"classification": {"names": ["Tumor", "CD3"]}}, "Tumor: CD3"),
        ({"classification": "Tumor"}, "Tumor"),
        ({"name": "UT", "color": [255, 0, 0]}, "UT"),
        ({"label": {"value": "mostly_tumor"}}, "mostly_tumor"),
        ({"name": "  "}, "unclassified"),
        ({}, "unclassified"),
        (None, "unclassified"),
    ],
)
def test_a_feature_is_of_its_classification_else_of_its_name(properties: Any, name: str, tmp_path: Path) -> None:
    one = {**feature(None, square(0, 0, 10)), "properties": properties}
    assert tumour(tmp_path, json.dumps(one)).chosen == (name,)


def test_points_lines_and_empty_features_are_counted_and_left_out(tmp_path: Path) -> None:
    features = [
        feature("tumor", square(0, 0, 10)),
        feature("tumor", [1, 2], kind="Point"),
        feature("tumor", [[1, 2], [3, 4]], kind="LineString"),
        feature("tumor", [[1, 2], [3, 4]], kind="MultiPoint"),
        {"type": "Feature", "geometry": None, "properties": {}},
    ]
    found = tumour(tmp_path, json.dumps(features), "tumor")
    assert found.ignored == {"point": 1, "linestring": 1, "multipoint": 1, "no geometry": 1}
    assert counts(found) == {"tumor": 1}


def test_a_geometry_collection_counts_with_its_polygons(tmp_path: Path) -> None:
    inner = [feature("x", square(0, 0, 10))["geometry"], {"type": "Point", "coordinates": [5, 5]}]
    one = {**feature("tumor", []), "geometry": {"type": "GeometryCollection", "geometries": inner}}
    found = tumour(tmp_path, json.dumps(one), "tumor")
    assert (found.area_px2, found.ignored) == (100, {"point": 1})


def test_a_third_coordinate_and_a_byte_order_mark_do_no_harm(tmp_path: Path) -> None:
    points = [[x, y, 0.0] for x, y in square(0, 0, 10)]
    assert tumour(tmp_path, "\ufeff" + json.dumps(feature("tumor", points)), "tumor").area_px2 == 100


def test_asap_points_are_sorted_by_their_order(tmp_path: Path) -> None:
    points = [(0, 0), (10, 10), (10, 0), (0, 10)]
    order = [0, 9, 2, 10]  # as texts, 10 would come before 2 and 9
    found = tumour(tmp_path, asap(asap_annotation("Tumor", points, order=order)), "Tumor")
    assert (found.area_px2, found.repaired) == (100, 0)


def test_asap_coordinates_may_have_decimal_commas(tmp_path: Path) -> None:
    points = [("0,5", "0,5"), ("10,5", "0,5"), ("10,5", "10,5"), ("0,5", "10,5")]
    found = tumour(tmp_path, asap(asap_annotation("Tumor", points)), "Tumor")  # type: ignore[arg-type]
    assert found.file_format == AnnotationFormat.ASAP
    assert found.region.bounds == (0.5, 0.5, 10.5, 10.5)


@pytest.mark.parametrize("group", ["_2", "Exclusion", "exclusion"])
def test_an_exclusion_group_of_asap_is_cut_out_of_every_class(group: str, tmp_path: Path) -> None:
    parts = [("_0", square(0, 0, 10)), ("_1", square(20, 0, 10)), (group, [[5, 0], [25, 0], [25, 10], [5, 10]])]
    found = tumour(tmp_path, asap(*(asap_annotation(*part) for part in parts)), "_0", "_1")
    assert found.area_px2 == 50 + 50
    assert counts(found) == {"_0": 1, "_1": 1}
    assert [(row.name, row.count) for row in found.exclusions] == [(group, 1)]


def test_a_group_inside_an_exclusion_group_is_excluded(tmp_path: Path) -> None:
    groups = (
        '<Group Name="Exclusion" PartOfGroup="None"/><Group Name="fold" PartOfGroup="Exclusion"/>'
        '<Group Name="a" PartOfGroup="b"/><Group Name="b" PartOfGroup="a"/>'
    )
    drawn = [asap_annotation("a", square(0, 0, 10)), asap_annotation("fold", square(0, 0, 5))]
    assert tumour(tmp_path, asap(*drawn, groups=groups), "a").area_px2 == 75


def test_asap_dots_and_point_sets_are_ignored_and_splines_and_rectangles_are_closed(tmp_path: Path) -> None:
    kinds = ["Spline", "Rectangle", "Dot", "PointSet", "Measurement"]
    drawn = [asap_annotation("Tumor", square(20 * n, 0, 10), kind) for n, kind in enumerate(kinds)]
    found = tumour(tmp_path, asap(*drawn), "Tumor")
    assert found.area_px2 == 200
    assert found.ignored == {"dot": 1, "pointset": 1, "measurement": 1}


@pytest.mark.parametrize("mpp", ["0", "0.25", ""])
def test_imagescope_shapes_are_level_0_pixels_whatever_the_mpp(mpp: str, tmp_path: Path) -> None:
    regions = [
        imagescope_region(square(0, 0, 10)),
        imagescope_region([(20, 0), (30, 20)], kind=1),
        imagescope_region(square(40, 0, 10), kind=1),
        imagescope_region([(100, 0), (140, 20)], kind=2),
        imagescope_region([(0, 0), (9, 9)], kind=3),
    ]
    found = tumour(tmp_path, imagescope(imagescope_layer(1, *regions, name="tumor"), mpp=mpp), "tumor")
    assert found.file_format == AnnotationFormat.IMAGESCOPE
    assert found.area_px2 == pytest.approx(100 + 200 + 100 + math.pi * 20 * 10, rel=1e-9)
    assert found.ignored == {"arrow": 1}


def test_a_negative_region_of_imagescope_is_a_hole_in_its_own_layer(tmp_path: Path) -> None:
    hole = imagescope_region(square(2, 2, 4), negative=True)
    layers = [
        imagescope_layer(1, hole, imagescope_region(square(0, 0, 10)), name="tumor"),
        imagescope_layer(2, imagescope_region(square(0, 0, 10)), name="tissue"),
    ]
    areas = {row.name: row.area_px2 for row in tumour(tmp_path, imagescope(*layers), "tumor").classes}
    assert areas == {"tumor": 84, "tissue": 100}


@pytest.mark.parametrize(
    ("name", "attribute", "expected"),
    [
        ("tumor", '<Attribute Name="Description" Value="other"/>', "tumor"),
        ("", '<Attribute Name="Pathologist" Value="B"/><Attribute Name="Description" Value="tumor"/>', "tumor"),
        ("", '<Attribute Name="tumor" Id="0" Value=""/>', "tumor"),
        ("", '<Attribute Name="" Id="0" Value=""/>', "layer 7"),
        ("", '<Attribute Name="Description" Id="0" Value=""/>', "layer 7"),
        ("", "", "layer 7"),
    ],
)
def test_an_imagescope_layer_has_its_name_else_an_attribute_else_its_number(
    name: str, attribute: str, expected: str, tmp_path: Path
) -> None:
    layer = imagescope_layer(7, imagescope_region(square(0, 0, 10)), name=name, attribute=attribute)
    assert tumour(tmp_path, imagescope(layer)).chosen == (expected,)


def polyline(x: float, **more: Any) -> dict[str, Any]:
    """Return a DSA polygon of 10 x 10 px."""
    return {"type": "polyline", "points": [[*point, 0] for point in square(x, 0, 10)], "closed": True, **more}


ENVELOPES = {
    "list of server documents": lambda elements: [{"_id": "1", "annotation": {"name": "n", "elements": elements}}],
    "server document": lambda elements: {"annotation": {"name": "n", "elements": elements}},
    "annotation": lambda elements: {"name": "n", "elements": elements},
}


@pytest.mark.parametrize("envelope", ENVELOPES)
def test_dsa_elements_are_of_their_group_else_label_else_annotation(envelope: str, tmp_path: Path) -> None:
    elements = [polyline(0, group="tumor", label={"value": "x"}), polyline(20, label={"value": "stroma"}), polyline(40)]
    found = tumour(tmp_path, json.dumps(ENVELOPES[envelope](elements)), "tumor")
    assert found.file_format == AnnotationFormat.DSA
    assert counts(found) == {"tumor": 1, "stroma": 1, "n": 1}
    assert found.region.bounds == (0, 0, 10, 10)


def test_dsa_shapes_have_their_areas(tmp_path: Path) -> None:
    elements = [
        polyline(0, holes=[[[2, 2, 0], [4, 2, 0], [4, 4, 0], [2, 4, 0]]]),
        {"type": "rectangle", "center": [100, 0, 0], "width": 10, "height": 20, "rotation": 0.3},
        {"type": "ellipse", "center": [200, 0, 0], "width": 10, "height": 20, "rotation": 0.3},
        {"type": "circle", "center": [300, 0, 0], "radius": 10},
        {"type": "point", "center": [0, 0, 0]},
        {"type": "arrow", "points": [[0, 0, 0], [9, 9, 0]]},
        polyline(400, closed=False),
    ]
    found = tumour(tmp_path, json.dumps({"name": "tumor", "elements": elements}), "tumor")
    assert found.area_px2 == pytest.approx(96 + 200 + math.pi * 50 + math.pi * 100, rel=1e-9)
    assert found.ignored == {"point": 1, "arrow": 1, "open polyline": 1}


def test_a_dsa_rectangle_turns_from_x_towards_y(tmp_path: Path) -> None:
    one = {"type": "rectangle", "center": [0, 0, 0], "width": 100, "height": 2, "rotation": math.pi / 4}
    found = tumour(tmp_path, json.dumps({"name": "tumor", "elements": [one]}), "tumor")
    x, y = max(found.region.exterior.coords)
    assert (x, y) == pytest.approx((51 / math.sqrt(2), 49 / math.sqrt(2)))


def test_ncrf_negatives_are_cut_out_of_positives(tmp_path: Path) -> None:
    document = {
        "positive": [{"name": "Annotation 0", "vertices": square(0, 0, 10)}],
        "negative": [{"name": "Annotation 1", "vertices": square(5, 5, 10)}],
    }
    found = tumour(tmp_path, json.dumps(document))
    assert found.file_format == AnnotationFormat.NCRF
    assert (found.chosen, found.area_px2) == (("positive",), 75)


def test_ncrf_without_positives_says_that_there_is_no_tumour(tmp_path: Path) -> None:
    for document in ({"positive": [], "negative": []}, {"negative": [{"vertices": square(0, 0, 10)}]}):
        found = tumour(tmp_path, json.dumps(document), "positive")
        assert found.region.is_empty
        assert found.area_px2 == 0


FILES = {
    "camelyon16-ncrf-Normal_017.json": ("ncrf-json", {"positive": 0}, {}, 0),
    "camelyon16-ncrf-Tumor_081.json": ("ncrf-json", {"positive": 1}, {}, 0),
    "dsa-TCGA-A2-A0YE-annotations.json": (
        "dsa-json",
        {"mostly_tumor": 38, "roi": 20, "mostly_lymphocytic_infiltrate": 5, "mostly_stroma": 35},
        {},
        17,
    ),
    "imagescope-test.xml": ("imagescope-xml", {"layer 1": 1, "layer 2": 2, "layer 5": 1}, {"arrow": 3}, 0),
    "qupath05.geojson": ("geojson", {"UT": 1, "I": 2}, {}, 0),
    "wsidicom-asap-polygon.xml": ("asap-xml", {"None": 1}, {}, 0),
    "wsidicom-qupath-polygon-cell-classified.json": ("geojson", {"Cell": 2, "Nucleus": 2}, {}, 0),
    "wsidicom-qupath-polygon.json": ("geojson", {"polygon": 1}, {}, 0),
}
HGSC = {"tumor": 165, "stroma": 114, "omental_fat": 156, "hemorragia": 54, "serum": 1, "necrosis": 3}


@pytest.mark.parametrize("name", FILES)
def test_each_real_file_is_recognised_and_counted(name: str, shared: Path) -> None:
    file_format, classes, ignored, repaired = FILES[name]
    found = describe_annotation(shared / "annotations" / name)
    assert found["file_format"] == file_format
    assert {row["name"]: row["count"] for row in found["classes"]} == classes
    assert (found["ignored"], found["repaired"], found["dropped"]) == (ignored, repaired, 0)


def test_the_asap_polygon_is_that_of_its_coordinates(shared: Path) -> None:
    found = load_annotation(shared / "annotations" / "wsidicom-asap-polygon.xml", classes=[])
    assert found.region.bounds == (22693.1875, 16551.1797, 23067.4531, 16710.6367)
    assert shapely.get_num_coordinates(found.region) == 7


def test_imagescope_rectangles_and_the_ellipse_have_their_areas(shared: Path) -> None:
    path = shared / "annotations" / "imagescope-test.xml"
    areas = {row.name: row.area_px2 for row in load_annotation(path, classes=["layer 2"]).classes}
    assert areas["layer 2"] == (852 - 532) * (380 - 23) + (1820 - 1316) * (341 - 183)
    assert areas["layer 5"] == pytest.approx(3.14159265 * (423 - 85) / 2 * (1109 - 909) / 2, rel=1e-7)


def test_the_tumour_of_dsa_is_what_its_polygons_cover_together(shared: Path) -> None:
    path = shared / "annotations" / "dsa-TCGA-A2-A0YE-annotations.json"
    found = load_annotation(path, classes=["mostly_tumor"])
    assert found.region.is_valid
    assert found.area_px2 == pytest.approx(_painted(json.loads(path.read_text()), "mostly_tumor"), rel=0.02)


def _painted(documents: list[Any], group: str) -> int:
    """Return how many pixels Pillow fills when it draws the polygons of a group."""
    canvas = Image.new("L", (3000, 3000))
    for document in documents:
        for element in document["annotation"]["elements"]:
            if element["group"] == group:
                ImageDraw.Draw(canvas).polygon([(x - 44000, y - 43500) for x, y, _ in element["points"]], fill=1)
    return int(canvas.histogram()[1])


def test_the_ovarian_slide_has_its_classes_with_their_areas(shared: Path) -> None:
    path = shared / "slides" / "virtual-hgsc-groundtruth.geojson"
    found = load_annotation(path, classes=["tumor", "necrosis"])
    assert {row.name: row.count for row in found.classes} == HGSC
    drawn: dict[str, list[Any]] = {name: [] for name in HGSC}
    for one in json.loads(path.read_text())["features"]:
        drawn[one["properties"]["classification"]["name"]].append(shapely.geometry.shape(one["geometry"]))
    areas = {name: shapely.union_all(shapes).area for name, shapes in drawn.items()}
    assert {row.name: row.area_px2 for row in found.classes} == pytest.approx(areas, rel=1e-12)
    both = shapely.union_all(drawn["tumor"] + drawn["necrosis"])
    assert found.area_px2 == pytest.approx(both.area, rel=1e-12)
