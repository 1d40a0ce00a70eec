"""Scenario files that cannot be run: each is refused before anything is done, in sentences that name the key."""

from pathlib import Path
from typing import Any

import pytest

from pathnav.cohort.scenario_file import load_scenario
from pathnav.errors import ConfigError
from support.scenarios import SLIDES, complaints, plain, write


@pytest.mark.parametrize(
    ("assignment", "expected"),
    [
        ("localise.budget", "--set takes KEY=VALUE"),
        ("=3", "--set takes KEY=VALUE"),
        ("localise..budget=3", "--set takes KEY=VALUE"),
        ("seed=[1", "--set seed: is not YAML"),
        ("format.x=1", "--set format.x: format is \"pathnav-scenario-1\" and has no 'x' to be set"),
        ("cohort.slides.4.mpp=1", "--set cohort.slides.4.mpp: cohort.slides is [{"),
        ("localise.budgets=base", "--set localise.budgets: unknown key (did you mean budget?)"),
    ],
)
def test_a_slot_that_cannot_be_filled_is_refused(assignment: str, expected: str, tmp_path: Path) -> None:
    (line,) = complaints(tmp_path / "s.yaml", plain(), sets=[assignment])
    assert line.startswith(expected)


@pytest.mark.parametrize(
    "budget", ["big", 3, [1, 2], [0, 1, 1], [1, 1, -1], [1.5, 1, 1], [True, 1, 1], {"sweep": []}, {"x": 1}]
)
def test_other_budgets_are_refused(budget: Any, tmp_path: Path) -> None:
    (line,) = complaints(tmp_path / "s.yaml", plain(localise={"agents": ["random"], "budget": budget}))
    assert line.startswith("localise.budget: must be ")


def test_numbers_that_no_one_can_mean_are_refused_as_on_the_command_line(tmp_path: Path) -> None:
    budget = plain(localise={"agents": ["random"], "budget": [5, 3, 100_001]})
    said = complaints(tmp_path / "a.yaml", budget)
    assert said == ["localise.budget: budget must be at most 100,000 ROIs, got 100001"]
    many = plain(model={"name": "m", "base_url": "http://127.0.0.1:9/v1", "concurrency": 1025})
    said = complaints(tmp_path / "b.yaml", many)
    assert said == ["model.concurrency: concurrency must be at most 1,024, got 1025"]


def test_a_sweep_that_holds_a_budget_twice_is_refused(tmp_path: Path) -> None:
    localise = {"agents": ["random"], "budget": {"sweep": ["base", [10, 7, 5]]}}
    assert complaints(tmp_path / "s.yaml", plain(localise=localise)) == [
        'localise.budget: sweep must not hold a budget twice, got ["base", [10, 7, 5]]'
    ]


@pytest.mark.parametrize("agents", [[], "random", [3], [{}], [{"a": {}, "b": {}}], [{"vlm": 3}], [""], None])
def test_agents_that_are_not_names_with_options_are_refused(agents: Any, tmp_path: Path) -> None:
    (line,) = complaints(tmp_path / "s.yaml", plain(localise={"agents": agents}))
    assert line.startswith("localise.agents: ")


def test_everything_that_is_wrong_is_told_at_once_with_its_path(tmp_path: Path) -> None:
    document = plain(
        cohort={"slides": [{"path": "a.svs", "tre": "t.json"}, {"mpp": 30}]},
        localise={"agents": ["random"], "budgets": "base", "view_px": 9, "repeats": 0},
        model={"name": "m", "base_url": "http://me:secret@host/v1"},
        explore={"scorers": [], "tile": 3, "schedule": [6, 3]},
        seed="7",
    )
    assert complaints(tmp_path / "s.yaml", document) == [
        "cohort.slides.0.tre: unknown key (did you mean tree?)",
        "cohort.slides.1.path: missing",
        "cohort.slides.1.mpp: must be less than or equal to 20, got 30",
        "model.base_url: must not hold a user name or password; name an environment variable in api_key_env",
        "localise.repeats: must be greater than or equal to 1, got 0",
        "localise.budgets: unknown key (did you mean budget?)",
        "localise.view_px: unknown key (did you mean localise.views.view_px?)",
        "explore.scorers: must be a list of scorers, got []",
        "explore.schedule: must be three whole numbers of at least 1 such as [6, 3, 2], got [6, 3]",
        "explore.tile: unknown key (did you mean tile_px?)",
        'seed: must be a valid integer, got "7"',
    ]


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        ("a: [", "is not YAML"),
        ("- 1", "a scenario must be a mapping of keys to values, got [1]"),
        ("3: 4", "a scenario must be a mapping of keys to values"),
        ("seed: 1\nseed: 2", "is not YAML: key 'seed' stands twice"),
        (
            {**plain(), "format": "pathnav-scenario-2"},
            "format: must be 'pathnav-scenario-1', got \"pathnav-scenario-2\"",
        ),
        ({"cohort": SLIDES, "localise": {"agents": ["random"]}}, "format: missing; the first line of a scenario is"),
        ({"format": "pathnav-scenario-1", "localise": {"agents": ["a"]}}, "cohort: missing; name its slides"),
        (plain(cohort={"slides": []}), "cohort: slides must name at least one slide"),
        (plain(cohort={**SLIDES, "phantoms": {}}), "cohort: needs either slides, or phantoms, or a file"),
        (plain(cohort={"slides": [{"path": "a"}, {"path": "./a"}]}), "cohort: slides must not be named twice"),
        (plain(cohort={"phantoms": {"side": 10}}), "cohort.phantoms.side: must be greater than or equal to 1024"),
        (plain(name="a/b"), "name: must be made of letters"),
        (
            plain(localise={"agents": ["a"], "magnifications": [7]}),
            "localise.magnifications.0: must be 2.5, 10 or 40, got 7",
        ),
        (plain(localise={"agents": ["a"], "jitter": 0.6}), "localise.jitter: must be less than or equal to 0.5"),
        (plain(model={"name": "m", "base_url": "localhost:8000"}), "model.base_url: must be an http(s) address"),
        (plain(model={"name": "m", "api_key": "k"}), "model.api_key: unknown key (did you mean api_key_env?)"),
        (plain(cohort={"file": "none.yaml"}), "cohort file "),
    ],
)
def test_a_scenario_that_cannot_be_run_is_refused_in_one_line(document: Any, expected: str, tmp_path: Path) -> None:
    (line,) = complaints(tmp_path / "s.yaml", document)
    assert line.startswith(expected), line


def test_an_unknown_scenario_is_refused_with_the_nearest_shipped_name() -> None:
    with pytest.raises(ConfigError, match="did you mean quickstart"):
        load_scenario("quick-start")


def test_a_shipped_scenario_without_slides_says_which_slot_is_empty() -> None:
    with pytest.raises(ConfigError, match="--cohort FILE"):
        load_scenario("mode-a-base")


def test_a_fault_of_a_cohort_file_is_told_under_its_name_with_the_keys_that_it_holds(tmp_path: Path) -> None:
    cohort = write(tmp_path / "c.yaml", {"slides": [{"path": "a.svs", "tumour_classes": "tumor", "tee": 1}]})
    for document, slots in ((plain(cohort={"file": "c.yaml"}), {}), (plain(cohort=None), {"cohort": cohort})):
        assert complaints(tmp_path / "s.yaml", document, **slots) == [
            f'{cohort}: slides.0.tumour_classes: must be a list, got "tumor"',
            f"{cohort}: slides.0.tee: unknown key (did you mean tree?)",
        ]


def test_the_sample_of_a_scenario_beside_a_cohort_file_is_the_scenarios_own(tmp_path: Path) -> None:
    write(tmp_path / "c.yaml", SLIDES)
    document = plain(cohort={"file": "c.yaml", "sample": {"slides": 0}})
    (line,) = complaints(tmp_path / "s.yaml", document)
    assert line.startswith("cohort.sample.slides: must be ")


@pytest.mark.parametrize(
    ("slots", "expected"),
    [
        ({"sets": ["seed=x"]}, '--set seed: must be a valid integer, got "x"'),
        ({"sets": ["localise.repeats=0"]}, "--set localise.repeats: must be greater than or equal to 1, got 0"),
        ({"sets": ["localise={agents: [random], repeats: 0}"]}, "--set localise: localise.repeats: must be greater"),
        ({"sets": ["cohort.slides.0.mpp=30"]}, "--set cohort.slides.0.mpp: must be less than or equal to 20, got 30"),
        ({"sets": ["seed={sweep: []}"]}, "--set seed: sweep must hold at least one value"),
        ({"sets": ["seed={sweep: [1, 1]}"]}, "--set seed: sweep must not hold a value twice"),
        ({"sets": ["seed={sweep: [1, x]}"]}, "--set seed: must be a valid integer"),
        ({"base_url": "x", "model": "m"}, "--base-url: model.base_url: must be an http(s) address"),
    ],
)
def test_a_fault_of_an_option_is_told_under_the_options_name(slots: Any, expected: str, tmp_path: Path) -> None:
    (line,) = complaints(tmp_path / "s.yaml", plain(), **slots)
    assert line.startswith(expected), line


def test_a_fault_of_the_whole_names_the_file_and_the_option_that_changed_it(tmp_path: Path) -> None:
    cohort = write(tmp_path / "c.yaml", {"slides": [{"path": "a.svs"}, {"path": "b.svs"}]})
    said = complaints(tmp_path / "s.yaml", plain(), cohort=cohort, sets=["cohort.slides.1.path=a.svs"], folder=tmp_path)
    assert len(said) == 1
    assert said[0].startswith(f"{cohort} with --set cohort.slides.1.path: slides must not be named twice")
