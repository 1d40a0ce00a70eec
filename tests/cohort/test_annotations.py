"""What becomes of drawings: holes, repairs, drops, exclusions, offsets, classes; the fit to a slide; the command."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import shapely
import shapely.affinity
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pathnav.cohort.annotation_formats import MOST_BYTES, AnnotationFormat
from pathnav.cohort.annotations import (
    ANNOTATION_FORMAT,
    TOLERATED_SHARE,
    describe_annotation,
    load_annotation,
    overlap_fractions,
    warnings_on_slide,
)
from pathnav.errors import AnnotationError
from pathnav.geometry import Grid
from pathnav.phantom import PhantomFiles
from pathnav.report.geojson import kept_tiles
from pathnav.slide import open_slide
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
    write_geojson,
    write_text,
)
from support.commands import Command
from support.phantoms import annotated
from support.trees import write_slide

PAGE = Path(__file__).parents[2] / "docs" / "annotations.md"
BOW_TIE = [[0, 0], [10, 10], [10, 0], [0, 10]]
OVERSHOT = [[0, 0], [10, 0], [10, 10], [0, 10], [0, -5], [5, -5], [5, 5], [-5, 5], [-5, 0]]
"""An outline whose pen went on after it was closed and came back over what it had drawn."""
SIDE = 12

Points = list[list[float]]


def load(folder: Path, *features: dict[str, Any], **options: Any) -> Any:
    """Write a FeatureCollection and load its tumour."""
    return load_annotation(write_geojson(folder, *features), classes=["tumor"], **options)


def geojson(outlines: list[Points], holes: list[Points]) -> str:
    return json.dumps([feature("T", outlines[0], *holes), *(feature("T", outline) for outline in outlines[1:])])


def dsa(outlines: list[Points], holes: list[Points]) -> str:
    elements = [{"type": "polyline", "group": "T", "points": outline} for outline in outlines]
    return json.dumps({"annotation": {"name": "a", "elements": [elements[0] | {"holes": holes}, *elements[1:]]}})


def aperio(outlines: list[Points], holes: list[Points]) -> str:
    negative = [imagescope_region(hole, negative=True) for hole in holes]
    return imagescope(imagescope_layer(1, *map(imagescope_region, outlines), *negative, name="T"))


def camelyon(outlines: list[Points], holes: list[Points]) -> str:
    drawn = [("T", outline) for outline in outlines] + [("_2", hole) for hole in holes]
    return asap(*(asap_annotation(*one) for one in drawn))


def ncrf(outlines: list[Points], holes: list[Points]) -> str:
    lists = {"positive": outlines, "negative": holes}
    return json.dumps({key: [{"name": "a", "vertices": ring} for ring in rings] for key, rings in lists.items()})


WRITERS: dict[str, Callable[[list[Points], list[Points]], str]] = {
    "geojson": geojson,
    "dsa-json": dsa,
    "imagescope-xml": aperio,
    "asap-xml": camelyon,
    "ncrf-json": ncrf,
}
OUTLINE = square(10, 10, 30)
BESIDE = square(500, 500, 1)
"""So that the class has an area where the hole takes all of the outline."""
HOLES: dict[str, tuple[list[Points], float]] = {
    "outside": ([square(100, 100, 30)], 900),
    "one inside and one outside": ([square(15, 15, 5), square(100, 100, 90)], 875),
    "overlapping each other": ([square(15, 15, 10), square(20, 15, 10)], 750),
    "one within another": ([square(15, 15, 10), square(17, 17, 2)], 800),
    "half outside": ([square(30, 10, 20)], 700),
    "equal to the outline": ([OUTLINE], 0),
    "larger than the outline": ([square(0, 0, 100)], 0),
    "crossing itself": ([[[15, 15], [25, 25], [25, 15], [15, 25]]], 850),
    "without an area": ([[[15, 15], [20, 20], [25, 25]]], 900),
}


@pytest.mark.parametrize("kind", WRITERS)
@pytest.mark.parametrize("name", HOLES)
def test_a_hole_takes_away_what_of_its_outline_it_covers(name: str, kind: str, tmp_path: Path) -> None:
    holes, area_px2 = HOLES[name]
    found = tumour(tmp_path, WRITERS[kind]([OUTLINE, BESIDE], holes))
    assert found.area_px2 == pytest.approx(area_px2 + 1)
    assert found.region.is_valid


def test_the_hole_of_one_polygon_takes_nothing_from_another(tmp_path: Path) -> None:
    parts: Any = [[OUTLINE, square(100, 100, 50)], [square(100, 100, 20)]]
    assert tumour(tmp_path, json.dumps(feature("T", parts, kind="MultiPolygon"))).area_px2 == 900 + 400


boxes = st.tuples(st.integers(0, SIDE - 2), st.integers(0, SIDE - 2), st.integers(1, SIDE), st.integers(1, SIDE))


def _ring(box: tuple[int, int, int, int]) -> Points:
    x, y, width, height = box
    right, bottom = min(x + width, SIDE), min(y + height, SIDE)
    return [[x, y], [right, y], [right, bottom], [x, bottom]]


def _cells(rings: list[Points]) -> Any:
    covered = np.zeros((SIDE, SIDE), bool)
    for (left, top), _, (right, bottom), _ in rings:
        covered[int(top) : int(bottom), int(left) : int(right)] = True
    return covered


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(outline=boxes, holes=st.lists(boxes, max_size=4), kind=st.sampled_from(sorted(WRITERS)))
def test_every_format_agrees_with_counted_pixels(outline: Any, holes: Any, kind: str, tmp_path: Path) -> None:
    ring, cut = _ring(outline), [_ring(hole) for hole in holes]
    found = tumour(tmp_path, WRITERS[kind]([ring, BESIDE], cut))
    assert found.area_px2 == pytest.approx((_cells([ring]) & ~_cells(cut)).sum() + 1)


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
    [[], [[1, 1]], [[0, 0], [5, 5], [0, 0]], [[0, 0], [5, 5], [9, 9]], [[2, 2]] * 5],
    ids=["none", "one", "two and closed", "on a line", "one place"],
)
def test_an_outline_without_an_area_is_dropped_and_counted(points: Any, tmp_path: Path) -> None:
    found = load(tmp_path, feature("tumor", points), feature("tumor", square(0, 0, 10), [[1, 1], [2, 2]]))
    assert (found.area_px2, found.repaired, found.dropped) == (100, 0, 2), "the hole of two points goes, too"
    assert counts(found) == {"tumor": 1}


points = st.lists(st.tuples(st.integers(-50, 50), st.integers(-50, 50)).map(list), max_size=12)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.lists(points, max_size=3), min_size=1, max_size=6), st.integers(0, 1000))
def test_any_rings_become_a_valid_region_and_each_is_accounted_for(tmp_path: Path, drawn: Any, offset: int) -> None:
    texts = [feature("tumor", *rings) for rings in drawn]
    found = load(tmp_path, feature("tumor", square(0, 0, 10)), *texts, offset=(offset, 0))
    assert found.region.is_valid
    assert shapely.get_type_id(found.region) in (3, 6), "a polygon or a multi-polygon"
    assert 1 <= found.classes[0].count <= len(drawn) + 1
    assert found.classes[0].count + found.dropped >= len(drawn) + 1
    assert found.region.bounds[0] >= offset - 50


def test_overlapping_drawings_count_once_in_area_and_each_in_count(tmp_path: Path) -> None:
    found = load(tmp_path, feature("tumor", square(0, 0, 10)), feature("tumor", square(5, 0, 10)))
    assert (found.area_px2, found.classes[0].area_px2, found.classes[0].count) == (150, 150, 2)


def test_an_exclusion_is_cut_out_of_every_class_and_can_be_none(tmp_path: Path) -> None:
    features = [feature(name, square(0, 0, side)) for name, side in (("tumor", 10), ("stroma", 20), ("Exclusion", 5))]
    found = load(tmp_path, *features)
    assert (found.area_px2, found.classes[0].area_px2, found.excluded.area) == (75, 100, 25)
    assert [(row.name, row.area_px2) for row in found.exclusions] == [("Exclusion", 25)]
    assert tumour(tmp_path, json.dumps([features[0], features[2]])).chosen == ("tumor",), "the only class"
    with pytest.raises(AnnotationError, match="has no class 'Exclusion'; it has only exclusions"):
        tumour(tmp_path, json.dumps(features[2]), "Exclusion")


def test_an_offset_moves_everything(tmp_path: Path) -> None:
    features = feature("tumor", square(0, 0, 10), square(1, 1, 2)), feature("Exclusion", square(5, 5, 9))
    here, there = load(tmp_path, *features), load(tmp_path, *features, offset=(2304, 1792))
    assert there.region.equals(shapely.affinity.translate(here.region, 2304, 1792))


def test_several_classes_are_one_tumour(tmp_path: Path) -> None:
    text = json.dumps([feature("a", square(0, 0, 10)), feature("b", square(5, 0, 10)), feature("c", square(0, 99, 1))])
    found = tumour(tmp_path, text, "b", "a", "b")
    assert (found.chosen, found.area_px2) == (("b", "a"), 150)
    with pytest.raises(AnnotationError, match=r"say which class is tumour; it has 'a' \(1\), 'b' \(1\), 'c' \(1\)$"):
        tumour(tmp_path, text)


@pytest.mark.parametrize(
    ("wanted", "says"),
    [("Tumor", r"did you mean 'tumor'\?"), ("tumour", r"did you mean 'tumor'\?"), ("lymphoma", r"'lymphoma'; it has")],
)
def test_an_unknown_class_is_refused_with_those_there_are(wanted: str, says: str, tmp_path: Path) -> None:
    text = json.dumps([feature("tumor", square(0, 0, 1)), *[feature("stroma", square(0, 0, 1))] * 2])
    with pytest.raises(AnnotationError, match=says) as refused:
        tumour(tmp_path, text, wanted)
    assert "'stroma' (2), 'tumor' (1)" in str(refused.value)
    assert str(refused.value).startswith(str(tmp_path))


def test_a_class_of_which_nothing_has_an_area_is_refused(tmp_path: Path) -> None:
    with pytest.raises(AnnotationError, match="class 'tumor' has an area"):
        load(tmp_path, feature("tumor", [[0, 0], [5, 5]]), feature("stroma", square(0, 0, 1)))


@pytest.mark.parametrize(
    ("x", "side", "share"), [(100, 1000, None), (-0.5, 1000, None), (-250, 1000, "25.0%"), (0, 100_000, "100.0%")]
)
def test_a_tumour_partly_beside_the_slide_is_told_with_its_share(
    x: float, side: float, share: str | None, tmp_path: Path
) -> None:
    write_slide(tmp_path / "a.tif")  # 2000 x 1600 px
    with open_slide(tmp_path / "a.tif") as slide:
        found = warnings_on_slide(load(tmp_path, feature("tumor", square(x, 0, side))), slide)
    assert [line.split(" of ")[0] for line in found] == ([share] if share else [])
    assert all("the tumour" in line and "[0, 0, 2000, 1600]" in line for line in found)


def test_a_tumour_wholly_beside_the_slide_is_refused(tmp_path: Path) -> None:
    write_slide(tmp_path / "a.tif")
    found = load(tmp_path, feature("tumor", square(5000, 0, 10)))
    with (
        open_slide(tmp_path / "a.tif") as slide,
        pytest.raises(AnnotationError, match=r"\[5000, 0, 10, 10\], lies outside"),
    ):
        warnings_on_slide(found, slide)


@pytest.mark.parametrize(("x", "share"), [(None, None), (100, None), (-50, "50.0%"), (5000, "100.0%")])
def test_without_tumour_what_is_excluded_tells_of_another_slide(
    x: int | None, share: str | None, tmp_path: Path
) -> None:
    write_slide(tmp_path / "a.tif")
    text = ncrf([], [] if x is None else [square(x, 0, 100)])
    with open_slide(tmp_path / "a.tif") as slide:
        found = warnings_on_slide(tumour(tmp_path, text), slide)
    assert [line.split(" of ")[0] for line in found] == ([share] if share else [])
    assert all("what is no tumour" in line for line in found)


def test_a_tumour_relative_to_the_scanned_area_fits_after_the_offset(tmp_path: Path, shared: Path) -> None:
    drawn = feature("tumor", square(0, 0, 1500))
    with open_slide(shared / "slides" / "mirax-sparse-bounds.mrxs") as slide:
        with pytest.raises(AnnotationError, match="or relative to the scanned area"):
            warnings_on_slide(load(tmp_path, drawn), slide)
        moved = load(tmp_path, drawn, offset=(slide.bounds.x, slide.bounds.y))
        assert warnings_on_slide(moved, slide) == []
        assert moved.region.bounds == (2304, 1792, 3804, 3292)


def test_the_ovarian_annotation_fits_its_slide_and_its_tiles_add_up_to_it(shared: Path) -> None:
    found = load_annotation(shared / "slides" / "virtual-hgsc-groundtruth.geojson", classes=["tumor"])
    with open_slide(shared / "slides" / "virtual-hgsc-groundtruth.svs") as slide:
        assert warnings_on_slide(found, slide) == []
        grid = Grid(slide.bounds, 128, 128)
    shares = overlap_fractions(found, grid)
    assert shares @ grid.areas() == pytest.approx(found.area_px2, rel=1e-9)
    assert shares == pytest.approx(overlap_fractions(found, grid.boxes()), abs=1e-9)


def test_the_truth_of_a_phantom_is_an_annotation(small_phantom: PhantomFiles) -> None:
    found = load_annotation(small_phantom.annotation, classes=["tumor"])
    assert found.area_px2 == pytest.approx(annotated(small_phantom, "tumor").area)


@pytest.fixture
def pathnav(capsys: pytest.CaptureFixture[str]) -> Command:
    """Call `pathnav` in this process."""
    return Command(capsys)


def test_a_description_is_plain_json_and_the_text_tells_the_same(pathnav: Command, tmp_path: Path) -> None:
    path = write_geojson(
        tmp_path,
        feature("[red] tumor", BOW_TIE),
        feature("[red] tumor", square(20, 0, 1000)),
        feature("Exclusion", square(0, 0, 5)),
        feature(None, [[0, 0]]),
        feature("tumor", [1, 2], kind="Point"),
    )
    described = describe_annotation(path)
    row = {"repaired": 0, "dropped": 0}
    assert described == {
        "format": "pathnav-annotation-1",
        "path": str(path),
        "file_format": "geojson",
        "classes": [
            {**row, "name": "[red] tumor", "count": 2, "area_px2": 1_000_050, "repaired": 1},
            {**row, "name": "unclassified", "count": 0, "area_px2": 0, "dropped": 1},
        ],
        "exclusions": [{**row, "name": "Exclusion", "count": 1, "area_px2": 25}],
        "extent": [0, 0, 1020, 1000],
        "repaired": 1,
        "dropped": 1,
        "ignored": {"point": 1},
    }
    assert json.loads(pathnav("annotations", path, "--json").out) == described
    text = " ".join(pathnav("annotations", path).out.split())
    for words in ("1020 x 1000 px", "ignored: 1 point", "[red] tumor 2 1,000,050", "Exclusion 1 25 (excluded)"):
        assert words in text


def test_a_slide_without_tumour_is_described(pathnav: Command, tmp_path: Path) -> None:
    said = pathnav("annotations", write_text(tmp_path, '{"positive": []}'))
    assert (said.code, said.err) == (0, "")
    assert "nothing has an area" in said.out


def test_a_search_that_kept_nothing_is_described_and_is_no_tumour(pathnav: Command, tmp_path: Path) -> None:
    path = write_text(tmp_path, json.dumps(kept_tiles({"levels": []})))
    said = pathnav("annotations", path)
    assert (said.code, said.err) == (0, "")
    assert "holds no kept tiles" in said.out
    with pytest.raises(AnnotationError, match="holds no kept tiles"):
        load_annotation(path, classes=["tumor"])


def test_a_file_that_is_none_is_refused_in_one_sentence(pathnav: Command, tmp_path: Path) -> None:
    said = pathnav("annotations", write_text(tmp_path, "<svg/>"), "--json")
    assert (said.code, said.out) == (2, "")
    assert "<svg>" in said.sentences[0] and len(said.sentences) == 1


def test_the_page_has_every_kind_the_numbers_of_the_code_and_what_the_command_prints(
    pathnav: Command, shared: Path
) -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert [str(kind) for kind in AnnotationFormat if f"`{kind}`" not in page] == []
    assert f'"format": "{ANNOTATION_FORMAT}"' in page
    assert f"over {MOST_BYTES >> 20} MiB" in page
    assert f"more than {TOLERATED_SHARE * 100:g} % lies" in " ".join(page.split())
    printed = page.partition("$ pathnav annotations virtual-hgsc-groundtruth.geojson\n")[2].partition("\n...")[0]
    said = pathnav("annotations", shared / "slides" / "virtual-hgsc-groundtruth.geojson")
    assert said.out.replace(f"{shared}/slides/", "").startswith(printed + "\n")
