"""In which manner a run is done: nothing of it changes a result."""

from collections.abc import Callable
from dataclasses import dataclass, field

from pathnav.errors import ConfigError
from pathnav.model.gate import Rates
from pathnav.model.guards import Limits, Pricing
from pathnav.run.shard import Shard

MOST_WORKERS = 256


@dataclass(frozen=True, slots=True)
class Manner:
    """How many at a time, how fast, and how far.

    Args:
        workers: Episodes at a time, each in a thread; Ctrl-C then finishes those that run, a second one stops them.
            None runs one after the other in the calling thread, where Ctrl-C stops at once.
        shard: The share of the plan that is run.
        limits: What the run may use.
        pricing: What requests cost; needed for a limit of money.
        rates: How an endpoint may be asked; None: 8 requests at a time, or as many as a search wants.
        episode_minutes: After so many minutes a failed request of an episode is not repeated; None for never.
        on_draining: Told, at the first Ctrl-C, how many episodes are being finished.

    Raises:
        ConfigError: If a number is out of range.
    """

    workers: int | None = None
    shard: Shard = field(default_factory=Shard)
    limits: Limits = field(default_factory=Limits)
    pricing: Pricing | None = None
    rates: Rates | None = None
    episode_minutes: float | None = None
    on_draining: Callable[[int], None] = lambda running: None

    def __post_init__(self) -> None:
        if self.workers is not None and not 1 <= self.workers <= MOST_WORKERS:
            raise ConfigError(f"--workers must be a whole number from 1 to {MOST_WORKERS}, got {self.workers}")
        if self.episode_minutes is not None and not self.episode_minutes > 0:
            raise ConfigError(f"--episode-minutes must be a number above 0, got {self.episode_minutes:g}")
