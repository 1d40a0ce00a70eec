"""`pathnav run` with Mode B: one scenario, one folder, each tile scored once for all schedules."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from support.commands import Bench, Command
from support.exploring import Exploring
from support.trees import write_slide

SWEEP = {"sweep": [[1, 1, 1], [3, 3, 3], [3, 2, 1]]}


def records(out: Path) -> list[dict[str, Any]]:
    """Return all results of Mode B in a run folder."""
    found = [json.loads(path.read_text()) for path in sorted(out.glob("episodes/*/result.json"))]
    return [one for one in found if one["format"] == "pathnav-exploration-1"]


@pytest.fixture
def exploring(bench: Bench) -> Exploring:
    return Exploring(bench)


def scenario(exploring: Exploring, **changes: Any) -> Path:
    """Write a scenario of Mode B over the bench's slide and return its path."""
    slide = {"path": str(exploring.bench.slide), "annotation": str(exploring.annotation), "tumour_classes": ["tumor"]}
    document = {
        "format": "pathnav-scenario-1",
        "cohort": {"slides": [slide]},
        "explore": {
            "scorers": [{exploring.scorer("Left"): {"notes": str(exploring.bench.folder / "notes.txt")}}, "oracle"],
            "schedule": SWEEP,
            "tile_px": 64,
            "min_tissue": 0,
        },
        "seed": 3,
        **changes,
    }
    path = exploring.bench.folder / "b.yaml"
    path.write_text(yaml.safe_dump(document), encoding="utf-8")
    return path


def test_a_sweep_asks_each_tile_once_and_is_kept(pathnav: Command, exploring: Exploring) -> None:
    out, notes = exploring.bench.folder / "out", exploring.bench.folder / "notes.txt"
    assert pathnav("run", scenario(exploring), "--out", out).code == 0
    asked = notes.read_text().splitlines()
    assert len(asked) == len(set(asked)) > 0
    found = records(out)
    assert len(found) == 6
    mine = [one for one in found if one["scorer"] == "Left"]
    assert max(one["calls"] for one in mine) <= len(asked)
    assert {tuple(one["schedule"]) for one in mine} == {(1, 1, 1), (3, 3, 3), (3, 2, 1)}
    before = {path: path.read_bytes() for path in out.glob("**/*.json")}
    again = pathnav("run", scenario(exploring), "--out", out)
    assert "6 kept from before" in again.err
    assert notes.read_text().splitlines() == asked
    assert {path: path.read_bytes() for path in out.glob("**/*.json")} == before


def test_both_modes_share_a_folder(pathnav: Command, exploring: Exploring) -> None:
    cohort = yaml.safe_load(exploring.bench.scenario(slides=1).read_text())["cohort"]
    cohort["slides"][0] |= {"annotation": str(exploring.annotation), "tumour_classes": ["tumor"]}
    localise = {"agents": ["parent-centre"], "magnifications": [10]}
    out = exploring.bench.folder / "out"
    said = pathnav("run", scenario(exploring, cohort=cohort, localise=localise), "--out", out)
    assert said.code == 0, said.err
    kinds = [json.loads(path.read_text())["format"] for path in out.glob("episodes/*/result.json")]
    assert {"pathnav-result-1", "pathnav-exploration-1"} == set(kinds)
    listed = json.loads((out / "run.json").read_text())["episodes"]
    assert sorted(listed) == sorted(path.parent.name for path in out.glob("episodes/*/result.json"))


def test_a_slide_without_tumour_has_counts_and_no_rates(pathnav: Command, exploring: Exploring) -> None:
    write_slide(exploring.bench.folder / "free.tif")
    slides = [{"path": "free.tif", "tumour_free": True}, {"path": str(exploring.bench.slide)}]
    explore = {"scorers": ["random"], "tile_px": 64, "min_tissue": 0}
    path = scenario(exploring, cohort={"slides": slides}, explore=explore)
    assert pathnav("run", path, "--out", exploring.bench.folder / "out").code == 0
    (record,) = records(exploring.bench.folder / "out")
    for level in record["levels"]:
        assert (level["positives"], level["kept_positives"], level["unconditional_hit"]) == (0, 0, None)
        assert level["kept"] > 0


def test_a_broken_scorer_loses_its_searches_alone(pathnav: Command, exploring: Exploring) -> None:
    explore = {"scorers": [exploring.scorer("Fails"), "random"], "tile_px": 64, "min_tissue": 0}
    said = pathnav("run", scenario(exploring, explore=explore), "--out", exploring.bench.folder / "out")
    assert said.code == 1
    assert "1 of 2 searches were lost to failures: " in said.err
    outcomes = {one["scorer"]: one["outcome"] for one in records(exploring.bench.folder / "out")}
    assert outcomes == {"Fails": "infra_error", "random": "finished"}


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"cohort": {"slides": [{"path": "a.tif"}]}}, "no slide of its cohort has an annotation"),
        ({"explore": {"scorers": ["randm"]}}, "did you mean random"),
        ({"explore": {"scorers": ["random"], "schedule": [1, 2]}}, "explore.schedule: must be three whole numbers"),
        ({"explore": {"scorers": [{"random": {"sed": 1}}]}}, "scorer 'random' has no option 'sed'; it has: seed"),
    ],
)
def test_what_is_wrong_with_a_scenario_is_one_sentence(
    pathnav: Command, exploring: Exploring, changes: dict[str, Any], says: str
) -> None:
    path = scenario(exploring, **changes)
    before = exploring.bench.files()
    said = pathnav("run", path, "--out", exploring.bench.folder / "out")
    assert (said.code, said.out) == (2, "")
    assert says in said.sentences[-1]
    assert exploring.bench.files() == before
