"""Annotations on slides that they are not of."""

import json
from pathlib import Path

import pytest

from pathnav.cohort.annotation import load_annotation
from pathnav.cohort.annotation_fit import warnings_on_slide
from pathnav.errors import AnnotationError
from pathnav.slide import open_slide
from support.annotations import feature, square, write_geojson, write_text
from support.trees import write_slide


def warnings(folder: Path, x: float, side: float) -> list[str]:
    """Return what is odd about a square tumour on a slide of 2000 x 1600 px."""
    write_slide(folder / "a.tif")
    found = load_annotation(write_geojson(folder, feature("tumor", square(x, 0, side))), classes=[])
    with open_slide(folder / "a.tif") as slide:
        return warnings_on_slide(found, slide)


def test_a_tumour_on_the_slide_is_nothing_to_tell(tmp_path: Path) -> None:
    assert warnings(tmp_path, 100, 1000) == []


def test_a_pen_that_slips_over_the_edge_is_nothing_to_tell(tmp_path: Path) -> None:
    assert warnings(tmp_path, -0.5, 1000) == []


def test_a_tumour_partly_beside_the_slide_is_told_with_its_share(tmp_path: Path) -> None:
    (sentence,) = warnings(tmp_path, -250, 1000)
    assert sentence.startswith("25.0% of the tumour")
    assert "lies outside the scanned area [0, 0, 2000, 1600]" in sentence
    assert sentence.endswith("is it of another slide or scan?")


def test_an_annotation_of_a_larger_slide_is_told(tmp_path: Path) -> None:
    (sentence,) = warnings(tmp_path, 0, 100_000)
    assert "[0, 0, 100000, 100000]" in sentence


def test_a_tumour_wholly_beside_the_slide_is_refused(tmp_path: Path) -> None:
    with pytest.raises(AnnotationError, match=r"extent \[5000, 0, 10, 10\], lies outside the scanned area"):
        warnings(tmp_path, 5000, 10)


def test_without_tumour_nothing_is_told(tmp_path: Path) -> None:
    write_slide(tmp_path / "a.tif")
    with open_slide(tmp_path / "a.tif") as slide:
        found = load_annotation(write_text(tmp_path, '{"positive": []}'), classes=[])
        assert warnings_on_slide(found, slide) == []


@pytest.mark.parametrize(("x", "share"), [(100, None), (-50, "50.0%"), (5000, "100.0%")])
def test_without_tumour_what_is_excluded_tells_of_another_slide(tmp_path: Path, x: int, share: str | None) -> None:
    write_slide(tmp_path / "a.tif")
    ring = [[x, 0], [x + 100, 0], [x + 100, 100], [x, 100]]
    document = json.dumps({"positive": [], "negative": [{"name": "_0", "vertices": ring}]})
    with open_slide(tmp_path / "a.tif") as slide:
        found = warnings_on_slide(load_annotation(write_text(tmp_path, document), classes=[]), slide)
    assert [line.split(" of ")[0] for line in found] == ([share] if share else [])
    assert all("what is no tumour" in line and "scanned area [0, 0, 2000, 1600]" in line for line in found)


def test_a_tumour_relative_to_the_scanned_area_fits_after_the_offset(tmp_path: Path, shared: Path) -> None:
    path = write_geojson(tmp_path, feature("tumor", square(0, 0, 1500)))
    with open_slide(shared / "slides" / "mirax-sparse-bounds.mrxs") as slide:
        with pytest.raises(AnnotationError, match="or relative to the scanned area"):
            warnings_on_slide(load_annotation(path, classes=[]), slide)
        moved = load_annotation(path, classes=[], offset=(slide.bounds.x, slide.bounds.y))
        assert warnings_on_slide(moved, slide) == []
        assert moved.region.bounds == (2304, 1792, 3804, 3292)
