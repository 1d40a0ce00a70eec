"""Mode B in each form of a report, alone and beside Mode A."""

import csv
import io
import json
import subprocess
import sys
from pathlib import Path

import pytest
from rich.console import Console

from pathnav.report import exploration_document
from pathnav.report.ratios import EFFORTS, RATIOS
from pathnav.report.render import COLUMNS, Form, print_report, render
from pathnav.report.summary import Report, make_report
from pathnav.report.tables import tables
from support.explorations import LOST, exploration, over, report_of, sweep
from support.records import result, write_run


@pytest.fixture
def report(tmp_path: Path) -> Report:
    return report_of(tmp_path, *sweep("abcdef"))


def test_a_folder_with_explorations_alone_has_no_table_of_mode_a(report: Report) -> None:
    text = render(report)
    assert text.startswith("Mode B: run\n24 of 24 searches answered\n") and "IoU" not in text


def test_both_modes_stand_in_one_report(tmp_path: Path) -> None:
    found = report_of(tmp_path, result(), *over("ab"), exploration("c", **LOST))
    text = render(found)
    assert text.startswith(
        "Modes A and B: run\n3 of 4 episodes and searches answered (2 of them searches), 1 lost to infrastructure"
    )
    assert "Mean IoU beside the paper's" in text and "Mode B at K = 6,3,2" in text
    assert found.as_json()["episodes"]["lost"] == 1 and found.as_json()["episodes"]["answered"] == 3


def test_a_report_of_mode_a_alone_has_nothing_of_mode_b(tmp_path: Path) -> None:
    found = report_of(tmp_path, result())
    assert found.as_json()["explorations"] is None
    assert render(found, Form.CSV).splitlines()[0] == ",".join(COLUMNS)
    assert "Mode B" not in render(found)


def test_json_is_complete_and_has_no_nan(report: Report) -> None:
    document = json.loads(json.dumps(report.as_json(), allow_nan=False))
    found = document["explorations"]
    assert (document["format"], found["planned"], found["answered"], found["lost"]) == ("pathnav-report-1", 24, 24, 0)
    assert [row["set"] for row in found["rows"]] == [1] * 4 and found["sets"][0]["slides"] == list("abcdef")
    rate = found["rows"][1]["levels"][1]["rates"]["conditional_hit"]
    assert (rate["value"], rate["numerator"], rate["denominator"], rate["n_slides"]) == (0.3, 36, 120, 6)
    assert found["paper"]["hits"]["rows"][0]["conditional_hit"] == [0.3347, 0.1662, 0.074]


def test_planned_searches_count_before_they_began(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", over("a"), planned=4)
    plan = json.loads((folder / "run.json").read_text())
    plan["explorations"] = [
        {"slide": f"slides/{slide}.svs", "fingerprint": slide, "scorer": "vlm", "schedules": [[6, 3, 2], [3, 3, 3]]}
        for slide in "ab"
    ]
    (folder / "run.json").write_text(json.dumps(plan))
    found = make_report(folder)
    assert found.as_json()["explorations"]["planned"] == 4
    assert "over 1 of 2 slides (b.svs not finished)" in render(found)


def test_csv_has_a_line_a_score_with_its_denominator(report: Report) -> None:
    lines = list(csv.DictReader(io.StringIO(render(report, Form.CSV))))
    assert tuple(lines[0]) == (*COLUMNS, *exploration_document.COLUMNS)
    ours = [line for line in lines if line["source"] == "run"]
    assert len(ours) == 4 * (3 * len(RATIOS) + len(EFFORTS))
    line = next(
        one
        for one in ours
        if (one["scorer"], one["schedule"], one["magnification"], one["metric"])
        == ("vlm", "6,3,2", "10", "unconditional_hit")
    )
    assert (line["value"], line["numerator"], line["denominator"], line["set"]) == ("0.15", "36", "240", "1")
    assert {one["scorer"] for one in lines if one["source"] == "paper"} >= {"GPT-5.2", "Oracle"}


def test_markdown_lines_have_as_many_cells_as_their_header(report: Report) -> None:
    blocks = [block.splitlines() for block in render(report, Form.MARKDOWN).split("\n\n") if block.startswith("|")]
    assert len(blocks) == len(tables(report))
    for block in blocks:
        assert len({line.count(" | ") for line in (block[0], *block[2:])}) == 1


@pytest.mark.parametrize("width", [60, 80, 120, 200])
def test_a_terminal_shows_every_value_whatever_its_width(report: Report, width: int) -> None:
    file = io.StringIO()
    print_report(report, Console(width=width, file=file, color_system=None))
    shown = file.getvalue()
    assert max(len(line) for line in shown.splitlines()) <= width
    for table in tables(report):
        assert all(heading in shown for heading in table.header[table.key_columns :])
        for line in table.lines:
            for entry in line.entries[table.key_columns :]:
                assert entry.value in shown and entry.detail in shown


def test_a_report_of_mode_a_does_not_import_the_explorer(tmp_path: Path) -> None:
    """It takes 0.9 s."""
    folder = write_run(tmp_path / "run", [result()])
    code = (
        "import sys; from pathnav.report import make_report; "
        f"make_report({str(folder)!r}); sys.exit('pathnav.explore' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=60).returncode == 0
