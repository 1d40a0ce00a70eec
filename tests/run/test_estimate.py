"""Bounds of what is asked for: a real run stays below them, and what nobody can say is said to be unknown."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from pathnav.cohort.protocol import SCHEDULES, max_steps
from pathnav.cohort.query import Query, Target
from pathnav.cohort.scenario_file import load_scenario
from pathnav.explore import Schedule, Selection, TopK, Wanted
from pathnav.explore.scores import ScoreTable
from pathnav.geometry import Box
from pathnav.model import ChatSettings
from pathnav.model.profile import Profile, ToolCalling
from pathnav.records import read_events
from pathnav.run.agent_choice import AgentChoice
from pathnav.run.case import Case, SlideFacts, SlideSource
from pathnav.run.estimate import Bound, conversation, episode_bound, most_tiles, total
from pathnav.run.forecast import Forecast, make_forecast
from pathnav.run.open_slides import OpenSlides
from pathnav.run.plan import Episode
from support.commands import Bench, Command
from support.tile_trees import Wood, schedules, woods

MODEL = ChatSettings(base_url="http://127.0.0.1:1/v1", model="gpt-4.1")
QUERY = Query("slide-1", 10.0, "tumour", Box(0, 0, 9000, 9000), 200, 200, budget=20)
CASE = Case(
    SlideSource("a.svs"),
    SlideFacts("f", (0.5, 0.5), "openslide", Box(0, 0, 10000, 10000), phantom=False),
    QUERY,
    Target(Box(0, 0, 200, 200)),
    "n1",
)


def episode(model: ChatSettings = MODEL, *, agent: str = "vlm", budget: int = 20, **options: Any) -> Episode:
    case = replace(CASE, query=replace(QUERY, budget=budget))
    return Episode(case, AgentChoice.of(agent, options, model))


def with_profile(**fields: Any) -> ChatSettings:
    return replace(MODEL, profile=Profile(**fields))


def forecast(scenario: Path, out: Path, **slots: Any) -> Forecast:
    with OpenSlides() as slides:
        return make_forecast(load_scenario(scenario, **slots), out, slides, lambda text: None)


@pytest.mark.parametrize("budget", [1, 5, 20])
def test_an_episode_asks_no_more_often_than_it_has_steps_and_forced_tries(budget: int) -> None:
    bound = episode_bound(episode(budget=budget))
    assert (bound.rois, bound.calls) == (budget, max_steps(budget) + 2)
    assert bound.tokens_out == bound.calls * MODEL.max_tokens


def test_the_input_grows_faster_than_the_budget() -> None:
    small, large = (episode_bound(episode(budget=budget)).tokens_in for budget in (5, 20))
    assert small is not None and large is not None
    assert large > 6 * small


def test_live_images_small_images_and_short_answers_make_it_cheaper() -> None:
    whole = episode_bound(episode()).cost_usd
    cheaper = [
        episode(with_profile(images_live=2)),
        episode(view_px=256),
        episode(replace(MODEL, max_tokens=100)),
        episode(with_profile(pixels_per_token=3000)),
    ]
    for one in cheaper:
        cost = episode_bound(one).cost_usd
        assert cost is not None and whole is not None and 0 < cost < whole


def test_the_text_protocol_is_estimated_with_its_own_prompt() -> None:
    native, text = episode(), episode(with_profile(tools=ToolCalling.TEXT))
    assert episode_bound(native).tokens_in != episode_bound(text).tokens_in


def test_an_agent_without_a_model_costs_nothing() -> None:
    assert episode_bound(episode(agent="random")) == Bound(rois=20)
    assert conversation(episode(agent="random")) is None


def test_a_model_without_a_price_has_an_unknown_cost() -> None:
    bound = episode_bound(episode(replace(MODEL, model="mine")))
    assert (bound.cost_usd, bound.unknown) == (None, ("no price for mine",))
    assert bound.tokens_in is not None


def test_what_a_users_agent_asks_is_unknown(bench: Bench) -> None:
    (bench.folder / "mine.py").write_text("class Mine:\n    uses_model = True\n    def run(self, environment): ...\n")
    bound = episode_bound(episode(agent=f"{bench.folder / 'mine.py'}:Mine"))
    assert (bound.rois, bound.calls, bound.tokens_in, bound.cost_usd) == (20, None, None, None)
    assert bound.unknown == ("Mine decides by itself how often it asks its model",)


def test_one_unknown_makes_the_sum_unknown_and_keeps_its_reason() -> None:
    found = total([Bound(rois=1, calls=3, cost_usd=1.5), Bound(rois=2, cost_usd=None, unknown=("why",)), Bound()])
    assert found == Bound(rois=3, calls=3, cost_usd=None, unknown=("why",))


def test_twenty_looks_of_1024_px_overflow_small_contexts_in_any_case() -> None:
    talk = conversation(episode(with_profile(context_tokens=32_768)))
    assert talk is not None and talk.context is not None
    assert talk.context < talk.short < talk.longest
    live = conversation(episode(with_profile(context_tokens=32_768, images_live=4)))
    assert live is not None and live.short < 16_384


def asked(wood: Wood, keeps: list[tuple[int, int, int]], fill_to_k: bool) -> int:
    """Return how many tiles schedules that share their scores ask for."""
    table, known = ScoreTable(wood.nesting, wood.eligible, slide="slide"), set()
    for keep in keeps:
        step: Wanted | Selection = TopK(Schedule(keep), fill_to_k).advance(table)
        while isinstance(step, Wanted):
            for level, tiles in enumerate(step.tiles):
                table.set(level, tiles, [wood.scores[level][tile] for tile in tiles.tolist()])
                known |= {(level, tile) for tile in tiles.tolist()}
            step = TopK(Schedule(keep), fill_to_k).advance(table)
    return len(known)


@given(wood=woods(), keeps=st.lists(schedules, min_size=1, max_size=4), fill_to_k=st.booleans())
def test_no_search_asks_for_more_tiles_than_its_bound(
    wood: Wood, keeps: list[tuple[int, int, int]], fill_to_k: bool
) -> None:
    assert asked(wood, keeps, fill_to_k) <= most_tiles(wood.nesting, wood.eligible, keeps)


@given(wood=woods(), keep=schedules)
def test_the_bound_of_tiles_is_below_that_of_the_schedule_alone(wood: Wood, keep: tuple[int, int, int]) -> None:
    width = wood.nesting.factor**2
    first = int(wood.eligible[0].sum())
    assert most_tiles(wood.nesting, wood.eligible, [keep]) <= first + width * keep[0] + width * keep[0] * keep[1]
    assert most_tiles(wood.nesting, wood.eligible, []) == 0


def scenario_of(bench: Bench) -> Path:
    """Write a scenario like the quickstart's, over a phantom of 2,048 px, with a sweep in it."""
    document = {
        "format": "pathnav-scenario-1",
        "cohort": {"phantoms": {"count": 1, "side": 2048, "seed": 3}},
        "localise": {
            "agents": ["vlm", "random", "grid-centroid"],
            "budget": {"sweep": ["tight", "base"]},
            "views": {"view_px": {"sweep": [256, 512]}},
        },
        "explore": {
            "scorers": ["vlm", "nuclear-density"],
            "schedule": {"sweep": [list(keep) for keep in SCHEDULES]},
            "tile_px": 64,
        },
    }
    path = bench.folder / "quick.yaml"
    path.write_text(yaml.safe_dump(document))
    return path


@pytest.mark.slow
def test_a_real_run_stays_below_its_bounds(pathnav: Command, bench: Bench) -> None:
    scenario = scenario_of(bench)
    before = forecast(scenario, bench.folder / "kept")
    assert pathnav("run", scenario, "--out", "kept").code == 0
    found = [json.loads(path.read_text()) for path in (bench.folder / "kept" / "episodes").glob("*/result.json")]
    bounds = {episode.key: episode_bound(episode) for episode in before.plan.episodes}
    assert len(found) == before.planned
    for one in found:
        bound = bounds.get(one["key"])
        if bound is None:
            continue
        assert one["rois_used"] <= bound.rois
        assert bound.calls is not None and one["calls"] <= bound.calls
        if one["tokens"]:
            assert bound.tokens_in is not None and bound.tokens_out is not None
            assert one["tokens"]["input"] <= bound.tokens_in
            assert one["tokens"]["output"] <= bound.tokens_out
    longest = _longest_request(bench.folder / "kept")
    talks = [row.conversation for row in before.rows if row.conversation is not None]
    assert 0 < longest <= max(talk.longest for talk in talks)
    (row,) = [row for row in before.rows if row.mode == "explore" and row.model]
    asked_now = [one for one in found if one["format"] == "pathnav-exploration-1" and one["model"]]
    assert len(asked_now) == len(SCHEDULES) == row.planned
    assert row.bound.calls is not None and row.bound.tokens_in is not None
    assert 0 < max(one["calls"] for one in asked_now) <= row.bound.calls
    assert max(one["tokens"]["input"] for one in asked_now) <= row.bound.tokens_in
    assert all(one["cost_usd"] == 0 and one["cost_unknown"] is None for one in asked_now), "the stub costs nothing"

    after = forecast(scenario, bench.folder / "kept")
    assert (after.planned, after.done) == (before.planned, before.planned)
    assert after.at_most == Bound()


def _longest_request(folder: Path) -> int:
    logs = [read_events(path) for path in folder.glob("episodes/*/events.jsonl")]
    return max((e["tokens"]["input"] for log in logs for e in log if e["kind"] == "reply"), default=0)
