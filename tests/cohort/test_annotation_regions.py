"""What becomes of drawings: repairs, drops, exclusions, offsets, and which class is tumour."""

import json
from pathlib import Path
from typing import Any

import pytest
import shapely
import shapely.affinity
from hypothesis import given
from hypothesis import strategies as st

from pathnav.cohort.annotation import describe_annotation, load_annotation
from pathnav.cohort.annotation_geojson import read_geojson
from pathnav.cohort.annotation_regions import class_regions
from pathnav.errors import AnnotationError
from support.annotations import counts, feature, square, tumour, write_geojson

BOW_TIE = [[0, 0], [10, 10], [10, 0], [0, 10]]
OVERSHOT = [[0, 0], [10, 0], [10, 10], [0, 10], [0, -5], [5, -5], [5, 5], [-5, 5], [-5, 0]]
"""An outline whose pen went on after it was closed and came back over what it had drawn."""


def load(folder: Path, *features: dict[str, Any], **options: Any) -> Any:
    """Write a FeatureCollection and load its tumour."""
    return load_annotation(write_geojson(folder, *features), classes=["tumor"], **options)


def test_an_outline_that_crosses_itself_is_repaired_and_counted(tmp_path: Path) -> None:
    found = load(tmp_path, feature("tumor", BOW_TIE), feature("stroma", square(0, 0, 10)))
    assert (found.area_px2, found.repaired, found.dropped) == (50, 1, 0)
    assert {row.name: row.repaired for row in found.classes} == {"tumor": 1, "stroma": 0}


def test_what_a_pen_encloses_twice_stays_tumour(tmp_path: Path) -> None:
    found = load(tmp_path, feature("tumor", OVERSHOT))
    assert found.repaired == 1
    assert found.region.contains(shapely.Point(2.5, 2.5)), "an even-odd repair would cut a hole here"
    assert found.region.is_valid


@pytest.mark.parametrize(
    "points",
    [[], [[1, 1]], [[0, 0], [5, 5]], [[0, 0], [5, 5], [0, 0]], [[0, 0], [5, 5], [9, 9]], [[2, 2]] * 5],
    ids=["none", "one", "two", "two and closed", "on a line", "one place"],
)
def test_an_outline_without_an_area_is_dropped_and_counted(points: Any, tmp_path: Path) -> None:
    found = load(tmp_path, feature("tumor", points), feature("tumor", square(0, 0, 10)))
    assert (found.area_px2, found.repaired, found.dropped) == (100, 0, 1)
    assert counts(found) == {"tumor": 1}


def test_a_hole_of_two_points_is_dropped_and_its_polygon_stays(tmp_path: Path) -> None:
    found = load(tmp_path, feature("tumor", square(0, 0, 10), [[1, 1], [2, 2]]))
    assert (found.area_px2, found.dropped) == (100, 1)


def test_overlapping_drawings_count_once_in_area_and_each_in_count(tmp_path: Path) -> None:
    found = load(tmp_path, feature("tumor", square(0, 0, 10)), feature("tumor", square(5, 0, 10)))
    assert (found.area_px2, found.classes[0].area_px2, found.classes[0].count) == (150, 150, 2)


def test_a_class_named_exclusion_is_cut_out_in_every_format(tmp_path: Path) -> None:
    found = load(tmp_path, feature("tumor", square(0, 0, 10)), feature("Exclusion", square(0, 0, 5)))
    assert (found.area_px2, found.classes[0].area_px2) == (75, 100)
    assert [(row.name, row.area_px2) for row in found.exclusions] == [("Exclusion", 25)]


def test_an_offset_moves_everything(tmp_path: Path) -> None:
    features = feature("tumor", square(0, 0, 10), square(1, 1, 2)), feature("Exclusion", square(5, 5, 9))
    here, there = load(tmp_path, *features), load(tmp_path, *features, offset=(2304, 1792))
    assert there.region.equals(shapely.affinity.translate(here.region, 2304, 1792))


def test_several_classes_are_one_tumour(tmp_path: Path) -> None:
    text = json.dumps([feature("a", square(0, 0, 10)), feature("b", square(5, 0, 10)), feature("c", square(0, 99, 1))])
    found = tumour(tmp_path, text, "b", "a", "b")
    assert (found.chosen, found.area_px2) == (("b", "a"), 150)


def test_the_only_class_need_not_be_named_and_exclusions_are_no_class(tmp_path: Path) -> None:
    text = json.dumps([feature("Ca", square(0, 0, 10)), feature("Exclusion", square(0, 0, 5))])
    assert tumour(tmp_path, text).chosen == ("Ca",)


def test_without_a_class_a_file_of_several_is_refused_with_their_counts(tmp_path: Path) -> None:
    text = json.dumps([feature("a", square(0, 0, 1)), feature("b", square(0, 0, 1)), feature("b", square(9, 0, 1))])
    with pytest.raises(AnnotationError, match=r"say which class is tumour; it has 'b' \(2\), 'a' \(1\)$"):
        tumour(tmp_path, text)


@pytest.mark.parametrize(
    ("wanted", "says"),
    [("Tumor", r"did you mean 'tumor'\?"), ("tumour", r"did you mean 'tumor'\?"), ("lymphoma", r"'lymphoma'; it has")],
)
def test_an_unknown_class_is_refused_with_those_there_are(wanted: str, says: str, tmp_path: Path) -> None:
    text = json.dumps([feature("tumor", square(0, 0, 1)), feature("stroma", square(0, 0, 1))])
    with pytest.raises(AnnotationError, match=says) as refused:
        tumour(tmp_path, text, wanted)
    assert "'stroma' (1), 'tumor' (1)" in str(refused.value)
    assert str(refused.value).startswith(str(tmp_path))


def test_an_exclusion_cannot_be_chosen_as_tumour(tmp_path: Path) -> None:
    with pytest.raises(AnnotationError, match="has no class 'Exclusion'; it has only exclusions"):
        tumour(tmp_path, json.dumps(feature("Exclusion", square(0, 0, 1))), "Exclusion")


def test_a_class_of_which_nothing_has_an_area_is_refused(tmp_path: Path) -> None:
    with pytest.raises(AnnotationError, match="nothing that it draws of class 'tumor' has an area"):
        load(tmp_path, feature("tumor", [[0, 0], [5, 5]]), feature("stroma", square(0, 0, 1)))


def test_a_description_is_plain_json_with_areas_in_square_pixels(tmp_path: Path) -> None:
    path = write_geojson(
        tmp_path,
        feature("tumor", BOW_TIE),
        feature("tumor", square(20, 0, 10)),
        feature("Exclusion", square(0, 0, 5)),
        feature(None, [[0, 0]]),
        feature("tumor", [1, 2], kind="Point"),
    )
    described = json.loads(json.dumps(describe_annotation(path), allow_nan=False))
    row = {"repaired": 0, "dropped": 0}
    assert described == {
        "format": "pathnav-annotation-1",
        "path": str(path),
        "file_format": "geojson",
        "classes": [
            {**row, "name": "tumor", "count": 2, "area_px2": 150, "repaired": 1},
            {**row, "name": "unclassified", "count": 0, "area_px2": 0, "dropped": 1},
        ],
        "exclusions": [{**row, "name": "Exclusion", "count": 1, "area_px2": 25}],
        "extent": [0, 0, 30, 10],
        "repaired": 1,
        "dropped": 1,
        "ignored": {"point": 1},
    }


points = st.lists(st.tuples(st.integers(-50, 50), st.integers(-50, 50)).map(list), max_size=12)


@given(st.lists(st.lists(points, max_size=3), max_size=6), st.integers(0, 1000))
def test_any_rings_become_a_valid_region_and_each_is_accounted_for(drawn: Any, offset: int) -> None:
    drawings = read_geojson([feature("a", *rings) for rings in drawn]).drawings
    for region in class_regions(drawings, offset=(offset, 0)):
        assert region.region.is_valid
        assert shapely.get_type_id(region.region) in (3, 6), "a polygon or a multi-polygon"
        assert 0 <= region.count <= len(drawn)
        assert region.count + region.dropped >= len(drawn)
        assert region.region.is_empty or region.region.bounds[0] >= offset - 50
