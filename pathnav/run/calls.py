"""How many requests a search has made so far."""

from dataclasses import dataclass


@dataclass(slots=True)
class Calls:
    """Requests that this process made for a search, counted as they end.

    Args:
        answered: Of the tiles that have a score, the second requests after an answer that was not understood included;
            of a scorer without a model the tiles that it scored.
        failed: Those that failed with all their tries.
    """

    answered: int = 0
    failed: int = 0

    @property
    def total(self) -> int:
        """All of them."""
        return self.answered + self.failed
