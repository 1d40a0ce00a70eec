"""The real files of five tools, against what was counted in them by other means."""

import json
from pathlib import Path
from typing import Any

import pytest
import shapely
from PIL import Image, ImageDraw

from pathnav.cohort.annotation import describe_annotation, load_annotation
from pathnav.cohort.annotation_fit import warnings_on_slide
from pathnav.cohort.annotation_overlap import overlap_fractions
from pathnav.geometry import Grid
from pathnav.slide import open_slide

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


def test_no_real_file_of_this_list_is_forgotten(shared: Path) -> None:
    assert {path.name for path in (shared / "annotations").iterdir()} == set(FILES)


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


def test_a_normal_slide_of_camelyon_has_no_tumour_and_is_no_error(shared: Path) -> None:
    found = load_annotation(shared / "annotations" / "camelyon16-ncrf-Normal_017.json", classes=[])
    assert found.region.is_empty
    assert found.exclusions[0].count == 2


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


def test_the_ovarian_annotation_fits_its_slide_and_its_tiles_add_up_to_it(shared: Path) -> None:
    found = load_annotation(shared / "slides" / "virtual-hgsc-groundtruth.geojson", classes=["tumor"])
    with open_slide(shared / "slides" / "virtual-hgsc-groundtruth.svs") as slide:
        assert warnings_on_slide(found, slide) == []
        grid = Grid(slide.bounds, 128, 128)
    assert (grid.count, grid.rows) == (46 * 65, 65)
    shares = overlap_fractions(found, grid)
    assert shares @ grid.areas() == pytest.approx(found.area_px2, rel=1e-9)
    assert shares == pytest.approx(overlap_fractions(found, grid.boxes()), abs=1e-9)
