"""Scores are made anew from records alone, also where somebody or a new metric made them others."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pathnav.geometry import Box
from pathnav.report.load import load_run
from pathnav.report.rescore import Rescored, rescored
from support.commands import Bench, Command
from support.explorations import exploration
from support.exploring import Exploring
from support.records import result as episode_record
from support.records import write_run
from support.trees import SLIDE_HEIGHT, SLIDE_WIDTH

WHOLE = [0, 0, SLIDE_WIDTH, SLIDE_HEIGHT]
AGENTS = ["parent-centre", "random", "oracle"]


@pytest.fixture
def run(bench: Bench, pathnav: Command) -> Path:
    """Run agents with single boxes, with draws and without a box over one slide, and return the run folder."""
    agents = [*AGENTS, bench.agent("Fails"), bench.agent("Looker")]
    assert pathnav("run", bench.scenario(1, agents=agents), "--out", bench.folder / "out").code == 0
    return bench.folder / "out"


def edit(run: Path, change: Callable[[dict[str, Any]], object], agent: str | None = None) -> int:
    """Change the results of an agent, or of all, on disk; return how many."""
    paths = list((run / "episodes").glob("*/result.json"))
    changed = 0
    for path in paths:
        result = json.loads(path.read_text())
        if agent in (None, result.get("agent")):
            change(result)
            path.write_text(json.dumps(result))
            changed += 1
    return changed


def with_whole(result: dict[str, Any]) -> None:
    """Add what newer records hold."""
    result["slide"]["whole"] = WHOLE
    result["equivalents"] = [[200, 200, 400, 400], [700, 500, 400, 400]]


def again(run: Path) -> Rescored:
    return rescored(load_run(run))


def test_scores_of_now_are_those_of_the_record(run: Path) -> None:
    edit(run, with_whole)
    before = load_run(run)
    found = rescored(before)
    assert (found.differences, found.lacking) == ((), ())
    assert found.run.results == before.results


def test_a_changed_score_is_made_anew_and_told(run: Path, pathnav: Command) -> None:
    edit(run, with_whole)
    truth = pathnav("report", run, "--format", "csv").out
    assert edit(run, lambda result: result.update(iou=0.9, iou_any=0.9), "parent-centre") == 2
    assert pathnav("report", run, "--format", "csv").out != truth
    said = pathnav("report", run, "--format", "csv", "--rescore")
    assert (said.code, said.out) == (0, truth)
    assert sum(".iou: recorded 0.9, now 0." in line for line in said.sentences) == 2
    assert sum(".iou_any: recorded 0.9, now 0." in line for line in said.sentences) == 2


def test_no_slide_is_opened(run: Path, bench: Bench) -> None:
    edit(run, with_whole)
    for slide in bench.folder.glob("*.tif"):
        slide.unlink()
    assert again(run).differences == ()


def test_another_metric_changes_the_scores_of_every_agent(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    edit(run, with_whole)

    def quarter(boxes: np.ndarray[Any, Any], target: Box) -> np.ndarray[Any, Any]:
        return np.full(len(boxes), 0.25)

    monkeypatch.setattr("pathnav.run.scoring.ious", quarter)
    found = again(run).run.results
    assert {result.agent: result.iou for result in found} == {
        **dict.fromkeys(["parent-centre", "random", "oracle", "Looker"], pytest.approx(0.25)),
        "Fails": 0.0,
    }


def test_a_record_that_lacks_something_says_what(run: Path) -> None:
    edit(run, lambda result: [result["slide"].pop("whole", None), result.pop("equivalents", None)])
    edit(run, lambda result: result.update(iou=0.9, iou_any=0.8))
    found = again(run)
    said = "\n".join(found.lacking)
    assert "results lack equivalents, from which iou_any follow: as recorded" in said
    assert "lack slide.whole, from which iou and hit_share and iou_fallback follow" in said
    assert "lack slide.whole, from which iou_fallback follow" in said
    by_agent = {result.agent: result for result in found.run.results}
    assert (by_agent["oracle"].iou, by_agent["Fails"].iou, by_agent["Fails"].iou_any) == (1.0, 0.0, 0.0)
    assert (by_agent["random"].iou, by_agent["oracle"].iou_any) == (0.9, 0.8)


def test_draws_that_are_not_written_out_stay_as_recorded(run: Path) -> None:
    edit(run, with_whole)
    for path in (run / "episodes").glob("*/events.jsonl"):
        path.write_text(path.read_text().replace('"draw_boxes": [', '"draw_boxes": null, "other": ['))
    said = again(run)
    assert said.differences == ()
    (line,) = said.lacking
    keys = [one.key for one in load_run(run).results if one.agent == "random"]
    assert "lack the draws of the report, of which up to 1,000 are written out" in line
    assert all(f"random {key}" in line for key in keys)


def test_what_nobody_knows_stays_unknown(tmp_path: Path) -> None:
    unknown = episode_record(target=None, scored_target=None, iou=None, iou_fallback=None, iou_any=None)
    lost = episode_record(outcome="infra_error", iou=None, iou_fallback=None, iou_any=None, box=None, reported=None)
    found = again(write_run(tmp_path / "run", [unknown, lost]))
    assert (found.differences, found.lacking) == ((), ())


def test_rates_of_a_search_follow_from_its_counts(bench: Bench, pathnav: Command, tmp_path: Path) -> None:
    exploring, out = Exploring(bench), bench.folder / "out"
    assert pathnav(*exploring.annotated("--scorer", "random", "--out", out)).code == 0
    assert again(out).differences == ()
    edit(out, lambda result: result["levels"][0].update(unconditional_hit=0.123))
    (line,) = again(out).differences
    assert "2.5x, unconditional_hit: recorded 0.123, now " in line
    assert again(write_run(tmp_path / "run", [exploration(counts=None)])).differences == ()


def test_a_rescoring_of_nothing_says_so_and_is_no_success(bench: Bench, pathnav: Command) -> None:
    out = bench.folder / "out"
    assert pathnav(*bench.words("--agent", "random", "--out", out)).code == 0
    said = pathnav("report", out, "--rescore")
    assert (said.code, said.sentences[-1][:18]) == (1, "rescored: nothing;")
    assert pathnav("report", out).out == said.out


def test_a_rescoring_tells_how_many_scores_it_made(run: Path, pathnav: Command) -> None:
    edit(run, with_whole)
    said = pathnav("report", run, "--rescore")
    count = again(run).n_scores
    assert count > 20
    assert (said.code, said.sentences[-1]) == (
        0,
        f"rescored: all {count} scores that were made anew are the recorded ones",
    )
