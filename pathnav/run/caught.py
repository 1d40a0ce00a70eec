"""The one place that catches everything: whatever an agent or a scorer does, its episode has an end."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class Failed:
    """What was raised in place of an answer.

    Args:
        error: Any exception; a KeyboardInterrupt is for the caller to raise again once all is recorded.
    """

    error: BaseException


def caught(work: Callable[[], Answer]) -> Answer | Failed:
    """Return what a piece of an episode comes to: its answer, or whatever it raised."""
    try:
        return work()
    except (Exception, SystemExit, KeyboardInterrupt) as error:  # noqa: BLE001  # the one place
        return Failed(error)
