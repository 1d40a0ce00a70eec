"""Guards of a run: how many requests it may make, how much they may cost, how long it may take.

A request is paid for before it is sent: its most is set aside, and replaced by what it came to once it is answered.
So no limit is passed, and still many requests may be under way.
"""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

from pathnav.errors import ConfigError, RunStopped
from pathnav.model.question import Question
from pathnav.model.reply import Tokens
from pathnav.model.settings import ChatSettings

_WAIT_S = 0.5  # how soon a waiting thread sees that time is up


@dataclass(frozen=True, slots=True)
class Limits:
    """What a run may use; None is no limit.

    Raises:
        ConfigError: If a limit is not above 0.
    """

    max_calls: int | None = None  # requests sent, those that fail included
    max_usd: float | None = None
    max_minutes: float | None = None  # from the beginning of the run

    def __post_init__(self) -> None:
        for name, kind in (("max_calls", "a whole number"), ("max_usd", "a number"), ("max_minutes", "a number")):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise ConfigError(f"--{name.replace('_', '-')} must be {kind} above 0, got {value:g}")


class Pricing(Protocol):
    """What requests cost, in USD; None where nobody knows."""

    def bound(self, settings: ChatSettings, question: Question) -> float | None:
        """Return the most that a request can cost."""

    def cost(self, settings: ChatSettings, tokens: Tokens | None) -> float | None:
        """Return what a request cost that took so many tokens."""


class Reservation:
    """What was set aside for one request."""

    def __init__(self, usd: float) -> None:
        self.usd = usd

    def settle(self, usd: float | None) -> None:
        """Replace the most by what it came to; where that is not known, the most stands."""
        if usd is not None:
            self.usd = usd


class Guard:
    """Counts what a run uses; shared by all its threads and endpoints.

    Args:
        limits: What it may use.
        pricing: What requests cost; needed for `max_usd`.
        clock: Seconds; a test passes its own.
    """

    def __init__(
        self,
        limits: Limits | None = None,
        pricing: Pricing | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.limits = limits or Limits()
        self.pricing = pricing
        self.calls = 0
        self._under_way = 0
        self._spent_usd = Fraction()  # exact: what is added and taken away again leaves nothing
        self._reserved_usd = Fraction()
        self._clock = clock
        self._started_s = clock()
        self._changed = threading.Condition()
        self._reached: str | None = None

    @property
    def spent_usd(self) -> float:
        """What the requests that are over came to."""
        return float(self._spent_usd)

    @property
    def reached(self) -> str | None:
        """Which limit was reached, as the beginning of a sentence; None where none was."""
        minutes = self.limits.max_minutes
        if self._reached is None and minutes is not None and self._clock() - self._started_s >= minutes * 60:
            self._reached = f"the limit --max-minutes {minutes:g} is reached"
        return self._reached

    def check(self) -> None:
        """Refuse to go on once a limit is reached.

        Raises:
            RunStopped: If one is.
        """
        if self.reached is not None:
            raise RunStopped(self.reached)

    @contextmanager
    def reserved(
        self, settings: ChatSettings, question: Question, check: Callable[[], None] = lambda: None
    ) -> Iterator[Reservation]:
        """Set aside what a request takes at most; at the end of the block what it took is counted.

        While others are under way whose rest may be enough for this one, it waits for them.

        Args:
            settings: The endpoint.
            question: The request.
            check: Raises as soon as nothing is asked any more; called after each wait.

        Raises:
            RunStopped: If a limit does not allow it.
        """
        bound = self._bound(settings, question)
        with self._changed:
            while not self._fits(bound):
                self._changed.wait(_WAIT_S)
                check()
            self.calls += 1
            self._under_way += 1
            self._reserved_usd += Fraction(bound)
        reservation = Reservation(bound)
        try:
            yield reservation
        finally:
            with self._changed:
                self._under_way -= 1
                self._reserved_usd -= Fraction(bound)
                self._spent_usd += Fraction(reservation.usd)
                self._changed.notify_all()

    def _bound(self, settings: ChatSettings, question: Question) -> float:
        """Return the most a request can cost; 0 where money is not limited."""
        if self.limits.max_usd is None:
            return 0.0
        bound = self.pricing.bound(settings, question) if self.pricing is not None else None
        if bound is None:
            raise RunStopped(f"a limit of money needs a price of model {settings.model!r}, and there is none")
        return bound

    def _fits(self, bound: float) -> bool:
        """Return whether a request may be sent now, False where that may be known later.

        Raises:
            RunStopped: If it may not.
        """
        self.check()
        limits = self.limits
        if limits.max_calls is not None and self.calls >= limits.max_calls:
            self._reached = f"the limit --max-calls {limits.max_calls} is reached"
        elif limits.max_usd is not None and self._spent_usd + self._reserved_usd + Fraction(bound) > limits.max_usd:
            if self._under_way > 0:  # its rest may be enough; with nothing under way there is nothing to wait for
                return False
            spent = f"{self.spent_usd:.4f} USD are spent and the next request may cost {bound:.4f}"
            self._reached = f"the limit --max-usd {limits.max_usd:g} is reached: {spent}"
        if self._reached is not None:
            self._changed.notify_all()
        self.check()
        return True
