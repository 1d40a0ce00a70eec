"""From a scenario to the questions that it asks.

    scenario = load_scenario("mode-a-base", cohort="cohort.yaml")
    for case in cases(scenario, scenario.cohort.slides):
        with case.slide.open() as slide:
            ...  # hand slide and case.query to an agent, keep case.target from it

Every case is asked of every agent of `scenario.localise.agents`, `scenario.localise.repeats` times: a repeat is the
same case with another seed, so it is the runner's to count.
"""

import dataclasses
import functools
import logging
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pathnav.cohort.controls import swapped
from pathnav.cohort.names import slide_names
from pathnav.cohort.node import TreeSlide
from pathnav.cohort.posing import normalised, pose
from pathnav.cohort.query import Query, Target
from pathnav.cohort.sample import Candidate, Selection, select
from pathnav.cohort.scenario import SampleSpec, Scenario, SlideSpec
from pathnav.cohort.scenario_values import Budget
from pathnav.cohort.tree import load_tree
from pathnav.cohort.tree_faults import fault_lines, faults_on_slide
from pathnav.errors import AnnotationError, ConfigError, SlideError

if TYPE_CHECKING:
    from pathnav.slide import Slide

logger = logging.getLogger(__name__)

Opener = Callable[[SlideSpec], AbstractContextManager["Slide"]]


@dataclass(frozen=True, slots=True)
class Case:
    """One question about one slide.

    Args:
        slide: How the slide is opened; its mpp is the tree's where the file has none.
        slide_name: Its name in the cohort, the same on every machine; may tell a diagnosis, so no agent sees it.
        fingerprint: Of the slide's content.
        node: Id of the annotated node.
        query: What is asked.
        target: What is true.
        budget: Name of the budget, e.g. `base`.
    """

    slide: SlideSpec
    slide_name: str
    fingerprint: str
    node: str
    query: Query
    target: Target
    budget: str

    @property
    def id(self) -> str:
        """Readable and unique in the scenario, e.g. `a.svs/a1/base`."""
        return f"{self.slide_name}/{self.node}/{self.budget}"

    def as_json(self) -> dict[str, Any]:
        """Return what a run keeps about the case; it holds the target, so no agent may see it."""
        query = self.query
        return {
            "id": self.id,
            "slide": self.slide.path,
            "fingerprint": self.fingerprint,
            "node": self.node,
            "magnification": query.magnification,
            "finding": query.finding,
            "region": query.region.as_list(),
            "budget": query.budget,
            "target": self.target.box.as_list(),
            "target_cut": self.target.cut,
        }


@dataclass(frozen=True, slots=True)
class Annotated:
    """A slide of the cohort with its tree, not yet open."""

    slide: SlideSpec
    name: str
    entry: TreeSlide


def cases(scenario: Scenario, slides: Sequence[SlideSpec], opener: Opener = SlideSpec.open) -> list[Case]:
    """Return all questions of a scenario, sorted by slide, magnification, node and budget.

    Args:
        scenario: The scenario.
        slides: Those of its cohort, phantoms among them; every one of the sample is opened once.
        opener: Gives an open slide for a `with` block, so that a run need not open it again.

    Raises:
        AnnotationError: With one sentence a line for everything that is wrong with the trees.
        SlideError: If a slide cannot be opened or has no physical scale.
        ConfigError: If nothing is left to ask.
    """
    annotated = annotated_slides(slides)
    chosen = selection(scenario, annotated)
    for note in chosen.notes:
        logger.warning("%s", note)
    posed = _posed(scenario, annotated, chosen, opener)
    if not posed:
        wanted = ", ".join(f"{magnification:g}x" for magnification in scenario.localise.magnifications)
        raise ConfigError(f"scenario {scenario.name!r} asks nothing: no tree of its slides has a node at {wanted}")
    if scenario.localise.swapped_findings:
        posed = _with_swapped_findings(posed, scenario.seed)
    return [_budgeted(case, budget) for case in posed for budget in scenario.localise.budget]


def annotated_slides(slides: Sequence[SlideSpec]) -> list[Annotated]:
    """Return the slides that have a tree, sorted by name; no slide is opened.

    Raises:
        AnnotationError: With one sentence a line for everything that is wrong with the trees.
    """
    names = slide_names([slide.path for slide in slides])
    load = functools.cache(load_tree)
    found, wrong = [], []
    for slide in slides:
        if slide.tree is None:
            logger.warning("slide %s has no tree, so there is nothing to ask about it", names[slide.path])
            continue
        try:
            entry = load(slide.tree).entry(slide.path)
        except AnnotationError as error:
            wrong.append(str(error) if slide.tree in str(error) else f"{slide.tree}: {error}")
        else:
            organ = slide.organ or entry.organ
            found.append(Annotated(slide, names[slide.path], entry.model_copy(update={"organ": organ})))
    if wrong:
        raise AnnotationError("\n".join(dict.fromkeys(wrong)))
    return sorted(found, key=lambda one: one.name)


def selection(scenario: Scenario, slides: Iterable[Annotated]) -> Selection:
    """Return which slides and nodes a scenario asks about: all of them, or its sample."""
    candidates = []
    for one in slides:
        nodes: dict[float, list[str]] = defaultdict(list)
        for node in one.entry.nodes:
            nodes[node.magnification].append(node.id)
        candidates.append(Candidate(one.name, one.entry.organ, {m: tuple(ids) for m, ids in nodes.items()}))
    return select(candidates, scenario.cohort.sample or SampleSpec(), scenario.localise.magnifications)


def _posed(scenario: Scenario, slides: Sequence[Annotated], chosen: Selection, opener: Opener) -> list[Case]:
    by_name = {one.name: one for one in slides}
    posed: list[Case] = []
    wrong: list[str] = []
    for candidate in chosen.slides:
        one = by_name[candidate.name]
        with opened_annotated(one, opener) as (spec, slide):
            faults = fault_lines(faults_on_slide(one.entry, slide), str(one.slide.tree))
            wrong += faults
            if not faults:
                ids = [node for magnification in sorted(candidate.nodes) for node in candidate.nodes[magnification]]
                posed += [_case(scenario, dataclasses.replace(one, slide=spec), node, slide) for node in ids]
    if wrong:
        raise AnnotationError("\n".join(wrong))
    return posed


@contextmanager
def opened_annotated(one: Annotated, opener: Opener = SlideSpec.open) -> Iterator[tuple[SlideSpec, "Slide"]]:
    """Give an open slide and how it was opened: by its tree's mpp where the file and the scenario have none.

    Raises:
        SlideError: If it cannot be opened or has no physical scale.
    """
    specs = [one.slide]
    if one.entry.mpp is not None:
        specs.append(one.slide.model_copy(update={"mpp": one.entry.mpp}))
    for spec in specs:
        with opener(spec) as slide:
            if slide.has_mpp:
                yield spec, slide
                return
    raise SlideError(f"{one.slide.path}: has no mpp and no objective power; give mpp or objective_power in the cohort")


def _case(scenario: Scenario, one: Annotated, node_id: str, slide: "Slide") -> Case:
    node = one.entry.node(node_id)
    granted = scenario.localise.budget[0]
    query, target = pose(
        one.entry, node, slide, granted.at(node.magnification), jitter=scenario.localise.jitter, seed=scenario.seed
    )
    return Case(one.slide, one.name, slide.fingerprint, node.id, query, target, granted.name)


def _budgeted(case: Case, budget: Budget) -> Case:
    query = dataclasses.replace(case.query, budget=budget.at(case.query.magnification))
    return dataclasses.replace(case, query=query, budget=budget.name)


def _with_swapped_findings(posed: Sequence[Case], seed: int) -> list[Case]:
    """Return the cases, each with the finding of another one of its magnification; targets stay what they are."""
    by_id = {case.id: case for case in posed}
    givers: dict[str, str] = {}
    for magnification in sorted({case.query.magnification for case in posed}):
        group = {case.id: case.query.finding for case in posed if case.query.magnification == magnification}
        givers |= swapped({name: normalised(finding) for name, finding in group.items()}, magnification, seed)
    return [
        dataclasses.replace(case, query=dataclasses.replace(case.query, finding=by_id[givers[case.id]].query.finding))
        for case in posed
    ]
