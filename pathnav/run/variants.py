"""All that a scenario comes to: the episodes and searches of every combination of its sweeps, each of them once."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pathnav.cohort.scenario import Scenario
from pathnav.run.exploration import Search
from pathnav.run.open_slides import OpenSlides
from pathnav.run.plan import Episode
from pathnav.run.record import JsonObject
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
        self._posed: Posed = {}
        self._truths: Truths = {}

    def planned(self, settings: Mapping[str, Any], scenario: Scenario) -> VariantPlan:
        """Return what a combination adds to those before it."""
        model = named_endpoint(scenario, with_key=self._with_key) if scenario.model else self._stand_in
        agents, scorers = scenario_agents(scenario, model), scenario_scorers(scenario, model)
        plan = plan_scenario(scenario, agents, self._slides, self._tell, self._posed)
        searches = plan_searches(scenario, scorers, self._slides, self._tell, self._truths)
        self._keep(plan)
        new_episodes = [episode for episode in plan.episodes if episode.key not in self._keys]
        new_searches = [search for search in searches if not self._keys.issuperset(search.keys)]
        before = len(self._keys)
        self._keys |= {episode.key for episode in new_episodes}
        self._keys |= {key for search in new_searches for key in search.keys}
        asked = len(plan.episodes) + sum(len(search.keys) for search in searches)
        return VariantPlan(settings, new_episodes, new_searches, asked - (len(self._keys) - before))

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
