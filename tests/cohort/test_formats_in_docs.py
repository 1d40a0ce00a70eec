"""The pages on the two file formats hold examples that load, and name every key there is."""

import json
import re
from pathlib import Path

import pytest
import yaml
from pydantic import BaseModel

from pathnav.cohort.scenario import (
    Agent,
    CohortSpec,
    DecodingSpec,
    ExploreSpec,
    LocaliseSpec,
    ModelSpec,
    Scenario,
    SlideSpec,
    ViewSpec,
)
from pathnav.cohort.scenario_file import load_scenario
from pathnav.cohort.tree import Node, Route, Tree, TreeSlide, load_tree
from pathnav.geometry import Box

DOCS = Path(__file__).parents[2] / "docs"


def example(page: str, language: str) -> str:
    """Return the first code block of a language on a page."""
    found = re.search(rf"```{language}\n(.*?)```", (DOCS / page).read_text(encoding="utf-8"), re.DOTALL)
    assert found is not None
    return found.group(1)


def test_the_example_tree_loads(tmp_path: Path) -> None:
    path = tmp_path / "tree.json"
    path.write_text(example("tree-format.md", "json"))
    entry = load_tree(path).slides[0]
    assert entry.node("a1i").box == Box(16200, 10100, 1024, 1024)
    assert entry.paths[0].nodes == ("a", "a1", "a1i")


def test_the_example_scenario_loads(tmp_path: Path) -> None:
    path = tmp_path / "any.yaml"
    path.write_text(example("scenario-format.md", "yaml"))
    scenario = load_scenario(path)
    assert scenario.name == "my-run"
    assert scenario.localise.agents[2] == Agent("vlm", {"guides": False})
    assert [budget.name for budget in scenario.localise.budget] == ["tight", "base", "30-20-10"]


@pytest.mark.parametrize(
    ("page", "language", "model"),
    [
        *[("scenario-format.md", "yaml", model) for model in (CohortSpec, DecodingSpec, LocaliseSpec, ModelSpec)],
        *[("scenario-format.md", "yaml", model) for model in (ExploreSpec, Scenario, SlideSpec, ViewSpec)],
        *[("tree-format.md", "json", model) for model in (Node, Route, Tree, TreeSlide)],
    ],
)
def test_every_key_of_a_format_is_on_its_page(page: str, language: str, model: type[BaseModel]) -> None:
    text = (DOCS / page).read_text(encoding="utf-8")
    missing = [key for key in model.model_fields if not re.search(rf"\b{key}\b", text)]
    assert missing == []


def test_the_example_spells_out_the_defaults_it_says_it_does(tmp_path: Path) -> None:
    written = yaml.safe_load(example("scenario-format.md", "yaml"))
    assert DecodingSpec.model_validate(written["decoding"]) == DecodingSpec()
    assert ViewSpec.model_validate(written["localise"]["views"]) == ViewSpec()
    defaults = {key: field.default for key, field in LocaliseSpec.model_fields.items()}
    for key in ("repeats", "jitter", "swapped_findings", "blank_images"):
        assert written["localise"][key] == defaults[key]
    assert tuple(written["localise"]["magnifications"]) == defaults["magnifications"]
    assert written["model"]["timeout_s"] == ModelSpec.model_fields["timeout_s"].default
    json.dumps(written)
