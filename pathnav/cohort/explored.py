"""From a scenario to the slides that it explores: those whose tumour is known, or a sample of them."""

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pathnav.cohort.names import slide_names
from pathnav.cohort.sample import Candidate, sampled_slides
from pathnav.cohort.scenario import SampleSpec, Scenario, SlideSpec
from pathnav.errors import ConfigError

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ExploredSlide:
    """A slide of the cohort, not yet open.

    Args:
        name: Unique in the cohort, and the same on every machine.
        slide: How it is opened, and where its tumour is annotated.
    """

    name: str
    slide: SlideSpec


def explored_slides(scenario: Scenario, slides: Sequence[SlideSpec]) -> list[ExploredSlide]:
    """Return the slides that a scenario explores, sorted by name; none is opened.

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
    candidates = [Candidate(name, known[name].organ, {}) for name in sorted(known)]
    spec = scenario.cohort.sample or SampleSpec()
    chosen = sampled_slides(candidates, spec)
    if spec.slides is not None and len(chosen) < spec.slides:
        logger.warning("the sample asks for %d slides, the cohort has %s", spec.slides, _counted(known.values()))
    return [ExploredSlide(one.name, known[one.name]) for one in chosen]


def _counted(slides: Iterable[SlideSpec]) -> str:
    """Return how many slides have an annotation, and how many need none."""
    free = [slide.annotation is None for slide in slides]
    annotated, tumour_free = free.count(False), free.count(True)
    return f"{annotated} with annotations" + (f" and {tumour_free} tumour_free" if tumour_free else "")
