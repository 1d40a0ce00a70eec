"""Ctrl-C, with what there is by then."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathnav.run.explore_request import Searched
    from pathnav.run.request import Located


class Stopped(KeyboardInterrupt):
    """Raised when Ctrl-C ended a request whose record says so; to all who do not ask, a KeyboardInterrupt.

    Args:
        found: What was recorded, with the outcome `interrupted`.
    """

    def __init__(self, found: "Searched | Located") -> None:
        super().__init__()
        self.found = found
