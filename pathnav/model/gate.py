"""The gate of an endpoint: how many requests may be under way, how fast they follow, and when to stop asking.

All threads and clients of a run share one gate for each endpoint. Answers let more requests be under way, HTTP 429, and
503 with Retry-After, fewer: how many, `places` says.
"""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from pathnav.errors import ConfigError, ModelError, RunStopped
from pathnav.model.failures import Failure
from pathnav.model.guards import Guard
from pathnav.model.places import Places

FAILED_CALLS_IN_A_ROW = 5
"""So many calls that fail, with all their tries and without a success between, stop a run: its endpoint is down."""

_WAIT_S = 0.5  # how soon a waiting thread sees that a limit of time has passed
_QUIET_S = 1.0  # warnings of one endpoint are at least so far apart


@dataclass(frozen=True, slots=True)
class Rates:
    """How an endpoint may be asked.

    Args:
        concurrency: Requests that may be under way.
        requests_per_minute: None lets them follow each other as fast as answers come.

    Raises:
        ConfigError: If one of them is not above 0.
    """

    concurrency: int = 8
    requests_per_minute: float | None = None

    def __post_init__(self) -> None:
        if self.concurrency < 1:
            raise ConfigError(f"concurrency must be a whole number of at least 1, got {self.concurrency}")
        if self.requests_per_minute is not None and not self.requests_per_minute > 0:
            raise ConfigError(f"requests_per_minute must be above 0, got {self.requests_per_minute:g}")


class Gate:
    """Lets requests to one endpoint pass; until it has answered once, one at a time.

    Args:
        rates: How it may be asked.
        guard: What the run may use.
        stops_after: Failed calls in a row after which it closes for good; None never closes it.
        clock: Seconds; a test passes its own.
    """

    def __init__(
        self,
        rates: Rates | None = None,
        guard: Guard | None = None,
        *,
        stops_after: int | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        rates = rates or Rates()
        self.guard = guard or Guard()
        self.answered = False
        self._places = Places(rates.concurrency)
        self._interval_s = 60.0 / rates.requests_per_minute if rates.requests_per_minute else 0.0
        self._stops_after = stops_after
        self._clock = clock
        lock = threading.RLock()
        self._room = threading.Condition(lock)  # who is woken takes the place, and wakes the next while there is more
        self._news = threading.Condition(lock)  # of the end, for those who wait before another try
        self._under_way = self._cuts = self._failed_calls = 0
        self._opens_s = self._next_s = self._loud_s = float("-inf")
        self._closed: ModelError | None = None

    @property
    def size(self) -> int:
        """How many requests may be under way now."""
        return self._places.size if self.answered else 1

    @property
    def closed(self) -> ModelError | None:
        """Why nothing is asked any more; None while it is."""
        return self._closed

    @contextmanager
    def admitted(self, until_s: float | None = None) -> Iterator[int]:
        """Wait for a place and hold it for the time of a block; gives what `throttled` wants to know.

        Args:
            until_s: When to give up waiting, on the clock.

        Raises:
            ModelError: If that moment has come.
            RunStopped: If nothing is asked any more.
        """
        with self._room:
            try:
                self._wait(until_s)
                self._under_way += 1
                self._next_s = max(self._clock(), self._next_s) + self._interval_s
            finally:
                self._wake_one()
            cuts = self._cuts
        try:
            yield cuts
        finally:
            with self._room:
                self._under_way -= 1
                self._wake_one()

    def sleep(self, seconds: float) -> None:
        """Wait before another try.

        Raises:
            RunStopped: As soon as nothing is asked any more.
        """
        end_s = self._clock() + seconds
        with self._news:
            while (left_s := end_s - self._clock()) > 0:
                self.check()
                self._news.wait(min(left_s, _WAIT_S))

    def succeeded(self) -> None:
        """Note an answer."""
        with self._room:
            self.answered, self._failed_calls = True, 0
            self._places.answered(self._clock())
            self._wake_one()

    def reached(self) -> None:
        """Note that the endpoint is there, though what it answered is a failure."""
        with self._room:
            self.answered = True
            self._wake_one()

    def throttled(self, cuts: int, pause_s: float | None) -> None:
        """Let fewer requests pass, and none for a while.

        Args:
            cuts: What `admitted` gave: requests that were under way together count as one refusal.
            pause_s: For how long the server wants to be left alone.
        """
        with self._room:
            if cuts == self._cuts:
                self._places.refused(self._clock(), self._under_way)
                self._cuts += 1
            elif cuts == self._cuts - 1:
                self._places.refused_too()
            if pause_s is not None:
                self._opens_s = max(self._opens_s, self._clock() + pause_s)

    def call_failed(self, failure: Failure, sentence: str) -> None:
        """Count a call that failed with all its tries; the last one in a row closes the gate."""
        if self._stops_after is None or not failure.is_outage:
            return
        with self._room:
            self._failed_calls += 1
            if self._failed_calls >= self._stops_after and self._closed is None:
                self.close(RunStopped(f"{self._stops_after} calls in a row failed, the last one since {sentence}"))

    def close(self, error: ModelError) -> None:
        """Let nothing pass any more: whoever waits, or asks later, gets this error."""
        with self._room:
            self._closed = self._closed or error
            self._room.notify_all()
            self._news.notify_all()

    def check(self) -> None:
        """Refuse to go on once nothing is asked any more.

        Raises:
            ModelError: What the gate was closed with, or RunStopped where a limit is reached.
        """
        if self._closed is not None:
            raise type(self._closed)(str(self._closed), remedy=self._closed.remedy)
        self.guard.check()

    def may_warn(self) -> bool:
        """Return whether a warning may be shown now: at most one a second, however many threads have one."""
        with self._room:
            if self._clock() - self._loud_s < _QUIET_S:
                return False
            self._loud_s = self._clock()
            return True

    def _wait(self, until_s: float | None) -> None:
        """Wait for a place; whoever leaves without one leaves it to the next."""
        while (wait_s := self._wait_s()) > 0:
            self.check()
            if until_s is not None and self._clock() >= until_s:
                raise ModelError("the episode's time was up before the endpoint could be asked again")
            self._room.wait(min(wait_s, _WAIT_S))
        self.check()

    def _wake_one(self) -> None:
        """Wake one of those who wait for a place, where there is one."""
        if self._under_way < self.size:
            self._room.notify()

    def _wait_s(self) -> float:
        """Return how long the next request must wait at least, 0 where it may pass."""
        if self._closed is not None:
            return 0.0
        pause_s = max(self._opens_s, self._next_s) - self._clock()
        return max(pause_s, 0.0) if self._under_way < self.size else max(pause_s, _WAIT_S)
