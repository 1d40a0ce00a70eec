"""Scenario files: what they may say, where their paths belong, how slots are filled."""

import os
from pathlib import Path
from typing import Any

import pytest

from pathnav.cohort.protocol import SCHEDULE, SCHEDULES
from pathnav.cohort.scenario import Agent, Budget, Scenario
from pathnav.cohort.scenario_file import load_scenario, make_scenario, shipped_scenarios
from pathnav.errors import ConfigError
from support.scenarios import SLIDES, complaints, plain, write


def test_the_shortest_scenario_has_the_protocols_defaults(tmp_path: Path) -> None:
    scenario = load_scenario(write(tmp_path / "short.yaml", plain()))
    assert (scenario.name, scenario.model) == ("short", None)
    assert scenario.localise.budget == (Budget("base", (10, 7, 5)),)
    assert scenario.localise.magnifications == (2.5, 10, 40)
    decoding, views = scenario.decoding, scenario.localise.views
    assert (decoding.temperature, decoding.max_tokens, views.view_px) == (0, 1024, 1024)


def test_relative_paths_belong_to_the_file_that_names_them(tmp_path: Path) -> None:
    agents = ["random", "mine.py:Mine", {"../b.py:B": {"x": 1}}, "some.module:Class"]
    document = plain(cohort={"file": "../cohorts/c.yaml"}, localise={"agents": agents}, out="out")
    document["explore"] = {"scorers": [{"vlm": {"prompt": "mine.txt"}}]}
    slides = [{"path": "a.svs", "tree": "t/a.json"}, {"path": "https://x.org/s"}]
    write(tmp_path / "cohorts" / "c.yaml", {"slides": slides})
    scenario = load_scenario(write(tmp_path / "scenarios" / "s.yaml", document))
    assert scenario.cohort.slides is not None and scenario.explore is not None
    first, second = scenario.cohort.slides
    assert Path(first.path) == tmp_path / "scenarios/../cohorts/a.svs"
    assert Path(str(first.tree)) == tmp_path / "scenarios/../cohorts/t/a.json"
    assert second.path == "https://x.org/s"
    here = f"{tmp_path}/scenarios"
    specs = ["random", f"{here}/mine.py:Mine", f"{here}/../b.py:B", "some.module:Class"]
    assert [agent.spec for agent in scenario.localise.agents] == specs
    assert (scenario.out, scenario.explore.scorers[0].options) == (f"{here}/out", {"prompt": f"{here}/mine.txt"})


def test_paths_in_a_merged_mapping_and_in_an_alias_are_absolute_too(tmp_path: Path) -> None:
    text = """format: pathnav-scenario-1
cohort:
  slides: [&a {path: a.svs, tree: t.json}, {<<: *a, path: b.svs}]
localise: {agents: [random]}
"""
    scenario = load_scenario(write(tmp_path / "s.yaml", text))
    found = [(slide.path, slide.tree) for slide in scenario.cohort.slides or ()]
    assert found == [(f"{tmp_path}/{name}.svs", f"{tmp_path}/t.json") for name in "ab"]


def test_paths_of_the_command_line_belong_to_its_folder(tmp_path: Path) -> None:
    write(tmp_path / "here" / "c.yaml", SLIDES)
    file = write(tmp_path / "s.yaml", plain(cohort={"sample": {"slides": 1}}))
    sets = ['localise.agents=["mine.py:Mine"]']
    scenario = load_scenario(file, cohort="c.yaml", sets=sets, folder=tmp_path / "here")
    assert scenario.cohort.slides is not None and scenario.cohort.sample is not None
    assert scenario.cohort.slides[0].path == f"{tmp_path}/here/a.svs"
    assert scenario.cohort.sample.slides == 1
    assert scenario.localise.agents == (Agent(f"{tmp_path}/here/mine.py:Mine"),)


def test_a_home_folder_is_expanded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(os.environ, "HOME", "/home/somebody")
    scenario = make_scenario(plain(cohort={"slides": [{"path": "~/a.svs"}]}))
    assert scenario.cohort.slides is not None and scenario.cohort.slides[0].path == "/home/somebody/a.svs"


def test_the_scenarios_sample_goes_before_the_cohort_files(tmp_path: Path) -> None:
    write(tmp_path / "c.yaml", {"format": "pathnav-cohort-1", **SLIDES, "sample": {"slides": 9}})
    kept = load_scenario(write(tmp_path / "s.yaml", plain(cohort={"file": "c.yaml"})))
    own = load_scenario(write(tmp_path / "s.yaml", plain(cohort={"file": "c.yaml", "sample": {"slides": 2}})))
    assert [one.cohort.sample and one.cohort.sample.slides for one in (kept, own)] == [9, 2]


def test_slots_are_filled_from_the_command_line(tmp_path: Path) -> None:
    write(tmp_path / "c.yaml", SLIDES)
    scenario = load_scenario(
        write(tmp_path / "s.yaml", plain(cohort={"sample": {}})),
        cohort=tmp_path / "c.yaml",
        model="qwen",
        base_url="http://127.0.0.1:1/v1",
        prices="p.yaml",
        folder=tmp_path,
        sets=["localise.budget=[5,3,2]", "cohort.slides.0.mpp=0.5", "localise.views.guides=false", "seed=3"],
    )
    assert scenario.model is not None and scenario.cohort.slides is not None
    assert (scenario.model.name, scenario.model.base_url) == ("qwen", "http://127.0.0.1:1/v1")
    assert scenario.localise.budget == (Budget("tight", (5, 3, 2)),)
    assert scenario.cohort.slides[0].mpp == 0.5
    assert scenario.localise.views.guides is False
    assert (scenario.seed, scenario.prices) == (3, f"{tmp_path}/p.yaml")


@pytest.mark.parametrize(
    ("written", "names"),
    [
        ("loose", ["loose"]),
        ([10, 7, 5], ["base"]),
        ([4, 3, 2], ["4-3-2"]),
        ({"sweep": ["tight", [10, 7, 5], [1, 1, 1]]}, ["tight", "base", "1-1-1"]),
    ],
)
def test_a_budget_is_a_name_three_numbers_or_a_sweep(written: Any, names: list[str]) -> None:
    scenario = make_scenario(plain(localise={"agents": ["random"], "budget": written}))
    budgets = scenario.localise.budget
    assert [budget.name for budget in budgets] == names
    assert [budget.at(10) for budget in budgets] == [budget.rois[1] for budget in budgets]


def test_one_agent_may_come_twice_only_with_other_options(tmp_path: Path) -> None:
    both = [{"vlm": {"guides": True}}, {"vlm": {"guides": False}}]
    scenario = make_scenario(plain(localise={"agents": both}))
    assert [agent.label for agent in scenario.localise.agents] == ["vlm(guides=true)", "vlm(guides=false)"]
    (line,) = complaints(tmp_path / "s.yaml", plain(localise={"agents": ["random", {"random": {}}]}))
    assert line == "localise.agents: must not name one twice: random"


@pytest.mark.parametrize("name", ["quickstart", "mode-a-base", "mode-b-k-sweep"])
def test_a_resolved_scenario_loads_again_from_anywhere_to_an_equal_one(name: str, tmp_path: Path) -> None:
    write(tmp_path / "c.yaml", SLIDES)
    slots: dict[str, Any] = {} if name == "quickstart" else {"cohort": tmp_path / "c.yaml"}
    scenario = load_scenario(name, sets=["localise.jitter=0.25", "localise.agents=[{vlm: {guides: false}}]"], **slots)
    again = load_scenario(write(tmp_path / "elsewhere" / "again.yaml", scenario.resolved()))
    assert again == scenario
    assert again.resolved() == scenario.resolved()


def test_the_shipped_scenarios_are_those_of_the_protocol(tmp_path: Path) -> None:
    names = ["mode-a-base", "mode-a-budget-sweep", "mode-b-base", "mode-b-k-sweep", "quickstart"]
    assert list(shipped_scenarios()) == names
    write(tmp_path / "c.yaml", SLIDES)
    *modes, quickstart = (load_scenario(name, cohort=tmp_path / "c.yaml") for name in names)
    budgets = [[b.rois for b in one.localise.budget] for one in modes[:2]]
    assert budgets == [[(10, 7, 5)], [(5, 3, 2), (10, 7, 5), (20, 15, 10)]]
    for scenario in modes[:2]:
        sample = scenario.cohort.sample
        assert sample is not None
        assert (sample.slides, sample.stratify, sample.queries_per_magnification) == (50, "organ", 1)
    schedules = [one.explore.schedule for one in modes[2:] if one.explore is not None]
    assert schedules == [(SCHEDULE,), SCHEDULES]
    assert not any(one.localise.agents or "localise" in one.resolved() for one in modes[2:])
    assert quickstart.model is None and quickstart.explore is not None
    every = {"vlm", "random", "grid-centroid", "tissue-density", "tissue-weighted", "parent-centre", "oracle"}
    assert {agent.spec for agent in quickstart.localise.agents} == every
    phantoms = load_scenario("quickstart").cohort.phantoms
    assert phantoms is not None and (phantoms.count, phantoms.side) == (3, 8192)


def test_a_scenario_cannot_be_changed_after_it_was_checked() -> None:
    scenario = make_scenario(plain())
    assert isinstance(scenario, Scenario)
    with pytest.raises(ValueError, match="frozen"):
        scenario.seed = 9  # type: ignore[misc]


def test_the_api_key_comes_from_a_variable_or_a_file_and_is_in_no_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOME_KEY", "s3cret")
    (tmp_path / "key.txt").write_text("  s3cret\n")
    for where in ({"api_key_env": "SOME_KEY"}, {"api_key_file": "key.txt"}):
        scenario = make_scenario(plain(model={"name": "m", "base_url": "http://h/v1", **where}), folder=tmp_path)
        assert scenario.model is not None and scenario.model.api_key() == "s3cret"
        assert "s3cret" not in str(scenario.resolved())
    monkeypatch.delenv("SOME_KEY")
    with pytest.raises(ConfigError, match="SOME_KEY is not set"):
        make_scenario(plain(model={"name": "m", "api_key_env": "SOME_KEY"})).model.api_key()  # type: ignore[union-attr]


@pytest.mark.parametrize("content", ["", " \n", "two words", "two\nlines", b"\xff\xfe\x00", None])
def test_a_file_that_holds_no_key_is_refused_and_its_content_is_not_told(
    content: str | bytes | None, tmp_path: Path
) -> None:
    path = tmp_path / "key.txt"
    if content is not None:
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    model = make_scenario(plain(model={"name": "m", "base_url": "http://h/v1", "api_key_file": str(path)})).model
    assert model is not None
    with pytest.raises(ConfigError, match=r"model.api_key_file: .*key\.txt") as caught:
        model.api_key()
    assert "words" not in str(caught.value) and len(str(caught.value).splitlines()) == 1
