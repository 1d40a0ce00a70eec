"""Sweeps: which values may be several, what their combinations are, and in which order."""

import copy
import itertools
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pathnav.cohort.scenario_file import load_scenario, make_scenario
from pathnav.cohort.sweep import MAX_COMBINATIONS, Axis, axes_of, combinations, with_sweeps, with_values
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
).filter(lambda document: str(document).count("'sweep'") <= 5)


def expanded(document: dict[str, Any]) -> list[dict[str, Any]]:
    return [with_values(document, chosen) for chosen in combinations(axes_of(document))]


def containers(value: Any) -> set[int]:
    """Return the identities of all dictionaries and lists in a value."""
    inside = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    own = {id(value)} if isinstance(value, dict | list) else set()
    return own.union(*(containers(item) for item in inside))


@given(document=DOCUMENTS)
def test_the_combinations_are_the_product_of_the_values(document: dict[str, Any]) -> None:
    axes = axes_of(document)
    chosen = [tuple(values.values()) for values in combinations(axes)]
    assert chosen == list(itertools.product(*(axis.values for axis in axes))), "the last axis varies fastest"
    assert len(expanded(document)) == len(chosen)


@given(document=DOCUMENTS)
def test_a_combination_holds_no_sweep_and_nothing_else_is_changed(document: dict[str, Any]) -> None:
    axes, before = axes_of(document), copy.deepcopy(document)
    for one in expanded(document):
        assert axes_of(one) == ()
        assert with_sweeps(one, axes) == document
    assert document == before


@given(document=DOCUMENTS)
def test_combinations_share_nothing_that_can_be_changed(document: dict[str, Any]) -> None:
    made = [*expanded(document), document]
    kept = [containers(one) for one in made]
    assert all(not first & second for first, second in itertools.combinations(kept, 2))


def test_axes_come_in_the_order_of_the_document() -> None:
    document = {"b": {"sweep": [1]}, "a": [{"x": {"sweep": [2, 3]}}, {"y": {"z": {"sweep": [4]}}}]}
    assert axes_of(document) == (Axis(("b",), (1,)), Axis(("a", 0, "x"), (2, 3)), Axis(("a", 1, "y", "z"), (4,)))
    assert [axis.name for axis in axes_of(document)] == ["b", "a.0.x", "a.1.y.z"]


SWEPT: dict[str, Any] = {
    "localise": {
        "agents": ["random", {"vlm": {"guides": {"sweep": [True, False]}}}],
        "jitter": {"sweep": [0, 0.25]},
        "budget": {"sweep": ["tight", "base"]},
    },
    "decoding": {"temperature": {"sweep": [0, 0.5, 1]}},
}


def test_a_scenario_is_its_first_combination_and_has_all_of_them() -> None:
    scenario = make_scenario(plain(**SWEPT))
    assert (scenario.localise.jitter, scenario.decoding.temperature) == (0, 0)
    variants = scenario.variants()
    assert len(variants) == 12
    assert variants[0].scenario == scenario.with_axes(())
    assert [one.settings for one in variants[:3]] == [
        {"decoding.temperature": 0, "localise.agents.1.vlm.guides": True, "localise.jitter": 0},
        {"decoding.temperature": 0, "localise.agents.1.vlm.guides": True, "localise.jitter": 0.25},
        {"decoding.temperature": 0, "localise.agents.1.vlm.guides": False, "localise.jitter": 0},
    ]
    for one in variants:
        assert one.scenario.axes == ()
        assert one.scenario.localise.jitter == one.settings["localise.jitter"]
        assert one.scenario.localise.agents[1].options == {"guides": one.settings["localise.agents.1.vlm.guides"]}
        assert [budget.name for budget in one.scenario.localise.budget] == ["tight", "base"], "its own sweep is kept"


def test_the_order_is_that_of_the_format_and_not_that_of_the_file() -> None:
    turned = dict(reversed(list(SWEPT.items())))
    assert make_scenario(plain(**turned)) == make_scenario(plain(**SWEPT))
    assert [axis.name for axis in make_scenario(plain(**SWEPT)).axes] == [
        *("decoding.temperature", "localise.agents.1.vlm.guides", "localise.jitter")
    ]


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
    assert again == scenario
    assert again.axes == scenario.axes
    assert again.resolved() == resolved


def test_a_sweep_can_be_set_and_unset_from_the_command_line(tmp_path: Path) -> None:
    file = write(tmp_path / "s.yaml", plain(localise={"agents": ["random"], "jitter": {"sweep": [0, 0.1]}}))
    set_ = load_scenario(file, sets=["localise.jitter={sweep: [0, 0.25]}", "seed={sweep: [1, 2]}"])
    assert [axis.values for axis in set_.axes] == [(0, 0.25), (1, 2)]
    assert load_scenario(file, sets=["localise.jitter=0.2"]).axes == ()


def test_the_model_of_the_command_line_takes_the_place_of_a_sweep(tmp_path: Path) -> None:
    file = write(tmp_path / "s.yaml", plain(model={"name": {"sweep": ["a", "b"]}, "base_url": "http://h/v1"}))
    assert len(load_scenario(file).variants()) == 2
    assert load_scenario(file, model="c").axes == ()


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
    scenario = make_scenario(plain(model={"sweep": models}))
    found = [one.scenario.model for one in scenario.variants()]
    assert [(one.name, one.base_url, one.timeout_s) for one in found if one] == [
        ("a", "http://h/v1", 120),
        ("b", "http://i/v1", 5),
    ]


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"seed": {"sweep": []}}, "seed: sweep must hold at least one value"),
        ({"seed": {"sweep": 3}}, 'seed: must be a valid integer, got {"sweep": 3}'),
        ({"seed": {"sweep": [1, 1]}}, "seed: sweep must not hold a value twice, got [1, 1]"),
        (
            {"decoding": {"temperature": {"sweep": [1, 1.0]}}},
            "decoding.temperature: sweep must not hold a value twice, got [1, 1.0]",
        ),
        (
            {"decoding": {"temperature": {"sweep": [0, 3]}}},
            "decoding.temperature: must be less than or equal to 2, got 3",
        ),
        ({"decoding": {"temp": {"sweep": [0, 1]}}}, "decoding.temp: unknown key"),
        ({"name": {"sweep": ["a", "b"]}}, "name: may not be swept: a run has one of it"),
        ({"out": {"sweep": ["a", "b"]}}, "out: may not be swept: a run has one of it"),
        ({"format": {"sweep": ["pathnav-scenario-1"]}}, "format: may not be swept: a run has one of it"),
        (
            {"cohort": {"phantoms": {}, "sample": {"seed": {"sweep": [1, 2]}}}},
            "cohort.sample.seed: may not be swept: all combinations ask the same cohort, or their rows would not",
        ),
        (
            {"model": {"name": "m", "base_url": {"sweep": ["http://a/v1", "http://b/v1"]}}},
            "model.base_url: may not be swept: it changes no answer",
        ),
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
            "localise.jitter: must be a valid number",
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
    assert line == (
        "sweep: makes 1,197 combinations (decoding.max_tokens 399, decoding.temperature 3), "
        f"more than {MAX_COMBINATIONS:,}"
    )


def test_an_agents_option_that_is_called_sweep_is_left_alone() -> None:
    scenario = make_scenario(plain(localise={"agents": [{"mine.py:Mine": {"sweep": [1, 2], "other": 3}}]}))
    assert scenario.axes == ()
    assert scenario.localise.agents[0].options == {"sweep": [1, 2], "other": 3}
