"""One look that an agent paid for."""

from dataclasses import asdict, dataclass
from typing import Any

from pathnav.geometry import Box


@dataclass(frozen=True, slots=True)
class Roi:
    """One look that was paid for.

    Args:
        box: Whole level-0 pixels that were shown.
        reason: The agent's own words.
        magnification: Effective magnification of what was shown.
        sha256: Name of the image.
        cut: Whether the request reached beyond the search region.
    """

    box: Box
    reason: str
    magnification: float
    sha256: str
    cut: bool

    def as_dict(self) -> dict[str, Any]:
        """Return the look as plain JSON."""
        return {**asdict(self), "box": self.box.as_list()}
