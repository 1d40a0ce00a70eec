"""A run of a sweep: every combination is asked, what two ask alike is asked once, and the record keeps the axes."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from pathnav.cohort.scenario_file import load_scenario
from pathnav.errors import ConfigError
from pathnav.model import ChatSettings
from pathnav.run.open_slides import OpenSlides
from pathnav.run.scenario_plan import needs_model
from pathnav.run.variants import RunPlan, plan_run
from support.chat_server import ChatServer, call
from support.commands import Bench, Command

REPORT = {"conclusion": "here", "bbox": [600, 600, 100, 100], "confidence": 0.7}
NAMED = 'model={name: m, base_url: "http://127.0.0.1:1/v1"}'
MODEL = ChatSettings(base_url="http://127.0.0.1:1/v1", model="m")


def planned(path: Path, *sets: str) -> RunPlan:
    with OpenSlides() as slides:
        return plan_run(load_scenario(path, sets=sets), MODEL, slides, lambda text: None)


def results(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(path.read_text()) for path in folder.glob("episodes/*/result.json")]


def test_what_two_combinations_ask_alike_is_planned_with_the_first(bench: Bench) -> None:
    scenario = bench.scenario(slides=1, agents=["vlm", "parent-centre"])
    plan = planned(scenario, NAMED, "decoding.temperature={sweep: [0, 1]}")
    counts = [(dict(one.settings), len(one.episodes), one.shared) for one in plan.variants]
    assert counts == [({"decoding.temperature": 0}, 4, 0), ({"decoding.temperature": 1}, 2, 2)]
    assert {one.agent.name for one in plan.variants[1].episodes} == {"vlm"}
    keys = [one.key for one in plan.episodes]
    assert len(set(keys)) == len(keys) == 6
    assert len(plan.cases) == 2, "a case is kept once"


def test_controls_seeds_and_options_make_episodes_of_their_own(bench: Bench) -> None:
    scenario = bench.scenario(slides=1, agents=["vlm"], magnifications=[40])
    axes = {
        "localise.jitter": "[0, 0.25]",
        "localise.blank_images": "[false, true]",
        "localise.views.view_px": "[512, 1024]",
        "seed": "[1, 2]",
    }
    plan = planned(scenario, *(f"{place}={{sweep: {values}}}" for place, values in axes.items()))
    assert len(plan.variants) == 16
    assert [len(one.episodes) for one in plan.variants] == [2] * 16
    assert len({episode.key for episode in plan.episodes}) == 32


def test_a_model_in_one_combination_alone_is_needed(bench: Bench) -> None:
    scenario = load_scenario(bench.scenario(), sets=["localise.agents={sweep: [[random], [vlm]]}"])
    assert needs_model(scenario)


def test_a_combination_without_the_model_that_the_others_have_is_refused(bench: Bench) -> None:
    scenario = bench.scenario(agents=["vlm"])
    with pytest.raises(ConfigError, match="asks a chat endpoint: name its model"):
        planned(scenario, 'model={sweep: [{name: m, base_url: "http://127.0.0.1:1/v1"}, null]}')


def test_searches_of_a_sweep_are_planned_once(bench: Bench) -> None:
    document = yaml.safe_load(bench.scenario(slides=1).read_text())
    (slide,) = document["cohort"]["slides"]
    slide["tumour_free"] = True
    del document["localise"]
    document["explore"] = {"scorers": ["random", "vlm"], "tile_px": {"sweep": [64, 128]}}
    path = bench.folder / "explore.yaml"
    path.write_text(yaml.safe_dump(document))
    plan = planned(path, NAMED, "decoding.temperature={sweep: [0, 1]}")
    assert [(len(one.searches), one.shared) for one in plan.variants] == [(2, 0), (2, 0), (1, 1), (1, 1)]


def test_a_run_of_a_sweep_asks_all_combinations_and_keeps_the_axes(pathnav: Command, bench: Bench) -> None:
    scenario = bench.scenario(slides=1, agents=["vlm", "parent-centre"], magnifications=[40])
    sets = ("--set", "localise.views.view_px={sweep: [512, 1024]}", "--set", "localise.jitter={sweep: [0, 0.25]}")
    with ChatServer(lambda request: call("finish_and_report", {**REPORT, "bbox": [0, 0, 2000, 1600]})) as server:
        asked = ("run", scenario, "--out", "kept", "--model", "m", "--base-url", server.base_url, *sets)
        said = pathnav(*asked)
        assert said.code == 0, said.err
        assert len(server.requests) == 8
        assert pathnav(*asked).code == 0
        assert len(server.requests) == 8, "a sweep continues as any run"
    found = results(bench.folder / "kept")
    assert len(found) == 12
    vlm = {(one["settings"]["view_px"], one["controls"].get("jitter")) for one in found if one["agent"] == "vlm"}
    assert vlm == {(512, None), (512, 0.25), (1024, None), (1024, 0.25)}
    description = json.loads((bench.folder / "kept" / "run.json").read_text())
    assert description["scenario"]["localise"]["jitter"] == {"sweep": [0.0, 0.25]}
    assert description["scenario"]["localise"]["views"]["view_px"] == {"sweep": [512, 1024]}
    assert len(description["episodes"]) == 12


def test_rows_of_every_combination_are_told_apart(pathnav: Command, bench: Bench) -> None:
    scenario = bench.scenario(agents=["random", "parent-centre"])
    sets = ("--set", "localise.jitter={sweep: [0, 0.25]}", "--set", "seed={sweep: [1, 2]}")
    said = pathnav("run", scenario, "--out", "kept", *sets)
    table = said.out.split("\n\n")[1].splitlines()[3:]
    labels = [line.split("  ")[0] for line in table if "paper" not in line]
    assert sorted(labels) == sorted(
        f"{name} ({control}; seed {seed})"
        for seed in (1, 2)
        for name, control in [
            ("random", "no control"),
            ("random", "jitter 0.25"),
            ("parent-centre", "no control"),
            ("jittered-parent", "jitter 0.25"),
        ]
    )
