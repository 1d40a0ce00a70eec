"""The key of an episode changes with all that can change its result, and with nothing else."""

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pathnav.cohort.query import Query, Target
from pathnav.errors import ConfigError, PluginError
from pathnav.geometry import Box
from pathnav.model import ChatSettings
from pathnav.model.profile import Placement, Profile, ToolCalling
from pathnav.run.agent_choice import AgentChoice
from pathnav.run.case import Case, SlideFacts, SlideSource
from pathnav.run.plan import Episode, episodes
from support.commands import Bench

MODEL = ChatSettings(base_url="http://127.0.0.1:1/v1", model="m", api_key="secret")
QUERY = Query("slide-1", 10.0, "tumour", Box(0, 0, 900, 900), 200, 200, budget=3)
CASE = Case(
    SlideSource("a.svs"),
    SlideFacts("f", (0.5, 0.5), "openslide", Box(0, 0, 1000, 1000), phantom=False),
    QUERY,
    Target(Box(0, 0, 200, 200)),
    "n1",
)


def episode(case: Case = CASE, *, agent: str = "vlm", model: ChatSettings = MODEL, **changes: Any) -> Episode:
    options = changes.pop("options", {})
    return Episode(case, AgentChoice.of(agent, options, model), **changes)


BASE = episode()


@pytest.mark.parametrize(
    "same",
    [
        episode(model=replace(MODEL, base_url="http://elsewhere:9/v1")),
        episode(model=replace(MODEL, api_key="other")),
        episode(model=replace(MODEL, timeout_s=1)),
        episode(replace(CASE, source=SlideSource("moved/a.svs"))),
        episode(replace(CASE, slide=replace(CASE.slide, warnings=("odd",), phantom=True))),
        episode(options={"guides": True, "view_px": 1024.0}),
        episode(replace(CASE, query=replace(QUERY, target_width=200.0))),
    ],
    ids=["address", "key", "time-out", "path", "warnings", "defaults spelled out", "whole float"],
)
def test_what_cannot_change_the_result_is_not_in_the_key(same: Episode) -> None:
    assert same.key == BASE.key


@pytest.mark.parametrize(
    "other",
    [
        episode(replace(CASE, slide=replace(CASE.slide, fingerprint="g"))),
        episode(replace(CASE, slide=replace(CASE.slide, mpp_um=(0.5, 0.51)))),
        episode(replace(CASE, slide=replace(CASE.slide, reader="tiffslide"))),
        episode(replace(CASE, slide=replace(CASE.slide, objective_power=20.0))),
        episode(replace(CASE, query=replace(QUERY, finding="stroma"))),
        episode(replace(CASE, query=replace(QUERY, budget=4))),
        episode(replace(CASE, query=replace(QUERY, region=Box(0, 0, 900, 901)))),
        episode(replace(CASE, target=Target(Box(0, 0, 200, 201)))),
        episode(replace(CASE, target=None)),
        episode(replace(CASE, controls={"blank_images": True})),
        episode(agent="random"),
        episode(options={"guides": False}),
        episode(model=replace(MODEL, profile=Profile(placement=Placement.BRIDGE))),
        episode(model=replace(MODEL, profile=Profile(tools=ToolCalling.TEXT))),
        episode(model=replace(MODEL, profile=Profile(images_live=3))),
        episode(model=replace(MODEL, model="n")),
        episode(model=replace(MODEL, temperature=0.5)),
        episode(model=replace(MODEL, max_tokens=4096)),
        episode(model=replace(MODEL, image_detail="low")),
        episode(seed=1),
        episode(repeat=1),
    ],
    ids=lambda value: "",
)
def test_what_can_change_the_result_is_in_the_key(other: Episode) -> None:
    assert other.key != BASE.key


def test_the_code_of_an_agent_in_a_file_is_in_the_key(bench: Bench) -> None:
    before = episode(agent=bench.agent("Looker")).key
    assert episode(agent=bench.agent("Looker")).key == before
    with (bench.folder / "agents.py").open("a") as file:
        file.write("\n# mended\n")
    assert episode(agent=bench.agent("Looker")).key != before


TOOL = """
from pydantic import BaseModel
class Zoom:
    name, description, Arguments = 'zoom', 'Zoom.', BaseModel
    def call(self, environment, arguments): ...
"""


def write_tool(folder: Path, text: str = TOOL) -> dict[str, Any]:
    """Write a tool and return the options that name it."""
    folder.mkdir(exist_ok=True)
    (folder / "tool.py").write_text(
        text.replace("BaseModel\n    def", "type('A', (BaseModel,), {'__annotations__': {'x': int}})\n    def")
    )
    return {"tools": [f"{folder / 'tool.py'}:Zoom"]}


def test_the_code_of_a_tool_is_in_the_key_and_its_place_is_not(tmp_path: Path) -> None:
    before = episode(options=write_tool(tmp_path / "here"))
    moved = episode(options=write_tool(tmp_path / "there"))
    assert (moved.key, moved.agent.configuration) == (before.key, before.agent.configuration)
    mended = episode(options=write_tool(tmp_path / "here", TOOL + "# mended\n"))
    assert mended.key != before.key
    assert mended.agent.configuration != before.agent.configuration
    assert BASE.key != before.key


def test_the_configuration_is_the_agents_alone() -> None:
    alike = [
        episode(seed=1, repeat=2),
        episode(replace(CASE, query=replace(QUERY, budget=4))),
        episode(replace(CASE, target=None, controls={"blank_images": True})),
        episode(replace(CASE, slide=replace(CASE.slide, fingerprint="g"))),
    ]
    assert {one.agent.configuration for one in alike} == {BASE.agent.configuration}
    others = [
        episode(agent="random"),
        episode(options={"guides": False}),
        episode(model=replace(MODEL, model="n")),
        episode(model=replace(MODEL, temperature=0.5)),
    ]
    assert len({one.agent.configuration for one in [BASE, *others]}) == 5


def test_the_code_of_an_agent_in_a_file_is_in_its_configuration(bench: Bench) -> None:
    before = AgentChoice.of(bench.agent("Looker")).configuration
    with (bench.folder / "agents.py").open("a") as file:
        file.write("\n# mended\n")
    assert AgentChoice.of(bench.agent("Looker")).configuration != before


def test_an_installed_agent_is_known_by_its_package_and_version() -> None:
    from pathnav import __version__

    assert AgentChoice.of("random").key_fields["origin"] == f"pathnav {__version__}"


def test_the_code_of_an_agent_in_a_module_is_in_its_configuration(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(bench.folder))
    monkeypatch.delitem(sys.modules, "agents", raising=False)
    before = AgentChoice.of("agents:Looker")
    assert (before.key_fields["origin"], len(before.key_fields["code"])) == ("agents", 64)
    code = (bench.folder / "agents.py").read_text()
    (bench.folder / "other_agents.py").write_text(code + "\n# mended\n")
    assert AgentChoice.of("other_agents:Looker").key_fields["code"] != before.key_fields["code"]


def test_models_come_first_then_case_by_case() -> None:
    other = replace(CASE, query_id="n2", query=replace(QUERY, finding="stroma"))
    agents = [AgentChoice.of("random"), AgentChoice.of("vlm", {}, MODEL), AgentChoice.of("parent-centre")]
    plan = episodes([CASE, other], agents, seed=5, repeats=2)
    order = [(one.agent.name, one.case.query_id, one.repeat) for one in plan]
    assert order[:4] == [("vlm", "n1", 0), ("vlm", "n1", 1), ("vlm", "n2", 0), ("vlm", "n2", 1)]
    assert order[4:8] == [
        ("random", "n1", 0),
        ("random", "n1", 1),
        ("parent-centre", "n1", 0),
        ("parent-centre", "n1", 1),
    ]
    assert {one.seed for one in plan} == {5}
    assert len({one.key for one in plan}) == 12


def test_the_same_question_from_two_copies_of_a_slide_is_asked_once() -> None:
    copy = replace(CASE, source=SlideSource("copy.svs"))
    plan = episodes([CASE, copy], [AgentChoice.of("random")])
    assert [one.case.source.path for one in plan] == ["a.svs"]


def test_a_model_is_sent_its_own_seed_or_that_of_the_repetition() -> None:
    settings = episode(seed=5, repeat=2).chat_settings
    assert settings is not None
    assert settings.seed == episode(seed=5, repeat=2).own_seed
    own = episode(model=replace(MODEL, seed=99), seed=5).chat_settings
    assert own is not None
    assert own.seed == 99
    assert episode(agent="random").chat_settings is None


def test_no_repetition_has_the_seed_of_another_run() -> None:
    assert episode(seed=7).own_seed == 7
    seeds = {episode(seed=seed, repeat=repeat).own_seed for seed in range(20) for repeat in range(5)}
    assert len(seeds) == 100
    assert all(0 <= seed < 2**31 for seed in seeds)


def test_the_oracle_is_not_asked_what_nobody_knows() -> None:
    with pytest.raises(ConfigError, match="oracle needs a query whose target is known"):
        episode(replace(CASE, target=None), agent="oracle")


@pytest.mark.parametrize(
    ("agent", "options", "reason"),
    [
        ("parent-center", {}, "did you mean parent-centre"),
        ("vlm", {"zoom": 3}, "has no option .zoom."),
        ("vlm", {"view_px": 3}, "view_px must be at least"),
        ("pathnav.geometry:Box", {}, "has no method run"),
    ],
)
def test_agents_that_cannot_be_used_are_refused_while_planning(
    agent: str, options: dict[str, Any], reason: str
) -> None:
    with pytest.raises((ConfigError, PluginError), match=reason):
        AgentChoice.of(agent, options, MODEL)
