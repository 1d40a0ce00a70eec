"""Sweeps: which values may be several, what their combinations are, and in which order."""

import copy
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pathnav.cohort.scenario_file import load_scenario, make_scenario
from pathnav.cohort.sweep import MAX_COMBINATIONS, axes_of, with_values
from support.scenarios import complaints, plain, write

LEAVES = st.integers(-9, 9) | st.booleans() | st.text("ab", max_size=2) | st.lists(st.integers(0, 9), max_size=2)
SWEEPS = st.lists(LEAVES, min_size=1, max_size=3).map(lambda values: {"sweep": values})
KEYS = st.text("abcdefg", min_size=1, max_size=3)
DOCUMENTS = st.dictionaries(
    KEYS,
    st.recursive(
        LEAVES | SWEEPS,
        lambda inner: st.dictionaries(KEYS, inner, max_size=3) | st.lists(inner, max_size=2),
        max_leaves=5,
    ),
    max_size=3,
)


@given(document=DOCUMENTS)
def test_a_combination_holds_no_sweep_and_nothing_else_is_changed(document: dict[str, Any]) -> None:
    axes, before = list(axes_of(document)), copy.deepcopy(document)
    one = with_values(document, {axis.place: axis.values[-1] for axis in axes})
    assert list(axes_of(one)) == []
    assert with_values(one, {axis.place: {"sweep": list(axis.values)} for axis in axes}) == document == before


SWEPT: dict[str, Any] = {
    "localise": {
        "agents": ["random", {"vlm": {"guides": {"sweep": [True, False]}}}],
        "jitter": {"sweep": [0, 0.25]},
        "budget": {"sweep": ["tight", "base"]},
    },
    "decoding": {"temperature": {"sweep": [0, 0.5, 1]}},
}


def test_a_scenario_is_its_first_combination_and_has_all_of_them_in_the_order_of_the_format() -> None:
    scenario = make_scenario(plain(**SWEPT))
    assert (scenario.localise.jitter, scenario.decoding.temperature) == (0, 0)
    variants = scenario.variants()
    assert [tuple(one.settings.values()) for one in variants] == [
        (temperature, guides, jitter) for temperature in (0, 0.5, 1) for guides in (True, False) for jitter in (0, 0.25)
    ]
    for one in variants:
        assert list(one.settings) == ["decoding.temperature", "localise.agents.1.vlm.guides", "localise.jitter"]
        assert one.scenario.axes == ()
        assert one.scenario.localise.jitter == one.settings["localise.jitter"]
        assert one.scenario.localise.agents[1].options == {"guides": one.settings["localise.agents.1.vlm.guides"]}
        assert [budget.name for budget in one.scenario.localise.budget] == ["tight", "base"], "its own sweep is kept"
    assert make_scenario(plain(**dict(reversed(SWEPT.items())))) == scenario


def test_a_scenario_without_a_sweep_is_its_only_variant() -> None:
    scenario = make_scenario(plain())
    (variant,) = scenario.variants()
    assert (variant.settings, variant.scenario) == ({}, scenario)


def test_a_resolved_sweep_loads_again_to_an_equal_one(tmp_path: Path) -> None:
    scenario = make_scenario(plain(**SWEPT), folder=tmp_path)
    resolved = scenario.resolved()
    assert resolved["localise"]["jitter"] == {"sweep": [0.0, 0.25]}
    assert list(resolved)[:3] == ["format", "name", "cohort"]
    again = load_scenario(write(tmp_path / "elsewhere" / "again.yaml", resolved))
    assert (again, again.axes, again.resolved()) == (scenario, scenario.axes, resolved)


def test_a_sweep_can_be_set_and_unset_from_the_command_line(tmp_path: Path) -> None:
    model = {"name": {"sweep": ["a", "b"]}, "base_url": "http://h/v1"}
    localise = {"agents": ["random"], "jitter": {"sweep": [0, 0.1]}}
    file = write(tmp_path / "s.yaml", plain(localise=localise, model=model))
    assert len(load_scenario(file).variants()) == 4
    set_ = load_scenario(file, model="c", sets=["localise.jitter={sweep: [0, 0.25]}", "seed={sweep: [1, 2]}"])
    assert [axis.values for axis in set_.axes] == [(0, 0.25), (1, 2)]
    assert load_scenario(file, model="c", sets=["localise.jitter=0.2"]).axes == ()


def test_paths_in_a_sweep_belong_to_the_file(tmp_path: Path) -> None:
    document = plain(
        localise={"agents": {"sweep": [["mine.py:Mine"], ["random"]]}},
        model={"name": "m", "base_url": "http://h/v1", "profile": {"sweep": ["vllm", "mine.yaml"]}},
    )
    scenario = load_scenario(write(tmp_path / "s.yaml", document))
    assert scenario.localise.agents[0].spec == f"{tmp_path}/mine.py:Mine"
    profiles = {one.scenario.model.profile for one in scenario.variants() if one.scenario.model}
    assert profiles == {"vllm", f"{tmp_path}/mine.yaml"}


def test_whole_models_can_be_swept_with_their_servers() -> None:
    models = [{"name": "a", "base_url": "http://h/v1"}, {"name": "b", "base_url": "http://i/v1", "timeout_s": 5}]
    found = [one.scenario.model for one in make_scenario(plain(model={"sweep": models})).variants()]
    told = [(one.name, one.base_url, one.timeout_s) for one in found if one]
    assert told == [("a", "http://h/v1", 120), ("b", "http://i/v1", 5)]


TWO = {"sweep": ["http://a/v1", "http://b/v1"]}


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"seed": {"sweep": []}}, "seed: sweep must hold at least one value"),
        ({"seed": {"sweep": 3}}, 'seed: must be a whole number, got {"sweep": 3}'),
        ({"seed": {"sweep": [1, 1]}}, "seed: sweep must not hold a value twice, got [1, 1]"),
        ({"decoding": {"temperature": {"sweep": [1, 1.0]}}}, "decoding.temperature: sweep must not hold a value twice"),
        ({"decoding": {"temperature": {"sweep": [0, 3]}}}, "decoding.temperature: must be less than or equal to 2"),
        ({"decoding": {"temp": {"sweep": [0, 1]}}}, "decoding.temp: unknown key"),
        ({"name": {"sweep": ["a", "b"]}}, "name: may not be swept: a run has one of it"),
        ({"cohort": {"phantoms": {}, "sample": {"seed": {"sweep": [1, 2]}}}}, "cohort.sample.seed: may not be swept"),
        ({"model": {"name": "m", "base_url": TWO}}, "model.base_url: may not be swept: it changes no answer"),
        (
            {"localise": {"agents": ["random"], "views": {"sweep": [{"guides": {"sweep": [True]}}]}}},
            "localise.views: a sweep must not stand inside another",
        ),
        (
            {"localise": {"agents": [{"vlm": {"sweep": [{}, {"guides": False}]}}]}},
            "localise.agents.0.vlm: options are swept one by one",
        ),
        (
            {"localise": {"agents": ["random"], "jitter": {"sweep": [0, 0.1], "x": 1}}},
            "localise.jitter: must be a number",
        ),
    ],
)
def test_what_cannot_be_swept_is_refused_in_one_sentence(
    changes: dict[str, Any], expected: str, tmp_path: Path
) -> None:
    (line,) = complaints(tmp_path / "s.yaml", plain(**changes))
    assert line.startswith(expected)


def test_a_sweep_without_end_is_refused_with_what_makes_it(tmp_path: Path) -> None:
    decoding = {"temperature": {"sweep": [0, 1, 2]}, "max_tokens": {"sweep": list(range(1, 400))}}
    (line,) = complaints(tmp_path / "s.yaml", plain(decoding=decoding))
    assert "1,197 combinations (decoding.max_tokens 399, decoding.temperature 3)" in line
    assert f"{MAX_COMBINATIONS:,}" in line


def test_an_agents_option_that_is_called_sweep_is_left_alone() -> None:
    scenario = make_scenario(plain(localise={"agents": [{"mine.py:Mine": {"sweep": [1, 2], "other": 3}}]}))
    assert scenario.axes == ()
    assert scenario.localise.agents[0].options == {"sweep": [1, 2], "other": 3}
