"""Controls that show whether an agent uses what it is given (docs/protocol.md, section 2, Controls).

- `jittered` breaks the habit of annotators to centre a parent on its child.
- `swapped` gives every query the finding of another: an agent that reads findings must get worse.

Blank images are a setting of the views, repeats are more cases: neither needs code here.
"""

import logging
import math
from collections import defaultdict
from collections.abc import Mapping

import numpy as np

from pathnav.cohort.seeds import generator, seeded_rank
from pathnav.errors import ConfigError
from pathnav.geometry import Box

logger = logging.getLogger(__name__)


def jittered(
    region: Box, centre: tuple[float, float], whole_slide: Box, share: float, seed: tuple[int, str, str]
) -> Box:
    """Shift a search region by a seeded offset, the same for every agent, budget and repeat.

    The offset is uniform among the whole numbers that keep the target's centre inside the region and the region inside
    the slide, per axis; so a region that fills the slide, as all do at 2.5x, stays where it is.

    Args:
        region: Search region in level-0 pixels, inside the slide.
        centre: Centre of the target (x, y), inside the region.
        whole_slide: The scanned area.
        share: Largest offset as a share of the region's side.
        seed: The scenario's seed, the slide's fingerprint and the node's id.

    Returns: The region at its new place, its size unchanged.
    """
    rng = generator(seed[0], "jitter", *seed[1:])
    left, right = centre[0] - region.right, centre[0] - region.x
    above, below = centre[1] - region.bottom, centre[1] - region.y
    across = _offset(
        rng,
        max(-region.width * share, left, whole_slide.x - region.x),
        min(region.width * share, right, whole_slide.right - region.right),
    )
    down = _offset(
        rng,
        max(-region.height * share, above, whole_slide.y - region.y),
        min(region.height * share, below, whole_slide.bottom - region.bottom),
    )
    return Box(region.x + across, region.y + down, region.width, region.height)


def _offset(rng: np.random.Generator, least: float, most: float) -> int:
    """Return a whole number between two limits; 0 is always one, also where rounding moved a limit past it."""
    return int(rng.integers(math.ceil(min(least, 0.0)), math.floor(max(most, 0.0)), endpoint=True))


def swapped(findings: Mapping[str, str], magnification: float, seed: int) -> dict[str, str]:
    """Give each query of one magnification the finding of another, of a different text where there is one.

    The queries are laid out in seeded order with equal texts side by side, then every finding moves on by the size of
    the largest such group: nobody keeps its own, and a text comes back to its own kind only where that kind is more
    than half of all.

    Args:
        findings: Normalised finding by the query's id.
        magnification: Of all these queries.
        seed: Draws the order.

    Returns: By the query's id, the id of the query whose finding it gets.

    Raises:
        ConfigError: If all findings are the same, so that nothing would be swapped.
    """
    groups: dict[str, list[str]] = defaultdict(list)
    for name in sorted(findings, key=lambda name: (seeded_rank(seed, "swap", name), name)):
        groups[findings[name]].append(name)
    if len(groups) < 2:
        raise ConfigError(f"swapped_findings needs two different findings at {magnification:g}x, got {len(groups)}")
    ranked = sorted(groups, key=lambda text: (-len(groups[text]), seeded_rank(seed, "swap group", text), text))
    order = [name for text in ranked for name in groups[text]]
    largest = len(groups[ranked[0]])
    giver = {name: order[(position + largest) % len(order)] for position, name in enumerate(order)}
    kept = sum(findings[name] == findings[other] for name, other in giver.items())
    if kept:
        logger.warning(
            "swapped_findings: %d of %d queries get another query's finding of the same text", kept, len(order)
        )
    return giver
