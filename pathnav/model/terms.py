"""What holds for the calls of one episode."""

from collections.abc import Callable
from dataclasses import dataclass

from pathnav.errors import ModelError, RunStopped

OnFailed = Callable[[float, str, int], None]
"""Told the seconds that a call took, what it failed of, and how many requests were sent for it."""


@dataclass(slots=True)
class Terms:
    """What an episode's calls are bound to, and whether one was not made any more.

    Args:
        until_s: When failed tries are no longer repeated, on the monotonic clock; None for never.
        check: Called before each request; raises `RunStopped` where the episode must not go on.
        on_failed: Told of each call that failed in the end, and for which something was sent.
        stopped: What ended the episode's asking; what its agent did afterwards says nothing about the agent.
    """

    until_s: float | None = None
    check: Callable[[], None] = lambda: None
    on_failed: OnFailed = lambda seconds, sentence, sent: None
    stopped: RunStopped | None = None

    def check_noted(self) -> None:
        """Refuse to go on where `check` does, and note that; whatever an agent makes of it says nothing about it.

        Raises:
            RunStopped: If the episode must not go on.
        """
        try:
            self.check()
        except RunStopped as error:
            self.stopped = error
            raise

    def ended(self, error: ModelError, seconds: float, sent: int) -> None:
        """Note how a call ended without an answer, and how many requests were sent for it."""
        if isinstance(error, RunStopped):
            self.stopped = error
        if sent:
            self.on_failed(seconds, str(error), sent)
