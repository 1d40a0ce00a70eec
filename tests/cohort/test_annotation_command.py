"""`pathnav annotations`, and the page on it."""

import json
from pathlib import Path

import pytest

from pathnav.cohort import annotation_file, annotation_fit
from pathnav.cohort.annotation import ANNOTATION_FORMAT, AnnotationFormat, describe_annotation, load_annotation
from pathnav.errors import AnnotationError
from pathnav.phantom import PhantomFiles
from pathnav.report.geojson import kept_tiles
from support.annotations import feature, square, write_geojson, write_text
from support.commands import Command
from support.phantoms import annotated


@pytest.fixture
def pathnav(capsys: pytest.CaptureFixture[str]) -> Command:
    """Call `pathnav` in this process."""
    return Command(capsys)


def test_json_is_the_description(pathnav: Command, tmp_path: Path) -> None:
    path = write_geojson(tmp_path, feature("tumor", square(0, 0, 10)), feature("Exclusion", square(0, 0, 5)))
    said = pathnav("annotations", path, "--json")
    assert (said.code, said.err) == (0, "")
    assert json.loads(said.out) == describe_annotation(path)


def test_text_tells_classes_areas_and_what_was_left_out(pathnav: Command, tmp_path: Path) -> None:
    bow_tie = [[0, 0], [10, 10], [10, 0], [0, 10]]
    path = write_geojson(
        tmp_path,
        feature("[red] tumor", square(0, 0, 1000), [[1, 1]]),
        feature("[red] tumor", bow_tie),
        feature("Exclusion", square(0, 0, 5)),
        feature("x", [1, 2], kind="Point"),
    )
    said = pathnav("annotations", path)
    assert said.code == 0
    lines = said.out.splitlines()
    assert lines[0] == f"file:      {path} (geojson)"
    assert lines[1:5] == [
        "extent:    x 0, y 0, 1000 x 1000 px",
        "repaired:  1 polygons that were invalid",
        "dropped:   1 polygons or holes without an area",
        "ignored:   1 point",
    ]
    assert [line.split() for line in lines[6:]] == [
        ["[red]", "tumor", "2", "1,000,000"],
        ["Exclusion", "1", "25", "(excluded)"],
    ]


def test_a_slide_without_tumour_is_described(pathnav: Command, tmp_path: Path) -> None:
    said = pathnav("annotations", write_text(tmp_path, '{"positive": []}'))
    assert (said.code, said.err) == (0, "")
    assert "nothing has an area" in said.out


def test_the_kept_tiles_of_a_search_that_kept_none_are_described_and_are_no_tumour(
    pathnav: Command, tmp_path: Path
) -> None:
    path = write_text(tmp_path, json.dumps(kept_tiles({"levels": []})))
    said = pathnav("annotations", path)
    assert (said.code, said.err) == (0, "")
    assert "holds no kept tiles" in said.out
    assert json.loads(pathnav("annotations", path, "--json").out)["classes"] == []
    with pytest.raises(AnnotationError, match="holds no kept tiles: it was written by a search that kept none"):
        load_annotation(path, classes=["tumor"])


def test_a_file_that_is_none_is_refused_in_one_sentence(pathnav: Command, tmp_path: Path) -> None:
    said = pathnav("annotations", write_text(tmp_path, "<svg/>"), "--json")
    assert (said.code, said.out) == (2, "")
    (sentence,) = said.sentences
    assert sentence.startswith("pathnav: ")
    assert "got XML whose root is <svg>" in sentence


def test_every_kind_of_file_is_on_the_page_and_the_numbers_are_those_of_the_code() -> None:
    page = (Path(__file__).parents[2] / "docs" / "annotations.md").read_text(encoding="utf-8")
    assert [str(kind) for kind in AnnotationFormat if f"`{kind}`" not in page] == []
    assert f'"format": "{ANNOTATION_FORMAT}"' in page
    assert f"over {annotation_file._MAX_BYTES >> 20} MiB" in page
    assert f"more than {annotation_fit._TOLERATED_SHARE * 100:g} % lies" in " ".join(page.split())


def test_the_printed_example_is_what_the_command_prints(pathnav: Command, shared: Path) -> None:
    page = (Path(__file__).parents[2] / "docs" / "annotations.md").read_text(encoding="utf-8")
    printed = page.partition("$ pathnav annotations virtual-hgsc-groundtruth.geojson\n")[2].partition("\n...")[0]
    said = pathnav("annotations", shared / "slides" / "virtual-hgsc-groundtruth.geojson")
    assert said.out.replace(f"{shared}/slides/", "").startswith(printed + "\n")


def test_the_truth_of_a_phantom_is_an_annotation(small_phantom: PhantomFiles) -> None:
    found = load_annotation(small_phantom.annotation, classes=["tumor"])
    assert found.area_px2 == pytest.approx(annotated(small_phantom, "tumor").area)
