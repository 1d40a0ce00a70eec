"""Scenario files that cannot be run: each is refused before anything is done, told with file, line and key."""

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
        ("localise..budget=3", "--set takes KEY=VALUE"),
        ("seed=[1", "--set seed: is not YAML"),
        ("format.x=1", "--set format.x: format is \"pathnav-scenario-1\" and has no 'x' to be set"),
        ("cohort.slides.4.mpp=1", "--set cohort.slides.4.mpp: cohort.slides is [{"),
        ("localise.budgets=base", "--set localise.budgets: unknown key (did you mean localise.budget?)"),
        ("seed=x", '--set seed: must be a whole number, got "x"'),
        ("localise={agents: [random], repeats: 0}", "--set localise: localise.repeats: must be greater"),
        ("cohort.slides.0.mpp=30", "--set cohort.slides.0.mpp: must be less than or equal to 20, got 30"),
        ("seed={sweep: [1, x]}", "--set seed: must be a whole number"),
    ],
)
def test_a_fault_of_an_option_is_told_under_the_options_name(assignment: str, expected: str, tmp_path: Path) -> None:
    (line,) = complaints(tmp_path / "s.yaml", plain(), sets=[assignment])
    assert line.startswith(expected)


TWICE = {"sweep": ["base", [10, 7, 5]]}


@pytest.mark.parametrize(
    "budget",
    ["big", 3, [1, 2], [0, 1, 1], [1.5, 1, 1], [True, 1, 1], [5, 3, 100_001], {"x": 1}, TWICE, {"sweep": []}],
)
def test_other_budgets_are_refused(budget: Any, tmp_path: Path) -> None:
    (line,) = complaints(tmp_path / "s.yaml", plain(localise={"agents": ["random"], "budget": budget}))
    assert line.startswith("localise.budget: must be ")


def test_everything_that_is_wrong_is_told_at_once_with_its_file_line_and_key(tmp_path: Path) -> None:
    cohort = write(
        tmp_path / "c.yaml", "format: pathnav-cohort-1\nslides:\n  - path: a.svs\n    tre: t.json\n  - mpp: 30\n"
    )
    text = """format: pathnav-scenario-1
cohort: {file: c.yaml, sample: {slides: 0}}
model:
  name: m
  base_url: "http://me:secret@host/v1"
  concurrency: 1025
localise:
  agents: [random, 3]
  view_px: 9
  repeats: 0
explore: {scorers: [], tile: 3, schedule: [6, 3]}
"""
    path = write(tmp_path / "s.yaml", text)
    with pytest.raises(ConfigError) as caught:
        load_scenario(path, sets=["seed='7'"])
    assert "secret" not in str(caught.value)
    assert [line.partition(": must")[0] for line in str(caught.value).splitlines()] == [
        f"{cohort}, line 4: cohort.slides.0.tre: unknown key (did you mean cohort.slides.tree?)",
        f"{cohort}, line 5: cohort.slides.1.path: missing",
        f"{cohort}, line 5: cohort.slides.1.mpp",
        f"{path}, line 2: cohort.sample.slides",
        f"{path}, line 5: model.base_url",
        f"{path}, line 6: model.concurrency",
        f"{path}, line 8: localise.agents.1",
        f"{path}, line 10: localise.repeats",
        f"{path}, line 9: localise.view_px: unknown key (did you mean localise.views.view_px?)",
        f"{path}, line 11: explore.scorers",
        f"{path}, line 11: explore.schedule",
        f"{path}, line 11: explore.tile: unknown key (did you mean explore.tile_px?)",
        "--set seed",
    ]


MODEL = {"name": "m", "base_url": "http://127.0.0.1:9/v1"}


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        ("a: [", "is not YAML"),
        ("- 1", "a scenario must be a mapping of keys to values, got [1]"),
        ("3: 4", "3: unknown key"),
        ("seed: 1\nseed: 2", "is not YAML: key 'seed' stands twice"),
        ({**plain(), "format": "pathnav-scenario-2"}, "format: must be 'pathnav-scenario-1', got"),
        ({"cohort": SLIDES, "localise": {"agents": ["random"]}}, "format: missing; the first line of a scenario is"),
        ({"format": "pathnav-scenario-1", "localise": {"agents": ["a"]}}, "cohort: missing; name its slides"),
        ({"format": "pathnav-scenario-1", "cohort": SLIDES}, "needs localise (Mode A: agents), explore"),
        (plain(cohort={"slides": []}), "cohort: slides must name at least one slide"),
        (plain(cohort={**SLIDES, "phantoms": {}}), "cohort: needs either slides, or phantoms, or a file"),
        (plain(cohort={"slides": [{"path": "a"}, {"path": "./a"}]}), "cohort: slides must not be named twice"),
        (plain(cohort={"phantoms": {"side": 10}}), "cohort.phantoms.side: must be greater than or equal to 1024"),
        (plain(cohort={"file": "none.yaml"}), "cohort file "),
        (plain(cohort={"slides": [{"path": "a", "annotation": "b", "tumour_free": True}]}), "cohort.slides.0: tumour_"),
        (plain(name="a/b"), "name: must be made of letters"),
        (plain(localise={"agents": ["a"], "magnifications": [7]}), "localise.magnifications.0: must be 2.5, 10 or 40"),
        (plain(localise={"agents": ["a"], "jitter": 0.6}), "localise.jitter: must be less than or equal to 0.5"),
        (plain(model={**MODEL, "base_url": "localhost:8000"}), "model.base_url: must be an http(s) address"),
        (plain(model={**MODEL, "api_key": "k"}), "model.api_key: unknown key (did you mean model.api_key_env?)"),
        (plain(model={**MODEL, "api_key_env": "K", "api_key_file": "k"}), "model: api_key_env and api_key_file both"),
    ],
)
def test_a_scenario_that_cannot_be_run_is_refused_in_one_line(document: Any, expected: str, tmp_path: Path) -> None:
    (line,) = complaints(tmp_path / "s.yaml", document)
    assert line.startswith(expected), line


@pytest.mark.parametrize(
    ("content", "own", "expected"),
    [
        ({"format": "x", **SLIDES}, {}, "format of a cohort file must be 'pathnav-cohort-1'"),
        ({"file": "d.yaml"}, {}, "a cohort file must not name another one"),
        (SLIDES, {"phantoms": {}}, "cohort: phantoms must not stand beside file"),
    ],
)
def test_a_cohort_file_that_cannot_be_used_is_refused(content: Any, own: Any, expected: str, tmp_path: Path) -> None:
    write(tmp_path / "c.yaml", content)
    (line,) = complaints(tmp_path / "s.yaml", plain(cohort={"file": "c.yaml", **own}))
    assert expected in line


def test_what_is_not_there_is_said_with_what_is() -> None:
    with pytest.raises(ConfigError, match="did you mean quickstart"):
        load_scenario("quick-start")
    with pytest.raises(ConfigError, match="--cohort FILE"):
        load_scenario("mode-a-base")
    with pytest.raises(ConfigError, match=r"--base-url: model.base_url: must be an http"):
        load_scenario("quickstart", model="m", base_url="x")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("cohort: &c\n  slides: *c\n", ("holds itself", "line 1")),
        ("format: pathnav-scenario-1\ncohort: {phantoms: {}}\n1: 2\n", ("line 3", "1", "unknown key")),
        ("format: pathnav-scenario-1\nlocalise: {repeats: 100000000000}\n", ("line 2", "localise.repeats", "10000")),
    ],
)
def test_a_text_that_would_never_end_or_has_no_names_is_refused(tmp_path: Path, text: str, words: tuple[str]) -> None:
    path = tmp_path / "s.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError) as caught:
        load_scenario(path)
    assert [word for word in words if word not in str(caught.value)] == []
