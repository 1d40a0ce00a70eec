"""What is asked, and what is true: two types, so that the second cannot slip into what an agent is given."""

import hashlib
from dataclasses import dataclass

from pathnav.cohort.limits import check_budget, check_sides
from pathnav.cohort.protocol import MAGNIFICATIONS
from pathnav.errors import ConfigError
from pathnav.geometry import Box

_HANDLE_DIGITS = 6


@dataclass(frozen=True, slots=True)
class Query:
    """All that an agent may know about a question.

    Args:
        handle: Opaque name of the slide, see `slide_handle`.
        magnification: 2.5, 10 or 40.
        finding: A pathologist's sentence about the region that is looked for.
        region: Search region, in level-0 pixels.
        target_width: Width of the target in level-0 pixels, already cut to the whole slide.
        target_height: Height of the target in level-0 pixels, already cut to the whole slide.
        budget: ROIs that may be looked at.
        organ: Organ of the slide, where known.

    Raises:
        ConfigError: If the question cannot be asked.
    """

    handle: str
    magnification: float
    finding: str
    region: Box
    target_width: float
    target_height: float
    budget: int
    organ: str | None = None

    def __post_init__(self) -> None:
        if self.magnification not in MAGNIFICATIONS:
            raise ConfigError(f"magnification must be 2.5, 10 or 40, got {self.magnification:g}")
        if not self.finding.strip():
            raise ConfigError("finding must say what to look for, got an empty text")
        if self.region.is_empty:
            raise ConfigError(f"search region must have an area, got {self.region.as_list()}")
        check_sides("search region", self.region.width, self.region.height)
        if not (self.target_width > 0 and self.target_height > 0):
            raise ConfigError(f"target size must be positive, got {self.target_width:g} x {self.target_height:g}")
        check_sides("target size", self.target_width, self.target_height)
        check_budget(self.budget)


@dataclass(frozen=True, slots=True)
class Target:
    """The answer to a query; never given to an agent.

    Args:
        box: The annotated box, as annotated, in level-0 pixels.
        equivalents: Boxes of all nodes of the query's magnification whose centre lies in the search region and whose
            finding has the same text, `box` among them: the score `iou_any` takes the best of them.
        cut: Whether the target is larger than the whole slide on a side.
    """

    box: Box
    equivalents: tuple[Box, ...] = ()
    cut: bool = False


def slide_handle(fingerprint: str) -> str:
    """Return the opaque name of a slide, e.g. `slide-3fa9c1`: file names tell diagnoses, fingerprints do not."""
    return "slide-" + hashlib.sha256(fingerprint.encode()).hexdigest()[:_HANDLE_DIGITS]
