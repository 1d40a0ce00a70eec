"""All that a scenario comes to: the episodes and searches of every combination of its sweeps, each of them once."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pathnav.cohort.scenario import Scenario
from pathnav.records import JsonObject
from pathnav.run.exploration import Search
from pathnav.run.open_slides import OpenSlides
from pathnav.run.plan import Episode
from pathnav.run.scenario_plan import Posed, ScenarioPlan, named_endpoint, plan_scenario, scenario_agents
from pathnav.run.scenario_searches import Truths, plan_searches, scenario_scorers

if TYPE_CHECKING:
    from pathnav.model import ChatSettings


@dataclass(frozen=True, slots=True)
class VariantPlan:
    """What one combination of a sweep adds.

    Args:
        settings: The swept values by their dotted place; empty where nothing is swept.
        episodes: Those that no earlier combination asks for.
        searches: Likewise.
        shared: Results that an earlier combination asks for as well; a search has one a schedule.
    """

    settings: Mapping[str, Any]
    episodes: Sequence[Episode]
    searches: Sequence[Search]
    shared: int


@dataclass(frozen=True, slots=True)
class RunPlan:
    """What a scenario comes to.

    Args:
        variants: One a combination, in the order of the sweep; one without settings where nothing is swept.
        cases: The questions with their targets, as `run.json` keeps them.
        sample: The slides that were drawn with the nodes that were drawn, as `run.json` keeps them.
    """

    variants: Sequence[VariantPlan]
    cases: list[JsonObject]
    sample: list[JsonObject]

    @property
    def episodes(self) -> list[Episode]:
        """The episodes of all combinations."""
        return [episode for variant in self.variants for episode in variant.episodes]

    @property
    def searches(self) -> list[Search]:
        """The searches of all combinations."""
        return [search for variant in self.variants for search in variant.searches]


def plan_run(
    scenario: Scenario,
    stand_in: "ChatSettings | None",
    slides: OpenSlides,
    notify: Callable[[str], None],
    *,
    with_key: bool = True,
) -> RunPlan:
    """Return all that a scenario asks for; what two combinations ask alike is planned with the first.

    Args:
        scenario: The scenario; every slide of its sample is opened.
        stand_in: The endpoint of a scenario that names none.
        slides: Where the slides are opened.
        notify: Is told, once each, when something that takes seconds begins, and what is odd about a slide.
        with_key: Whether the endpoint's key is read.

    Raises:
        PathnavError: If something in the scenario is wrong.
    """
    desk = _Desk(scenario, stand_in, slides, notify, with_key=with_key)
    variants = [desk.planned(variant.settings, variant.scenario) for variant in scenario.variants()]
    return RunPlan(variants, desk.cases, desk.sample)


class _Desk:
    """Plans one combination after the other and remembers what was planned."""

    def __init__(
        self,
        scenario: Scenario,
        stand_in: "ChatSettings | None",
        slides: OpenSlides,
        notify: Callable[[str], None],
        *,
        with_key: bool,
    ) -> None:
        self._cases: dict[str, JsonObject] = {}
        self.sample: list[JsonObject] = []
        self._stand_in = stand_in if scenario.model is None else None
        self._slides, self._notify, self._with_key = slides, notify, with_key
        self._told: set[str] = set()
        self._keys: set[str] = set()
        self._slide_of: dict[str, str] = {}
        self._posed: Posed = {}
        self._truths: Truths = {}

    def planned(self, settings: Mapping[str, Any], scenario: Scenario) -> VariantPlan:
        """Return what a combination adds to those before it."""
        model = named_endpoint(scenario, with_key=self._with_key) if scenario.model else self._stand_in
        agents, scorers = scenario_agents(scenario, model), scenario_scorers(scenario, model)
        plan = plan_scenario(scenario, agents, self._slides, self._tell, self._posed)
        searches = plan_searches(scenario, scorers, self._slides, self._tell, self._truths)
        self._keep(plan)
        before = len(self._keys)
        new_episodes = [one for one in plan.episodes if self._is_new(one.case.source.path, [one.key])]
        new_searches = [one for one in searches if self._is_new(one.source.path, one.keys)]
        asked = len(plan.episodes) + sum(len(search.keys) for search in searches)
        return VariantPlan(settings, new_episodes, new_searches, asked - (len(self._keys) - before))

    def _is_new(self, slide: str, keys: list[str]) -> bool:
        """Return whether a unit asks what none before it did; tell of a slide that is a copy of another one."""
        original = self._slide_of.setdefault(keys[0], slide)
        if original != slide:
            self._tell(f"warning: {slide} is a copy of {original}: what is asked alike of both is asked of that alone")
        is_new = not self._keys.issuperset(keys)
        self._keys.update(keys)
        return is_new

    @property
    def cases(self) -> list[JsonObject]:
        """The questions of all combinations."""
        return list(self._cases.values())

    def _tell(self, text: str) -> None:
        """Pass on what was not told before."""
        if text not in self._told:
            self._told.add(text)
            self._notify(text)

    def _keep(self, plan: ScenarioPlan) -> None:
        """Add what `run.json` keeps, each case once, and the nodes of a slide under its name."""
        for case in plan.cases:
            self._cases.setdefault(json.dumps(case, sort_keys=True), case)
        for drawn in plan.sample:
            same = [one for one in self.sample if (one["slide"], one["organ"]) == (drawn["slide"], drawn["organ"])]
            if not same:
                self.sample.append({**drawn, "nodes": list(drawn["nodes"])})
            for one in same:
                one["nodes"] += [node for node in drawn["nodes"] if node not in one["nodes"]]
