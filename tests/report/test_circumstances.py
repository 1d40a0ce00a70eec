"""Rows of Mode B are told apart by what differs: reader, scale, annotation; all tables of a report say it alike."""

import csv
import io
from pathlib import Path
from typing import Any

from pathnav.report.render import Form, render
from support.explorations import exploration, report_of

TWO_SLIDES = 2


def slide(name: str = "a", **changes: Any) -> dict[str, Any]:
    facts = {"path": f"{name}.svs", "fingerprint": name, "phantom": False, "mpp_um": [0.5, 0.5], "reader": "openslide"}
    return facts | changes


def annotation(path: str, digest: str, *classes: str) -> dict[str, Any]:
    return {"path": path, "sha256": digest * 64, "classes": list(classes)}


OWN = annotation("/home/u/own.geojson", "1", "tumor")


def searched(key: str, name: str = "a", *, scorer: str = "random", **changes: Any) -> dict[str, Any]:
    about = slide(name, **changes.pop("slide", {}))
    return exploration(name, key=key, scorer=scorer, **{"annotation": OWN, **changes}) | {"slide": about}


def labels(folder: Path, *records: dict[str, Any]) -> set[str]:
    """Return the labels of all tables; the same row has the same one in each."""
    found = report_of(folder, *records)
    assert found.explorations is not None
    names = {found.explorations.label(row) for row in found.explorations.rows}
    text = render(found)
    assert all(name in text for name in names) and "annotation 1" not in text
    return names


def test_another_reader_is_called_a_reader_and_not_an_annotation(tmp_path: Path) -> None:
    other = searched("b", slide={"reader": "tiffslide"})
    assert labels(tmp_path, searched("a"), other) == {"random (reader openslide)", "random (reader tiffslide)"}


def test_scale_and_annotation_are_named_alike_for_all_scorers(tmp_path: Path) -> None:
    stroma = annotation("bad/ok.geojson", "2", "stroma")
    records = [
        searched("a"),
        searched("b", slide={"mpp_um": [0.25, 0.25]}),
        searched("c", scorer="mine", annotation=stroma),
        searched("d", scorer="mine", annotation=None, counts=None),
        searched("e", scorer="oracle"),
    ]
    assert labels(tmp_path, *records) == {
        "random (mpp 0.5; annotation own.geojson: tumor)",
        "random (mpp 0.25; annotation own.geojson: tumor)",
        "mine (mpp 0.5; annotation ok.geojson: stroma)",
        "mine (mpp 0.5; no annotation)",
        "oracle (control; mpp 0.5; annotation own.geojson: tumor)",
    }


def test_two_files_of_one_name_are_told_apart_by_their_content(tmp_path: Path) -> None:
    found = labels(tmp_path, searched("a"), searched("b", annotation=annotation("else/own.geojson", "2", "tumor")))
    assert found == {
        "random (annotation own.geojson 1111111: tumor)",
        "random (annotation own.geojson 2222222: tumor)",
    }


def test_classes_alone_are_told_without_the_file_over_all_slides(tmp_path: Path) -> None:
    records = [
        searched(f"{name}{kind}", name, annotation=annotation(f"{name}.geojson", digest, kind))
        for name, digest in (("a", "1"), ("b", "2"))
        for kind in ("tumor", "stroma")
    ]
    assert labels(tmp_path, *records) == {"random (annotation tumor)", "random (annotation stroma)"}
    found = report_of(tmp_path / "again", *records).explorations
    assert found is not None and [len(row.slides) for row in found.rows] == [TWO_SLIDES, TWO_SLIDES]


def test_slides_of_a_cohort_with_files_of_their_own_stay_one_row_without_words(tmp_path: Path) -> None:
    records = [searched(n, n, annotation=annotation(f"{n}.geojson", d, "tumor")) for n, d in (("a", "1"), ("b", "2"))]
    assert labels(tmp_path, *records) == {"random"}


def test_rows_of_json_and_csv_carry_annotation_reader_and_scale(tmp_path: Path) -> None:
    found = report_of(tmp_path, searched("a"), searched("b", slide={"reader": "tiffslide"}))
    first, second = found.as_json()["explorations"]["rows"]
    assert (first["reader"], second["reader"]) == ("openslide", "tiffslide")
    assert first["mpp_um"] == [0.5, 0.5]
    assert first["annotation"] == {"file": "own.geojson", "sha256": "1" * 64, "classes": ["tumor"]}
    assert first["slides"][0]["annotation"] == first["annotation"]
    lines = [line for line in csv.DictReader(io.StringIO(render(found, Form.CSV))) if line["source"] == "run"]
    assert {line["reader"] for line in lines} == {"openslide", "tiffslide"}
    names = ("mpp_um", "annotation", "annotation_sha256", "annotation_classes")
    assert [lines[0][name] for name in names] == ["0.5", "own.geojson", "1" * 64, "tumor"]
