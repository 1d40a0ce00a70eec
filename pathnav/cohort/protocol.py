"""The numbers of the benchmark's protocol, each with the section of the protocol that sets it.

The protocol is Task 3 of "PathAgentBench: Benchmarking Evidence-Seeking Vision-Language Models on Whole-Slide
Pathology Images" (arXiv 2607.19261). *Ours* marks a number on which the paper is silent; each is a setting or is
written into every run's record.
"""

from collections.abc import Mapping
from types import MappingProxyType

from pathnav.errors import ConfigError
from pathnav.slide import scale

# Section 1: magnification and extent

MAGNIFICATIONS = scale.MAGNIFICATIONS
"""Magnifications of a diagnostic tree, root to leaf; set where slides are given a scale."""

# Section 2: Mode A, budgets

BUDGETS: Mapping[str, tuple[int, int, int]] = MappingProxyType(
    {"tight": (5, 3, 2), "base": (10, 7, 5), "loose": (20, 15, 10)}
)
"""ROIs an agent may look at, at (2.5x, 10x, 40x)."""

# Section 2: Mode A, images (ours)

VIEW_LIMIT_PX = 1024
"""Limit of the long side of an image shown to a model."""

MIN_IMAGE_SIDE_PX = 64
"""Smaller images are enlarged by a whole factor, since servers refuse them."""

JPEG_QUALITY = 90
"""Quality of the images sent to a model."""

DEFAULT_TARGET_PX = 1024
"""Side of the target where none is given, in pixels at the query's magnification."""

# Section 2: Mode A, steps (ours)

STEPS_PER_ROI = 3
SPARE_STEPS = 6


def max_steps(budget: int) -> int:
    """Return the most steps an episode may take: 3 x budget + 6."""
    return STEPS_PER_ROI * budget + SPARE_STEPS


MAX_SILENT_ANSWERS = 3
"""So many answers in a row without a tool call lead to the forced turn."""

FORCED_TRIES = 2
"""Turns in which only `finish_and_report` is offered: one, and one more where its arguments do not validate."""

# Section 2: Mode A, decoding (ours)

TEMPERATURE = 0.0
TOP_P = 1.0
MAX_TOKENS = 1024

# Section 2: Mode A, scores, baselines and controls

IOU_THRESHOLD = 0.3
"""The paper's second score is the share of queries with at least this IoU."""

RANDOM_DRAWS = 1000
"""Seeded draws per query over which the `random` baseline is averaged (ours)."""

# Section 3: Mode B

TILE_PX = 1024
"""Side of the image of a tile, in pixels at the tile's magnification (ours)."""

MAX_TILE_PX = 16_384
"""No model takes a larger image, and one of this size fills 805 MB (ours)."""

TILE_FACTOR = 4
"""Tiles of one magnification along the side of a tile of the next lower one: 4 x 4 children."""

MIN_TISSUE = 0.01
"""Tiles with less tissue, as a share of their area, are not shown to a scorer (ours)."""

POSITIVE_SHARE = 0.05
"""A tile is positive when more than this share of its area overlaps the annotated tumour."""

SCHEDULE = (6, 3, 2)
"""Tiles kept: of the slide at 2.5x, per parent at 10x and at 40x."""

SCHEDULES = ((1, 1, 1), (3, 3, 3), (6, 3, 2), (6, 5, 3), (10, 5, 3))
"""The sweep of the paper's Table IV."""

TIE_DECIMALS = 4
"""Confidences equal to so many decimals are a tie, ordered by a seeded hash (ours)."""

# Section 4: statistics (ours)

BOOTSTRAP_RESAMPLES = 2000
CONFIDENCE_LEVEL = 0.95
SIGN_FLIPS = 10_000
MIN_SLIDES_FOR_INTERVAL = 5
"""No cell is printed without its interval from this many slides on."""


def budget_for(magnification: float, budget: tuple[int, int, int] = BUDGETS["base"]) -> int:
    """Return the ROIs that a budget grants at one of the three magnifications."""
    return budget[MAGNIFICATIONS.index(magnification)]


# What no one can mean: the same for commands, scenarios and programs (ours)

MAX_BUDGET = 100_000
"""ROIs; a slide of 100,000 x 100,000 px has 10,000 tiles of 1,024 px at 40x: more looks than tiles are a slip."""

MAX_CONCURRENCY = 1024
"""Requests in flight; each is a thread and a half."""


def check_budget(budget: int) -> None:
    """Refuse a budget that cannot be granted."""
    if budget < 1:
        raise ConfigError(f"budget must be at least 1 ROI, got {budget}")
    if budget > MAX_BUDGET:
        raise ConfigError(f"budget must be at most {MAX_BUDGET:,} ROIs, got {budget}")


def check_concurrency(concurrency: int) -> None:
    """Refuse a number of requests in flight that cannot be had."""
    if concurrency < 1:
        raise ConfigError(f"concurrency must be a whole number of at least 1, got {concurrency}")
    if concurrency > MAX_CONCURRENCY:
        raise ConfigError(f"concurrency must be at most {MAX_CONCURRENCY:,}, got {concurrency}")
