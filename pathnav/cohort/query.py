"""What is asked, and what is true: two types, so that the second cannot slip into what an agent is given."""

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pathnav.cohort.protocol import BUDGETS, DEFAULT_TARGET_PX, MAGNIFICATIONS, budget_for, check_budget
from pathnav.errors import ConfigError
from pathnav.geometry import Box

if TYPE_CHECKING:
    from pathnav.slide import Slide

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
        _check_sides("search region", self.region.width, self.region.height)
        _check_sides("target size", self.target_width, self.target_height)
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


def query_of_user(
    slide: "Slide",
    finding: str,
    magnification: float,
    *,
    region: Sequence[float] | None = None,
    target_size: Sequence[float] | None = None,
    budget: int | None = None,
) -> tuple[Query, bool]:
    """Return the query of `pathnav locate`, and whether its target was cut to the whole slide.

    Args:
        slide: The open slide; its scale must be known where `target_size` is not given.
        finding: What to look for.
        magnification: 2.5, 10 or 40.
        region: [x, y, w, h] in level-0 pixels, cut to the whole slide; None is the whole slide.
        target_size: Width and height in level-0 pixels; None is 1,024 px at the magnification,
            to the nearest level-0 pixel.
        budget: ROIs; None is the protocol's base budget at the magnification.

    Raises:
        ConfigError: If the query cannot be asked.
        SlideError: If a scale is needed and not known.
    """
    if magnification not in MAGNIFICATIONS:
        raise ConfigError(f"magnification must be 2.5, 10 or 40, got {magnification:g}")
    width, height = _target_size(target_size, slide, magnification)
    cut_width, cut_height = min(width, slide.bounds.width), min(height, slide.bounds.height)
    query = Query(
        handle=slide_handle(slide.fingerprint),
        magnification=float(magnification),
        finding=finding,
        region=_region_of_user(region, slide.bounds),
        target_width=cut_width,
        target_height=cut_height,
        budget=budget_for(magnification, BUDGETS["base"]) if budget is None else budget,
    )
    return query, (cut_width, cut_height) != (width, height)


def _target_size(numbers: Sequence[float] | None, slide: "Slide", magnification: float) -> tuple[float, float]:
    if numbers is None:
        across, down = slide.downsample(magnification)
        return round(DEFAULT_TARGET_PX * across), round(DEFAULT_TARGET_PX * down)
    if len(numbers) != 2:
        raise ConfigError(f"target size must be two numbers w,h in level-0 pixels, got {len(numbers)}")
    return numbers[0], numbers[1]


def _region_of_user(numbers: Sequence[float] | None, whole_slide: Box) -> Box:
    if numbers is None:
        return whole_slide
    if len(numbers) != 4:
        raise ConfigError(f"region must be four numbers x,y,w,h in level-0 pixels, got {len(numbers)}")
    x, y, width, height = numbers
    if not all(math.isfinite(number) for number in numbers):
        raise ConfigError(f"region must be four finite numbers, got {list(numbers)}")
    _check_sides("region", width, height)
    region = Box(x, y, width, height).intersection(whole_slide)
    if region.is_empty:
        raise ConfigError(f"region {list(numbers)} lies outside the slide, whose area is {whole_slide.as_list()}")
    _check_sides(f"the part of region {list(numbers)} that lies on the slide", region.width, region.height)
    return region


def _check_sides(what: str, width: float, height: float) -> None:
    """Refuse a box or an extent, in level-0 pixels, that is smaller than a pixel."""
    if not (width >= 1 and height >= 1):
        raise ConfigError(f"{what} must be at least 1 px wide and high, got {width:g} x {height:g}")
