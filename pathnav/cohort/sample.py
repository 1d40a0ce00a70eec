"""Choices drawn by a seed: samples, and the controls that shift search regions or swap findings (docs/protocol.md, 2).

They depend on the seed and on the names of slides and nodes, never on the order in which these were listed. Blank
images are a setting of the views, repeats are more cases: neither needs code here.
"""

import hashlib
import logging
import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from pathnav.errors import ConfigError
from pathnav.geometry import Box
from pathnav.settings import Frozen

logger = logging.getLogger(__name__)


def seeded_rank(seed: int, *words: str) -> str:
    """Return a sort key that puts things into an order drawn by the seed.

    The key of one thing does not depend on what else there is: a cohort that gains a slide keeps most of its sample.
    """
    return hashlib.sha256("\x1f".join((str(seed), *words)).encode()).hexdigest()


def generator(seed: int, *words: str) -> np.random.Generator:
    """Return a random generator for one purpose, independent of all others with the same seed."""
    return np.random.default_rng(int(seeded_rank(seed, *words), 16))


class SampleSpec(Frozen):
    """What is drawn from a cohort."""

    slides: Annotated[int, Field(ge=1)] | None = None
    """None takes all."""
    stratify: Literal["organ"] | None = None
    queries_per_magnification: Annotated[int, Field(ge=1)] | None = None
    """Per slide; None takes all."""
    seed: int = 0


Nodes = Mapping[str, Mapping[float, Sequence[str]]]
"""Ids of the nodes that could be asked for, by slide and magnification."""


def select(nodes: Nodes, organs: Mapping[str, str | None], spec: SampleSpec) -> tuple[dict[str, list[str]], list[str]]:
    """Choose slides and queries.

    Args:
        nodes: Of every slide of the cohort; one without any is left out.
        organs: By slide; None is a stratum too.
        spec: What is asked for.

    Returns: The chosen nodes by slide, sorted by magnification and id, and a sentence for all that is missing.
    """
    usable = {name: organs[name] for name in sorted(nodes) if any(nodes[name].values())}
    notes = [f"slide {name} has no query and is left out" for name in nodes if name not in usable]
    chosen: dict[str, list[str]] = {name: [] for name in sampled_slides(usable, spec)}
    if spec.slides is not None and len(chosen) < spec.slides:
        notes.append(f"the sample asks for {spec.slides} slides, the cohort has {len(chosen)} with queries")
    wanted = spec.queries_per_magnification
    for name, drawn in chosen.items():
        for magnification, ids in sorted(nodes[name].items()):
            ranked = sorted(ids, key=lambda node: (seeded_rank(spec.seed, "node", name, node), node))[:wanted]
            drawn += sorted(ranked)
            if wanted is not None and len(ranked) < wanted:
                notes.append(f"slide {name} has {len(ranked)} of {wanted} queries at {magnification:g}x")
    return chosen, sorted(notes)


def sampled_slides(organs: Mapping[str, str | None], spec: SampleSpec) -> list[str]:
    """Return the names of the slides of a sample, sorted; their queries are left to the caller."""
    total = len(organs) if spec.slides is None else min(spec.slides, len(organs))
    strata: dict[str, list[str]] = defaultdict(list)
    for name, organ in organs.items():
        strata[f"organ {organ}" if spec.stratify and organ is not None else ""].append(name)
    seats = allocate({stratum: len(members) for stratum, members in strata.items()}, total, spec.seed)
    chosen = []
    for stratum, members in strata.items():
        ranked = sorted(members, key=lambda name: (seeded_rank(spec.seed, "slide", name), name))
        chosen += ranked[: seats[stratum]]
    return sorted(chosen)


def allocate(sizes: Mapping[str, int], total: int, seed: int) -> dict[str, int]:
    """Share out slides among strata in proportion to their sizes.

    One each where that is possible, then by the rule of Sainte-Lague (the next slide goes to the stratum with the
    highest size / (2 x given + 1)), so that no stratum is left out and none gets more than it has.

    Args:
        sizes: Slides of each stratum, at least 1.
        total: Slides to share out, at most the sum of the sizes.
        seed: Decides between equals.
    """
    given = dict.fromkeys(sizes, 1 if total >= len(sizes) else 0)
    for _ in range(total - sum(given.values())):
        open_strata = [name for name in sizes if given[name] < sizes[name]]
        first = min(
            open_strata,
            key=lambda name: (-sizes[name] / (2 * given[name] + 1), seeded_rank(seed, "stratum", name), name),
        )
        given[first] += 1
    return given


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
    if kept := sum(findings[name] == findings[other] for name, other in giver.items()):
        told = "swapped_findings: %d of %d queries get another query's finding of the same text"
        logger.warning(told, kept, len(order))
    return giver
