"""A folder that single requests were made into: its report shows all of them, and mixes none."""

import json
from pathlib import Path
from typing import Any

import pytest

from pathnav.report import make_report
from pathnav.report.render import render
from support.commands import Bench, Command
from support.exploring import Exploring
from support.trees import write_slide


@pytest.fixture
def exploring(bench: Bench) -> Exploring:
    return Exploring(bench)


def document(out: Path) -> dict[str, Any]:
    found = make_report(out).as_json()
    assert found["episodes"]["earlier"] == 0
    return found


def test_all_searches_of_a_folder_are_shown_whatever_was_asked_last(pathnav: Command, exploring: Exploring) -> None:
    out, other = exploring.bench.folder / "out", exploring.bench.folder / "b.tif"
    write_slide(other, 0.26)
    wanted = set()
    for scorer in ("random", "oracle"):
        for schedule in ("1,1,1", "2,2,2"):
            asked = exploring.annotated("--scorer", scorer, "--schedule", schedule, "--out", out)
            assert pathnav(*asked).code == 0
            wanted.add((scorer, schedule))
    assert pathnav("explore", other, "--tile-px", 64, "--min-tissue", 0, "--scorer", "random", "--out", out).code == 0
    found = document(out)
    rows = found["explorations"]["rows"]
    told = {(row["scorer"], ",".join(map(str, row["schedule"]))) for row in rows}
    assert told == wanted | {("random", "6,3,2")}
    assert [found["episodes"][name] for name in ("planned", "answered")] == [5, 5]
    said = pathnav("report", out).out
    assert "5 of 5 searches answered" in said and "earlier plans" not in said
    assert pathnav(*exploring.annotated("--scorer", "random", "--schedule", "1,1,1", "--out", out)).code == 0
    assert document(out)["explorations"] == found["explorations"]


def test_rates_over_different_slides_stand_in_different_tables(pathnav: Command, exploring: Exploring) -> None:
    out, other = exploring.bench.folder / "out", exploring.bench.folder / "b.tif"
    write_slide(other, 0.26)
    assert pathnav(*exploring.annotated("--scorer", "random", "--out", out)).code == 0
    assert pathnav(*exploring.annotated("--scorer", "oracle", "--out", out)).code == 0
    truth = ("--annotation", exploring.annotation, "--tumour-class", "tumor")
    both = ("explore", other, "--tile-px", 64, "--min-tissue", 0, *truth, "--scorer", "oracle", "--out", out)
    assert pathnav(*both).code == 0
    rows = document(out)["explorations"]["rows"]
    assert sorted((row["scorer"], row["n_slides"]) for row in rows) == [("oracle", 2), ("random", 1)]
    assert len({row["set"] for row in rows}) == 2
    said = render(make_report(out))
    assert "Tables of different sets rest on different slides" in said
    assert "b.tif not asked" in said


def test_the_papers_footnotes_stand_only_under_tables_with_its_rows(pathnav: Command, exploring: Exploring) -> None:
    out = exploring.bench.folder / "out"
    for schedule in ("3,3,3", "6,3,2"):
        asked = exploring.annotated("--scorer", exploring.scorer("Left"), "--schedule", schedule, "--out", out)
        assert pathnav(*asked).code == 0
    said = render(make_report(out))
    assert "paper: Qwen" in said and "Rows marked 'paper' of hit rates" in said and "\n‡ " in said
    other = ("explore", exploring.bench.slide, "--tile-px", 96, "--min-tissue", 0, "--scorer", "random")
    assert pathnav(*other, "--out", out).code == 0
    said = render(make_report(out))
    assert "paper: " not in said and "Rows marked 'paper' of hit rates" not in said and "‡" not in said


def test_a_slide_whose_search_was_killed_is_not_finished(pathnav: Command, exploring: Exploring) -> None:
    out, other = exploring.bench.folder / "out", exploring.bench.folder / "b.tif"
    write_slide(other, 0.26)
    assert pathnav(*exploring.plain("--scorer", "random", "--out", out)).code == 0
    before = set(out.glob("episodes/*"))
    asked = ("explore", other, "--tile-px", 64, "--min-tissue", 0, "--scorer", "random", "--out", out)
    assert pathnav(*asked).code == 0
    (killed,) = set(out.glob("episodes/*")) - before
    (killed / "result.json").unlink()
    said = render(make_report(out))
    assert "b.tif not finished" in said and "1 not finished; run their commands again to go on" in said


def test_tiles_of_two_sizes_are_two_rows_in_two_tables(pathnav: Command, exploring: Exploring) -> None:
    out = exploring.bench.folder / "out"
    for side in (64, 96):
        asked = ("explore", exploring.bench.slide, "--tile-px", side, "--min-tissue", 0, "--scorer", "random")
        assert pathnav(*asked, "--out", out).code == 0
    assert sorted(row["set"] for row in document(out)["explorations"]["rows"]) == [1, 2]


def test_questions_of_a_folder_are_all_shown_and_said_to_differ(pathnav: Command, bench: Bench) -> None:
    out = bench.folder / "out"
    assert pathnav(*bench.node("--agent", "parent-centre", "--out", out)).code == 0
    assert pathnav(*bench.node("--agent", "random", "--out", out)).code == 0
    assert {row["agent"]: row["n_queries"] for row in document(out)["rows"]} == {"parent-centre": 1, "random": 1}
    assert "not all asked the same questions" not in render(make_report(out))
    assert pathnav(*bench.words("--agent", "random", "--out", out)).code == 0
    assert "the lines at 10x were not all asked the same questions" in render(make_report(out))


def test_a_folder_that_a_scenario_was_run_into_shows_its_latest_plan(pathnav: Command, bench: Bench) -> None:
    out = bench.folder / "out"
    assert pathnav("run", bench.scenario(1), "--out", out).code == 0
    planned = make_report(out).run.planned
    assert pathnav(*bench.node("--agent", "random", "--out", out)).code == 0
    run = make_report(out).run
    assert (run.planned, run.n_earlier, run.is_of_requests) == (1, planned, False)


def test_a_lost_search_is_told_to_go_on_with_its_own_command(pathnav: Command, exploring: Exploring) -> None:
    out = exploring.bench.folder / "out"
    assert pathnav(*exploring.plain("--scorer", "random", "--out", out)).code == 0
    (path,) = out.glob("episodes/*/result.json")
    record = json.loads(path.read_text())
    path.write_text(json.dumps({**record, "outcome": "infra_error", "reason": "gone", "levels": [], "calls": None}))
    assert "run their commands again to go on" in pathnav("report", out).out


@pytest.mark.parametrize(("holds", "says"), [((), "is empty; expected one"), (("a.txt",), "holds no run.json")])
def test_a_folder_without_a_run_is_refused_by_what_it_holds(
    pathnav: Command, tmp_path: Path, holds: tuple[str, ...], says: str
) -> None:
    folder = tmp_path / "none"
    folder.mkdir()
    for name in holds:
        (folder / name).touch()
    said = pathnav("report", folder)
    assert (said.code, said.out) == (2, "")
    assert says in said.sentences[-1] and "`locate` or `explore` with --out" in said.sentences[-1]
