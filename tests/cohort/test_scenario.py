"""Scenario files: what they may say, where their paths belong, how slots are filled."""

import os
from pathlib import Path
from typing import Any

import pytest

from pathnav.cohort.protocol import SCHEDULE, SCHEDULES
from pathnav.cohort.scenario import Scenario
from pathnav.cohort.scenario_file import load_scenario, make_scenario, shipped_scenarios
from pathnav.cohort.scenario_values import Agent, Budget
from pathnav.errors import ConfigError
from support.scenarios import SLIDES, complaints, plain, write


def test_the_shortest_scenario_has_the_protocols_defaults(tmp_path: Path) -> None:
    scenario = load_scenario(write(tmp_path / "short.yaml", plain()))
    assert scenario.name == "short"
    assert scenario.localise.budget == (Budget("base", (10, 7, 5)),)
    assert scenario.localise.magnifications == (2.5, 10, 40)
    assert (scenario.decoding.temperature, scenario.decoding.max_tokens, scenario.localise.views.view_px) == (
        0,
        1024,
        1024,
    )
    assert scenario.model is None


def test_relative_paths_belong_to_the_file_that_names_them(tmp_path: Path) -> None:
    agents = ["random", "mine.py:Mine", {"../b.py:B": {"x": 1}}, "some.module:Class"]
    document = plain(cohort={"file": "../cohorts/c.yaml"}, localise={"agents": agents}, out="out")
    write(
        tmp_path / "cohorts" / "c.yaml",
        {"slides": [{"path": "a.svs", "tree": "t/a.json"}, {"path": "https://x.org/s"}]},
    )
    scenario = load_scenario(write(tmp_path / "scenarios" / "s.yaml", document))
    assert scenario.cohort.slides is not None
    first, second = scenario.cohort.slides
    assert Path(first.path) == tmp_path / "scenarios/../cohorts/a.svs"
    assert Path(str(first.tree)) == tmp_path / "scenarios/../cohorts/t/a.json"
    assert second.path == "https://x.org/s"
    assert [agent.spec for agent in scenario.localise.agents] == [
        "random",
        f"{tmp_path}/scenarios/mine.py:Mine",
        f"{tmp_path}/scenarios/../b.py:B",
        "some.module:Class",
    ]
    assert scenario.out == f"{tmp_path}/scenarios/out"


def test_paths_of_the_command_line_belong_to_its_folder(tmp_path: Path) -> None:
    write(tmp_path / "here" / "c.yaml", SLIDES)
    file = write(tmp_path / "s.yaml", plain(cohort={"sample": {"slides": 1}}))
    sets = ['localise.agents=["mine.py:Mine"]']
    scenario = load_scenario(file, cohort="c.yaml", sets=sets, folder=tmp_path / "here")
    assert scenario.cohort.slides is not None and scenario.cohort.sample is not None
    assert scenario.cohort.slides[0].path == f"{tmp_path}/here/a.svs"
    assert scenario.cohort.sample.slides == 1
    assert scenario.localise.agents == (Agent(f"{tmp_path}/here/mine.py:Mine"),)


def test_the_scenarios_sample_goes_before_the_cohort_files(tmp_path: Path) -> None:
    write(tmp_path / "c.yaml", {"format": "pathnav-cohort-1", **SLIDES, "sample": {"slides": 9}})
    kept = load_scenario(write(tmp_path / "s.yaml", plain(cohort={"file": "c.yaml"})))
    own = load_scenario(write(tmp_path / "s.yaml", plain(cohort={"file": "c.yaml", "sample": {"slides": 2}})))
    assert [one.cohort.sample and one.cohort.sample.slides for one in (kept, own)] == [9, 2]


def test_slots_are_filled_from_the_command_line(tmp_path: Path) -> None:
    scenario = load_scenario(
        write(tmp_path / "s.yaml", plain()),
        model="qwen",
        base_url="http://127.0.0.1:1/v1",
        sets=["localise.budget=[5,3,2]", "cohort.slides.0.mpp=0.5", "localise.views.guides=false", "seed=3"],
    )
    assert scenario.model is not None
    assert (scenario.model.name, scenario.model.base_url) == ("qwen", "http://127.0.0.1:1/v1")
    assert scenario.localise.budget == (Budget("tight", (5, 3, 2)),)
    assert scenario.cohort.slides is not None and scenario.cohort.slides[0].mpp == 0.5
    assert scenario.localise.views.guides is False
    assert scenario.seed == 3


def test_a_slide_of_a_cohort_file_can_be_set(tmp_path: Path) -> None:
    write(tmp_path / "c.yaml", SLIDES)
    file = write(tmp_path / "s.yaml", plain(cohort={"sample": {}}))
    scenario = load_scenario(file, cohort=tmp_path / "c.yaml", sets=["cohort.slides.0.organ=skin"])
    assert scenario.cohort.slides is not None and scenario.cohort.slides[0].organ == "skin"


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
    assert [budget.name for budget in scenario.localise.budget] == names
    assert [budget.at(10) for budget in scenario.localise.budget] == [
        budget.rois[1] for budget in scenario.localise.budget
    ]


def test_one_agent_may_come_twice_only_with_other_options(tmp_path: Path) -> None:
    both = [{"vlm": {"guides": True}}, {"vlm": {"guides": False}}]
    scenario = make_scenario(plain(localise={"agents": both}))
    assert [agent.label for agent in scenario.localise.agents] == ["vlm(guides=true)", "vlm(guides=false)"]
    (line,) = complaints(tmp_path / "s.yaml", plain(localise={"agents": ["random", {"random": {}}]}))
    assert line == "localise.agents: must not hold an agent twice: random"


@pytest.mark.parametrize(
    ("content", "own", "expected"),
    [
        ({"format": "x", **SLIDES}, {}, "format of a cohort file must be 'pathnav-cohort-1'"),
        ({"file": "d.yaml"}, {}, "a cohort file must not name another one"),
        (SLIDES, {"phantoms": {}}, "cohort: phantoms must not stand beside file"),
        ({"slides": [{"path": "a", "tee": "b"}]}, {}, "c.yaml: slides.0.tee: unknown key (did you mean tree?)"),
    ],
)
def test_a_cohort_file_is_held_to_the_same_rules(content: Any, own: Any, expected: str, tmp_path: Path) -> None:
    write(tmp_path / "c.yaml", content)
    (line,) = complaints(tmp_path / "s.yaml", plain(cohort={"file": "c.yaml", **own}))
    assert expected in line


def test_the_api_key_comes_from_the_named_variable_and_is_in_no_record(monkeypatch: pytest.MonkeyPatch) -> None:
    scenario = make_scenario(plain(model={"name": "m", "base_url": "http://h/v1", "api_key_env": "SOME_KEY"}))
    assert scenario.model is not None
    monkeypatch.delenv("SOME_KEY", raising=False)
    with pytest.raises(ConfigError, match="environment variable SOME_KEY is not set"):
        scenario.model.api_key()
    monkeypatch.setenv("SOME_KEY", "s3cret")
    assert scenario.model.api_key() == "s3cret"
    assert "s3cret" not in str(scenario.resolved())


@pytest.mark.parametrize("name", ["quickstart", "mode-a-base", "mode-a-budget-sweep"])
def test_a_resolved_scenario_loads_again_from_anywhere_to_an_equal_one(name: str, tmp_path: Path) -> None:
    write(tmp_path / "c.yaml", SLIDES)
    slots: dict[str, Any] = {} if name == "quickstart" else {"cohort": tmp_path / "c.yaml"}
    scenario = load_scenario(name, sets=["localise.jitter=0.25", "localise.agents=[{vlm: {guides: false}}]"], **slots)
    again = load_scenario(write(tmp_path / "elsewhere" / "again.yaml", scenario.resolved()))
    assert again == scenario
    assert again.resolved() == scenario.resolved()


def test_the_shipped_scenarios_are_those_of_the_protocol(tmp_path: Path) -> None:
    assert list(shipped_scenarios()) == [
        *("mode-a-base", "mode-a-budget-sweep", "mode-b-base", "mode-b-k-sweep", "quickstart")
    ]
    write(tmp_path / "c.yaml", SLIDES)
    base = load_scenario("mode-a-base", cohort=tmp_path / "c.yaml")
    sweep = load_scenario("mode-a-budget-sweep", cohort=tmp_path / "c.yaml")
    assert [b.rois for b in base.localise.budget] == [(10, 7, 5)]
    assert [b.rois for b in sweep.localise.budget] == [(5, 3, 2), (10, 7, 5), (20, 15, 10)]
    for scenario in (base, sweep):
        sample = scenario.cohort.sample
        assert sample is not None
        assert (sample.slides, sample.stratify, sample.queries_per_magnification) == (50, "organ", 1)
    explored = [load_scenario(name, cohort=tmp_path / "c.yaml") for name in ("mode-b-base", "mode-b-k-sweep")]
    schedules = [one.explore.schedule for one in explored if one.explore is not None]
    assert schedules == [(SCHEDULE,), SCHEDULES]
    assert not any(one.localise.agents for one in explored)


def test_the_quickstart_asks_the_stub_and_every_baseline_about_three_phantoms() -> None:
    scenario = load_scenario("quickstart")
    phantoms = scenario.cohort.phantoms
    assert phantoms is not None and (phantoms.count, phantoms.side) == (3, 8192)
    assert scenario.model is None
    every = {"vlm", "random", "grid-centroid", "tissue-density", "tissue-weighted", "parent-centre", "oracle"}
    assert {agent.spec for agent in scenario.localise.agents} == every
    assert scenario.explore is not None and scenario.explore.tile_px == 128
    assert {one.spec for one in scenario.explore.scorers} == {
        *("vlm", "random", "tissue-density", "nuclear-density", "oracle")
    }


def test_a_scenario_of_mode_b_alone_is_written_out_and_read_again(tmp_path: Path) -> None:
    explore = {"scorers": ["random", {"vlm": {"prompt": "mine.txt"}}], "schedule": {"sweep": [[1, 1, 1], [3, 3, 3]]}}
    path = write(tmp_path / "b.yaml", {"format": "pathnav-scenario-1", "cohort": SLIDES, "explore": explore})
    scenario = load_scenario(path)
    assert scenario.explore is not None
    assert scenario.explore.scorers[1].options == {"prompt": str(tmp_path / "mine.txt")}, "paths belong to the file"
    resolved = scenario.resolved()
    assert "localise" not in resolved
    assert load_scenario(write(tmp_path / "again.yaml", resolved)) == scenario


def test_a_scenario_that_asks_nobody_is_refused(tmp_path: Path) -> None:
    document = {"format": "pathnav-scenario-1", "cohort": SLIDES}
    assert complaints(tmp_path / "s.yaml", document) == [
        "needs localise (Mode A: agents), explore (Mode B: scorers), or both"
    ]


def test_a_slide_is_free_of_tumour_or_annotated(tmp_path: Path) -> None:
    slides = {"slides": [{"path": "a.svs", "annotation": "a.geojson", "tumour_free": True}]}
    (line,) = complaints(tmp_path / "s.yaml", plain(cohort=slides))
    assert "tumour_free must not stand beside an annotation" in line


def test_a_home_folder_is_expanded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(os.environ, "HOME", "/home/somebody")
    scenario = make_scenario(plain(cohort={"slides": [{"path": "~/a.svs"}]}))
    assert scenario.cohort.slides is not None and scenario.cohort.slides[0].path == "/home/somebody/a.svs"


def test_a_scenario_cannot_be_changed_after_it_was_checked() -> None:
    scenario = make_scenario(plain())
    assert isinstance(scenario, Scenario)
    with pytest.raises(ValueError, match="frozen"):
        scenario.seed = 9  # type: ignore[misc]


def with_key(path: Path, **more: Any) -> str | None:
    scenario = make_scenario(plain(model={"name": "m", "base_url": "http://h/v1", "api_key_file": str(path), **more}))
    assert scenario.model is not None
    return scenario.model.api_key()


def test_the_api_key_may_be_in_a_file_and_is_in_no_record(tmp_path: Path) -> None:
    (tmp_path / "key.txt").write_text("  s3cret\n")
    scenario = make_scenario(plain(model={"name": "m", "api_key_file": "key.txt"}), folder=tmp_path)
    assert scenario.model is not None
    assert scenario.model.api_key() == "s3cret"
    assert scenario.model.api_key_file == f"{tmp_path}/key.txt"
    assert "s3cret" not in str(scenario.resolved())


@pytest.mark.parametrize("content", ["", " \n", "two words", "two\nlines", b"\xff\xfe\x00"])
def test_a_file_that_holds_no_key_is_refused_and_its_content_is_not_told(content: str | bytes, tmp_path: Path) -> None:
    path = tmp_path / "key.txt"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(ConfigError, match=r"model.api_key_file: .* (must hold the key|is not a text file)") as caught:
        with_key(path)
    assert "words" not in str(caught.value) and len(str(caught.value).splitlines()) == 1


def test_a_key_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"model.api_key_file: .* cannot be read: No such file"):
        with_key(tmp_path / "none.txt")


def test_a_key_has_one_place(tmp_path: Path) -> None:
    model = {"name": "m", "api_key_env": "KEY", "api_key_file": "key.txt"}
    (line,) = complaints(tmp_path / "s.yaml", plain(model=model))
    assert line == "model: api_key_env and api_key_file both say where the key is: give one of them"
