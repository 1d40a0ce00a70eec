"""What an episode comes to: looks, a report, the box that is scored, and how it ended (docs/protocol.md, section 2)."""

import hashlib
import math
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

import numpy as np

from pathnav.cohort.query import Query
from pathnav.errors import RoiError
from pathnav.geometry import Box, Floats

# A declared distribution of up to so many boxes is written out in the record; a larger one leaves its hash.
DRAWS_WRITTEN_OUT = 1000


class Outcome(StrEnum):
    """The end of an episode; the first seven are the agent's, the last two are not."""

    FINISHED = "finished"
    FORCED = "forced"
    NO_REPORT = "no_report"
    FORMAT_ERRORS = "format_errors"
    STEP_LIMIT = "step_limit"
    REFUSED = "refused"
    CONTEXT_OVERFLOW = "context_overflow"
    INFRA_ERROR = "infra_error"
    INTERRUPTED = "interrupted"

    @property
    def is_agents(self) -> bool:
        """Whether the outcome is the agent's own and is scored as its answer."""
        return self not in (Outcome.INFRA_ERROR, Outcome.INTERRUPTED)


@dataclass(frozen=True, slots=True)
class Roi:
    """One look that was paid for: the whole level-0 pixels that were shown, at their effective magnification.

    `reason` is the agent's own words, `sha256` names the image, `cut`: the request reached beyond the search region.
    """

    box: Box
    reason: str
    magnification: float
    sha256: str
    cut: bool

    def as_dict(self) -> dict[str, Any]:
        """Return the look as plain JSON."""
        return {**asdict(self), "box": self.box.as_list()}


@dataclass(frozen=True, slots=True)
class Report:
    """One reported box, or a declared distribution over boxes whose score is the expectation.

    Args:
        box: The reported box, level-0 pixels; of a distribution, its first draw of any weight.
        conclusion: The agent's own words.
        confidence: 0 to 1, or None where none was given or it was out of range.
        draws: float64, shape (n, 4), rows [x, y, w, h]; None for a single box.
        weights: float64, shape (n,), non-negative, sum 1; None for a single box.
    """

    box: Box
    conclusion: str = ""
    confidence: float | None = None
    draws: Floats | None = None
    weights: Floats | None = None


def checked_confidence(confidence: object) -> float | None:
    """Return a confidence in [0, 1], or None for anything else."""
    if isinstance(confidence, bool) or not isinstance(confidence, int | float):
        return None
    return float(confidence) if math.isfinite(confidence) and 0 <= confidence <= 1 else None


def checked_draws(draws: Floats, weights: Floats | None, region: Box) -> tuple[Floats, Floats]:
    """Return the draws and their normalised weights.

    Raises:
        RoiError: If a shape is wrong, a box is not finite, has no area or misses the search region, or weights do not
            make a distribution.
    """
    boxes = np.asarray(draws, dtype=np.float64)
    if boxes.ndim != 2 or boxes.shape[1] != 4 or not len(boxes):
        raise RoiError(f"draws must have the shape (n, 4) with n >= 1, got {boxes.shape}")
    shares = np.full(len(boxes), 1.0) if weights is None else np.asarray(weights, dtype=np.float64)
    if shares.shape != (len(boxes),) or not np.isfinite(shares).all() or (shares < 0).any() or shares.sum() <= 0:
        raise RoiError("weights must be one finite number >= 0 for each draw, with a sum above 0")
    x, y, width, height = boxes.T
    meets = (x < region.right) & (x + width > region.x) & (y < region.bottom) & (y + height > region.y)
    if not (np.isfinite(boxes).all() and (width > 0).all() and (height > 0).all() and meets.all()):
        raise RoiError(f"each draw must be a finite box with an area that meets the region {region.as_list()}")
    return boxes, shares / shares.sum()


def draws_fields(boxes: Floats, shares: Floats) -> dict[str, Any]:
    """Return what the record keeps of a declared distribution, as plain JSON."""
    digest = hashlib.sha256(boxes.tobytes() + shares.tobytes()).hexdigest()
    written = len(boxes) <= DRAWS_WRITTEN_OUT
    return {
        "draws": len(boxes),
        "draws_sha256": digest,
        "draw_boxes": boxes.tolist() if written else None,
        "draw_weights": shares.tolist() if written else None,
    }


def final_boxes(reported: Floats, query: Query, whole_slide: Box) -> Floats:
    """Return the boxes that are scored: of the target's size, centred where the reported ones are.

    A reported centre is clamped into the search region, the box is then shifted to lie inside the slide.

    Args:
        reported: float64, shape (n, 4), rows [x, y, w, h] in level-0 pixels.
        query: Gives the search region and the target's size.
        whole_slide: The scanned area.

    Returns: float64, shape (n, 4).
    """
    width, height = min(query.target_width, whole_slide.width), min(query.target_height, whole_slide.height)
    x, y, reported_width, reported_height = reported.T
    centre_x = np.clip(x + reported_width / 2, query.region.x, query.region.right)
    centre_y = np.clip(y + reported_height / 2, query.region.y, query.region.bottom)
    left = np.clip(centre_x - width / 2, whole_slide.x, whole_slide.right - width)
    top = np.clip(centre_y - height / 2, whole_slide.y, whole_slide.bottom - height)
    return np.stack([left, top, np.full_like(left, width), np.full_like(top, height)], axis=1)


def final_box(reported: Box, query: Query, whole_slide: Box) -> Box:
    """Return the one box that is scored for a reported box; see `final_boxes`."""
    rows = np.array([[reported.x, reported.y, reported.width, reported.height]], dtype=np.float64)
    return Box.from_list(final_boxes(rows, query, whole_slide)[0].tolist())
