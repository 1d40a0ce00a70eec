"""How far a run is."""

from collections.abc import Callable
from dataclasses import dataclass

from pathnav.run.record import JsonObject


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a run is.

    Args:
        planned: Episodes in all, of this shard; a search is one for each of its schedules.
        kept: Episodes that were finished before this run began, or by other processes meanwhile.
        done: Episodes that this run has brought to an end, failures included.
        failed: Those of them that ended in `infra_error`.
        interrupted: Episodes that were begun and stopped; they go on next time.
        elsewhere: Episodes that other processes hold at the end.
        rois: ROIs looked at in this run.
        seconds: Since this run began.
        model: Name of the first model that will be asked, None where none is.
        latest: Result of the latest episode, None before the first.
        calls_now: Requests that this run's searches made, failed ones included.
        tiles: While tiles are scored, which and how many, for the reader; None between.
        stopped: Why it ends before its end, as the beginning of a sentence: a guard, or an endpoint that is down.
        units: What is counted: episodes, searches, or both.
    """

    planned: int
    kept: int
    done: int = 0
    failed: int = 0
    interrupted: int = 0
    elsewhere: int = 0
    rois: int = 0
    seconds: float = 0.0
    model: str | None = None
    latest: JsonObject | None = None
    calls_now: int = 0
    tiles: str | None = None
    stopped: str | None = None
    units: str = "episodes"

    @property
    def left(self) -> int:
        """Episodes still to run."""
        return self.planned - self.kept - self.done

    @property
    def seconds_left(self) -> float | None:
        """Expected seconds to the end, at the pace so far; None before the first episode."""
        return self.seconds / self.done * self.left if self.done else None


OnProgress = Callable[[Progress], None]
