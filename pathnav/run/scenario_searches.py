"""From a scenario to the searches that it asks for."""

import dataclasses
import logging
from collections.abc import Callable

from pathnav.cohort.case import explored_slides
from pathnav.cohort.scenario import Scenario, SlideSpec
from pathnav.cohort.tree import load_tree
from pathnav.explore.schedule import Schedule
from pathnav.model import ChatSettings
from pathnav.model.prices import load_prices
from pathnav.run.case import SlideSource
from pathnav.run.endpoint import CONNECTIONS
from pathnav.run.exploration import Search, TileSettings
from pathnav.run.open_slides import OpenSlides
from pathnav.run.phantoms import scenario_slides
from pathnav.run.scenario_plan import slide_source
from pathnav.run.scorer_choice import ScorerChoice
from pathnav.run.truth import Truth, TruthSource

logger = logging.getLogger(__name__)

Truths = dict[SlideSpec, Truth | None]


def scenario_scorers(scenario: Scenario, model: ChatSettings | None) -> list[ScorerChoice]:
    """Return the scenario's scorers, each checked by making it once.

    Args:
        scenario: The scenario.
        model: The endpoint of those that ask one.

    Raises:
        PluginError: If there is no such scorer, or it does not take its options.
        ConfigError: If an option has no legal value.
    """
    concurrency = scenario.model.concurrency if scenario.model else CONNECTIONS
    return [
        ScorerChoice.of(scorer.spec, scorer.options, model, seed=scenario.seed, concurrency=concurrency)
        for scorer in (scenario.explore.scorers if scenario.explore else ())
    ]


def plan_searches(
    scenario: Scenario,
    scorers: list[ScorerChoice],
    slides: OpenSlides,
    notify: Callable[[str], None] = logger.info,
    truths: "Truths | None" = None,
) -> list[Search]:
    """Return the searches of a scenario, slide by slide; every slide is opened and its annotation read.

    Args:
        scenario: The scenario.
        scorers: Its scorers.
        slides: Where the slides are opened.
        notify: Is told, in one line, when something that takes seconds begins, and what is odd about a slide.
        truths: What is known of slides already, so that no annotation is read twice.

    Raises:
        AnnotationError: If an annotation, or a tree that a scale is taken from, cannot be used, or is another slide's.
        SlideError: If a slide cannot be opened or has no physical scale.
        ConfigError: If nothing is left to explore.
    """
    asked = scenario.explore
    if asked is None:
        return []
    known = truths if truths is not None else {}
    prices = load_prices(scenario.prices)
    schedules = tuple(Schedule(keep) for keep in asked.schedule)
    tiles = TileSettings(asked.tile_px, asked.min_tissue, asked.fill_to_k)
    searches = []
    for spec in explored_slides(scenario, scenario_slides(scenario, notify)):
        source = _source(spec, slides)
        facts = slides.facts(source)
        for warning in facts.warnings:
            notify(f"warning: {source.path}: {warning}")
        tiles.check(slides.get(source))
        if spec not in known:
            known[spec] = _truth(spec).read(slides.get(source), notify)
        shared = source, facts, known[spec]
        searches += [Search(*shared, scorer, schedules, tiles, scenario.seed, prices=prices) for scorer in scorers]
    return searches


def _source(spec: SlideSpec, slides: OpenSlides) -> SlideSource:
    """Return how a slide is opened: by its tree's mpp where neither the file nor the scenario says one, as in Mode A.

    Raises:
        AnnotationError: If it takes the tree and that cannot be used.
        SlideError: If the slide cannot be opened.
    """
    source = slide_source(spec)
    if spec.tree is None or slides.get(source).has_mpp:
        return source
    mpp = load_tree(spec.tree).entry(spec.path).mpp
    return source if mpp is None else dataclasses.replace(source, mpp=mpp)


def _truth(slide: SlideSpec) -> TruthSource:
    return TruthSource(slide.annotation, slide.tumour_classes, slide.relative_to_bounds, slide.tumour_free)
