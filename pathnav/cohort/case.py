"""From a scenario to the questions that it asks, and to the slides that it explores.

    scenario = load_scenario("mode-a-base", cohort="cohort.yaml")
    for case in cases(scenario, scenario.cohort.slides):
        with case.slide.open() as slide:
            ...  # hand slide and case.query to an agent, keep case.target from it

Every case is asked of every agent of `scenario.localise.agents`, `scenario.localise.repeats` times: a repeat is the
same case with another seed, so it is the runner's to count.
"""

import functools
import logging
import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pathnav.cohort.query import Query, Target
from pathnav.cohort.sample import SampleSpec, sampled_slides, select, swapped
from pathnav.cohort.scenario import Scenario, SlideSpec
from pathnav.cohort.tree import TreeSlide, load_tree, misfits, normalised
from pathnav.errors import AnnotationError, ConfigError, SlideError

if TYPE_CHECKING:
    from pathnav.slide import Slide

logger = logging.getLogger(__name__)

Opener = Callable[[SlideSpec], AbstractContextManager["Slide"]]


@dataclass(frozen=True, slots=True)
class Case:
    """One question about one slide."""

    slide: SlideSpec
    """How it is opened; its mpp is the tree's where the file has none."""
    slide_name: str
    """In the cohort, the same on every machine; may tell a diagnosis, so no agent sees it."""
    fingerprint: str
    node: str
    """Id of the annotated node."""
    query: Query
    target: Target
    budget: str
    """Its name, e.g. `base`."""

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


def slide_names(paths: Sequence[str]) -> dict[str, str]:
    """Return a name for each path that is unique in the cohort and the same on every machine.

    It is the file's name; where two files share it, what their paths are below the folder common to all slides. URLs
    stay whole.
    """
    files = [Path(path) for path in paths if "://" not in path]
    root = os.path.commonpath([file.parent for file in files]) if files else ""
    uses = Counter(file.name for file in files)
    names = {str(file): file.name if uses[file.name] == 1 else file.relative_to(root).as_posix() for file in files}
    return {path: names.get(path, path) for path in paths}


@dataclass(frozen=True, slots=True)
class _Annotated:
    """A slide of the cohort with its name and tree, not yet open."""

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
    annotated = _annotated(slides)
    asked = scenario.localise.magnifications
    nodes = {
        one.name: {m: [node.id for node in one.entry.nodes if node.magnification == m] for m in asked}
        for one in annotated
    }
    organs = {one.name: one.entry.organ for one in annotated}
    chosen, notes = select(nodes, organs, scenario.cohort.sample or SampleSpec())
    for note in notes:
        logger.warning("%s", note)
    posed = _posed(scenario, [(one, chosen[one.name]) for one in annotated if one.name in chosen], opener)
    if not posed:
        wanted = ", ".join(f"{magnification:g}x" for magnification in scenario.localise.magnifications)
        raise ConfigError(f"scenario {scenario.name!r} asks nothing: no tree of its slides has a node at {wanted}")
    if scenario.localise.swapped_findings:
        posed = _with_swapped_findings(posed, scenario.seed)
    return [
        replace(case, budget=budget.name, query=replace(case.query, budget=budget.at(case.query.magnification)))
        for case in posed
        for budget in scenario.localise.budget
    ]


def _annotated(slides: Sequence[SlideSpec]) -> list[_Annotated]:
    """Return the slides that have a tree, sorted by name; no slide is opened."""
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
            found.append(_Annotated(slide, names[slide.path], entry.model_copy(update={"organ": organ})))
    if wrong:
        raise AnnotationError("\n".join(dict.fromkeys(wrong)))
    return sorted(found, key=lambda one: one.name)


def _posed(scenario: Scenario, chosen: Sequence[tuple[_Annotated, list[str]]], opener: Opener) -> list[Case]:
    """Return every question with the first budget."""
    localise, granted = scenario.localise, scenario.localise.budget[0]
    posed: list[Case] = []
    wrong: list[str] = []
    for one, ids in chosen:
        with _opened(one, opener) as (spec, slide):
            if broken := misfits(one.entry, slide):
                wrong += [f"{one.slide.tree}: {line}" for line in broken]
                continue
            for node in map(one.entry.node, ids):
                budget = granted.at(node.magnification)
                query, target = one.entry.pose(node, slide, budget, jitter=localise.jitter, seed=scenario.seed)
                posed.append(Case(spec, one.name, slide.fingerprint, node.id, query, target, granted.name))
    if wrong:
        raise AnnotationError("\n".join(wrong))
    return posed


@contextmanager
def _opened(one: _Annotated, opener: Opener) -> Iterator[tuple[SlideSpec, "Slide"]]:
    """Give an open slide and how it was opened: by its tree's mpp where the file and the scenario have none."""
    specs = [one.slide]
    if one.entry.mpp is not None:
        specs.append(one.slide.model_copy(update={"mpp": one.entry.mpp}))
    for spec in specs:
        with opener(spec) as slide:
            if slide.has_mpp:
                yield spec, slide
                return
    raise SlideError(f"{one.slide.path}: has no mpp and no objective power; give mpp or objective_power in the cohort")


def _with_swapped_findings(posed: Sequence[Case], seed: int) -> list[Case]:
    """Return the cases, each with the finding of another one of its magnification; targets stay what they are."""
    finding = {case.id: case.query.finding for case in posed}
    givers: dict[str, str] = {}
    for magnification in sorted({case.query.magnification for case in posed}):
        group = [case.id for case in posed if case.query.magnification == magnification]
        givers |= swapped({name: normalised(finding[name]) for name in group}, magnification, seed)
    return [replace(case, query=replace(case.query, finding=finding[givers[case.id]])) for case in posed]


def explored_slides(scenario: Scenario, slides: Sequence[SlideSpec]) -> list[SlideSpec]:
    """Return the slides that a scenario explores, sorted by their names in the cohort; none is opened.

    A slide without an annotation is left out, since nothing could be measured on it, unless the cohort says that it is
    `tumour_free`. The sample is that of Mode A, where the same slides have queries.

    Args:
        scenario: The scenario.
        slides: Those of its cohort, phantoms among them.

    Raises:
        ConfigError: If no slide is left.
    """
    names = slide_names([slide.path for slide in slides])
    known = {names[slide.path]: slide for slide in slides if slide.annotation is not None or slide.tumour_free}
    for slide in slides:
        if names[slide.path] not in known:
            logger.warning("slide %s has no annotation and is not explored", names[slide.path])
    if not known:
        raise ConfigError(
            f"scenario {scenario.name!r} explores nothing: no slide of its cohort has an annotation, or is tumour_free"
        )
    spec = scenario.cohort.sample or SampleSpec()
    chosen = sampled_slides({name: known[name].organ for name in sorted(known)}, spec)
    if spec.slides is not None and len(chosen) < spec.slides:
        free = sum(slide.annotation is None for slide in known.values())
        there = f"{len(known) - free} with annotations" + (f" and {free} tumour_free" if free else "")
        logger.warning("the sample asks for %d slides, the cohort has %s", spec.slides, there)
    return [known[name] for name in chosen]
