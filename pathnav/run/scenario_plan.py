"""From a scenario to the episodes that it asks for."""

import logging
from collections import defaultdict
from collections.abc import Callable, Hashable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

from pathnav.cohort import case as cohort
from pathnav.cohort.scenario import Agent, Scenario, SlideSpec
from pathnav.errors import ConfigError
from pathnav.localise.vlm import VlmAgent
from pathnav.model import ChatSettings, load_profile
from pathnav.model.hosts import refuse_public
from pathnav.model.prices import load_prices
from pathnav.model.profile import DEFAULT_PROFILE
from pathnav.records import JsonObject
from pathnav.run.agent_choice import AgentChoice, loaded
from pathnav.run.case import Case, SlideSource
from pathnav.run.open_slides import OpenSlides
from pathnav.run.phantoms import scenario_slides
from pathnav.run.plan import Episode, episodes
from pathnav.run.plugin_identity import uses_model

logger = logging.getLogger(__name__)

Posed = dict[Hashable, Sequence[cohort.Case]]
"""The questions of one cohort, by all of a scenario that they depend on."""


@dataclass(frozen=True, slots=True)
class ScenarioPlan:
    """What a scenario comes to.

    Args:
        episodes: In the order in which they run.
        cases: The questions with their targets, as `run.json` keeps them.
        sample: The slides that were drawn with the nodes that were drawn, as `run.json` keeps them.
    """

    episodes: list[Episode]
    cases: list[JsonObject]
    sample: list[JsonObject]


def needs_model(scenario: Scenario) -> bool:
    """Return whether one of the agents or scorers asks a chat endpoint, in any combination of a sweep.

    Raises:
        PluginError: If there is no such agent or scorer.
    """
    return any(_needs_model(variant.scenario) for variant in scenario.variants())


def _needs_model(scenario: Scenario) -> bool:
    plugins = [loaded(agent.spec) for agent in scenario.localise.agents]
    if scenario.explore is not None:
        from pathnav.run.scorer_choice import loaded_scorer

        plugins += [loaded_scorer(scorer.spec) for scorer in scenario.explore.scorers]
    return any(uses_model(plugin) for plugin in plugins)


def named_endpoint(scenario: Scenario, *, with_key: bool = True) -> ChatSettings | None:
    """Return the endpoint that the scenario names, None where it names none.

    Args:
        scenario: The scenario.
        with_key: Whether its key is read: a plan is made without one.

    Raises:
        ConfigError: If it names a model without an address, or a key that is not where it should be.
    """
    model, decoding = scenario.model, scenario.decoding
    if model is None:
        return None
    if model.base_url is None:
        raise ConfigError(
            f"model {model.name!r} has no address", remedy="give --base-url URL, or model.base_url in the scenario"
        )
    settings = ChatSettings(
        base_url=model.base_url,
        model=model.name,
        api_key=model.api_key() if with_key else None,
        timeout_s=model.timeout_s,
        allow_hosts=model.allow_hosts,
        profile=load_profile(model.profile) if model.profile else DEFAULT_PROFILE,
        **decoding.model_dump(),
    )
    refuse_public(settings.host, settings.allow_hosts)
    return settings


def scenario_agents(scenario: Scenario, model: ChatSettings | None) -> list[AgentChoice]:
    """Return the scenario's agents, each checked by making it once.

    Args:
        scenario: The scenario.
        model: The endpoint of those that ask one.

    Raises:
        PluginError: If there is no such agent, or it does not take its options.
        ConfigError: If an option has no legal value.
    """
    return [_agent(agent, scenario, model) for agent in scenario.localise.agents]


def _agent(agent: Agent, scenario: Scenario, model: ChatSettings | None) -> AgentChoice:
    """Return one agent; the scenario's views are options of the agent that shows images to a model."""
    plugin = loaded(agent.spec)
    views = scenario.localise.views.model_dump() if issubclass(plugin.cls, VlmAgent) else {}
    return AgentChoice.of(plugin, {**views, **agent.options}, model)


def plan_scenario(
    scenario: Scenario,
    agents: list[AgentChoice],
    slides: OpenSlides,
    notify: Callable[[str], None] = logger.info,
    posed: "Posed | None" = None,
) -> ScenarioPlan:
    """Return the episodes of a scenario in the order in which they run, and what was drawn for them.

    Args:
        scenario: The scenario; every slide of its sample is opened.
        agents: Its agents.
        slides: Where the slides are opened.
        notify: Is told, in one line, when something that takes seconds begins, and what is odd about a slide.
        posed: The questions of scenarios over the same cohort, which need not be posed again.

    Raises:
        AnnotationError: With everything that is wrong with the trees.
        SlideError: If a slide cannot be opened or has no physical scale.
        ConfigError: If nothing is left to ask.
    """
    if not agents:
        return ScenarioPlan([], [], [])
    cases = _posed(scenario, slides, notify, {} if posed is None else posed)
    asked = [_case(case, scenario, slides) for case in cases]
    for path, warnings in {case.source.path: case.slide.warnings for case in asked}.items():
        for warning in warnings:
            notify(f"warning: {path}: {warning}")
    plan = episodes(
        asked,
        agents,
        seed=scenario.seed,
        repeats=scenario.localise.repeats,
        prices=load_prices(scenario.prices),
    )
    return ScenarioPlan(plan, [case.as_json() for case in cases], _drawn(cases))


def _posed(
    scenario: Scenario, slides: OpenSlides, notify: Callable[[str], None], posed: "Posed"
) -> Sequence[cohort.Case]:
    """Return the questions of a scenario; its slides are opened only where they were not posed before."""
    localise = scenario.localise
    asked = (localise.budget, localise.magnifications, localise.jitter, localise.swapped_findings, scenario.seed)
    if asked not in posed:
        specs = scenario_slides(scenario, notify)
        posed[asked] = cohort.cases(scenario, specs, lambda spec: nullcontext(slides.get(slide_source(spec))))
    return posed[asked]


def _drawn(posed: Sequence[cohort.Case]) -> list[JsonObject]:
    """Return the slides of the sample, each with the nodes of it that were drawn."""
    nodes: dict[tuple[str, str | None], dict[str, None]] = defaultdict(dict)
    for case in posed:
        nodes[case.slide_name, case.query.organ][case.node] = None
    return [{"slide": name, "organ": organ, "nodes": list(drawn)} for (name, organ), drawn in nodes.items()]


def slide_source(spec: SlideSpec) -> SlideSource:
    """Return how a run opens a slide of a cohort."""
    return SlideSource(spec.path, spec.mpp, spec.objective_power, spec.reader)


def _case(case: cohort.Case, scenario: Scenario, slides: OpenSlides) -> Case:
    """Return a question of the cohort as a run asks it."""
    source, localise = slide_source(case.slide), scenario.localise
    controls: dict[str, Any] = {
        "jitter": localise.jitter,
        "swapped_findings": localise.swapped_findings,
        "blank_images": localise.blank_images,
    }
    return Case(
        source=source,
        slide=slides.facts(source),
        query=case.query,
        target=case.target,
        query_id=case.node,
        target_cut=case.target.cut,
        controls={name: value for name, value in controls.items() if value},
    )
