"""What an agent hands in at the end."""

import hashlib
import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from pathnav.errors import RoiError
from pathnav.geometry import Box, Floats

# A declared distribution of up to so many boxes is written out in the record; a larger one leaves its hash.
DRAWS_WRITTEN_OUT = 1000


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
