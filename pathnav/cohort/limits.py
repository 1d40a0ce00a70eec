"""What no one can mean: limits of numbers that a command, a scenario and a program give alike."""

from pathnav.errors import ConfigError

MAX_BUDGET = 100_000
"""ROIs; a slide of 100,000 x 100,000 px has 10,000 tiles of 1,024 px at 40x: more looks than tiles are a slip."""
MAX_CONCURRENCY = 1024
"""Requests in flight; each is a thread and a half."""
LEAST_SIDE_PX = 1
"""Level-0 pixels of a search region or a target, in width and height."""


def check_budget(budget: int) -> None:
    """Refuse a budget that cannot be granted.

    Raises:
        ConfigError: If it is.
    """
    if budget < 1:
        raise ConfigError(f"budget must be at least 1 ROI, got {budget}")
    if budget > MAX_BUDGET:
        raise ConfigError(f"budget must be at most {MAX_BUDGET:,} ROIs, got {budget}")


def check_concurrency(concurrency: int) -> None:
    """Refuse a number of requests in flight that cannot be had.

    Raises:
        ConfigError: If it is.
    """
    if concurrency < 1:
        raise ConfigError(f"concurrency must be a whole number of at least 1, got {concurrency}")
    if concurrency > MAX_CONCURRENCY:
        raise ConfigError(f"concurrency must be at most {MAX_CONCURRENCY:,}, got {concurrency}")


def check_sides(what: str, width: float, height: float) -> None:
    """Refuse a box or an extent that is smaller than a pixel.

    Args:
        what: What it is, e.g. `search region`.
        width: In level-0 pixels.
        height: In level-0 pixels.

    Raises:
        ConfigError: If it is.
    """
    if not min(width, height) >= LEAST_SIDE_PX:
        raise ConfigError(f"{what} must be at least {LEAST_SIDE_PX} px wide and high, got {width:g} x {height:g}")
