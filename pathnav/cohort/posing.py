"""From an annotated node, or from a user's own words, to a query about an open slide."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from pathnav.cohort.controls import jittered
from pathnav.cohort.limits import check_sides
from pathnav.cohort.node import Node, TreeSlide
from pathnav.cohort.protocol import BUDGETS, DEFAULT_TARGET_PX, MAGNIFICATIONS, budget_for
from pathnav.cohort.query import Query, Target, slide_handle
from pathnav.errors import ConfigError
from pathnav.geometry import Box

if TYPE_CHECKING:
    from pathnav.slide import Slide


def pose(
    entry: TreeSlide, node: Node, slide: "Slide", budget: int, *, jitter: float = 0.0, seed: int = 0
) -> tuple[Query, Target]:
    """Turn a node into what is asked and what is true (docs/protocol.md, section 2, Search region).

    Args:
        entry: The slide's tree, already checked against the slide.
        node: One of its nodes.
        slide: The open slide.
        budget: ROIs that may be looked at.
        jitter: Largest shift of the search region as a share of its side.
        seed: Draws the shift.
    """
    region = search_region(entry, node, slide.bounds)
    if jitter > 0:
        region = jittered(region, node.box.centre, slide.bounds, jitter, (seed, slide.fingerprint, node.id))
    width, height = min(node.box.width, slide.bounds.width), min(node.box.height, slide.bounds.height)
    query = Query(
        handle=slide_handle(slide.fingerprint),
        magnification=node.magnification,
        finding=node.finding,
        region=region,
        target_width=width,
        target_height=height,
        budget=budget,
        organ=entry.organ,
    )
    cut = (width, height) != (node.box.width, node.box.height)
    return query, Target(node.box, equivalents(entry, node, region), cut)


def search_region(entry: TreeSlide, node: Node, whole_slide: Box) -> Box:
    """Return where an agent may look: the whole slide at 2.5x, else the parent's box cut to it."""
    if node.parent is None:
        return whole_slide
    return entry.node(node.parent).box.intersection(whole_slide)


def equivalents(entry: TreeSlide, node: Node, region: Box) -> tuple[Box, ...]:
    """Return the boxes that the same words describe: the node's own, then those of its like in the search region."""
    others = {
        other.box
        for other in entry.nodes
        if other.magnification == node.magnification
        and normalised(other.finding) == normalised(node.finding)
        and region.holds_point(other.box.centre)
    }
    return node.box, *sorted(others - {node.box}, key=Box.as_list)


def normalised(finding: str) -> str:
    """Return a finding without what makes no difference: case, and the amount of space."""
    return " ".join(finding.casefold().split())


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
    if not (width > 0 and height > 0):
        raise ConfigError(f"region must have a positive width and height, got {width:g} x {height:g}")
    check_sides("region", width, height)
    region = Box(x, y, width, height).intersection(whole_slide)
    if region.is_empty:
        raise ConfigError(f"region {list(numbers)} lies outside the slide, whose area is {whole_slide.as_list()}")
    check_sides(f"the part of region {list(numbers)} that lies on the slide", region.width, region.height)
    return region
