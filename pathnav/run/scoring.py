"""What one episode's answer is worth against its target (docs/protocol.md, section 2, Final box and Scores)."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pathnav.cohort.protocol import IOU_THRESHOLD
from pathnav.cohort.query import Query, Target
from pathnav.geometry import Box, Floats, ious
from pathnav.localise.outcome import Report, final_boxes


@dataclass(frozen=True, slots=True)
class Score:
    """The scores of one answer; all None where no target is known.

    Args:
        iou: IoU of the final box with the target, 0 without a valid box; the expectation for declared draws.
        hit_share: Expected share of boxes with IoU >= 0.3; None for a single box.
        iou_fallback: `iou`, with the search region's centre where no valid box was reported.
        iou_any: Best IoU over all nodes with the same finding text; the expectation for declared draws.
    """

    iou: float | None = None
    hit_share: float | None = None
    iou_fallback: float | None = None
    iou_any: float | None = None


def score(report: Report | None, query: Query, target: Target | None, whole_slide: Box) -> Score:
    """Return the scores of an answer.

    Args:
        report: The accepted report; None where the agent made none.
        query: What was asked.
        target: What is true; None where nobody knows.
        whole_slide: The scanned area.
    """
    if target is None:
        return Score()
    truth = target.box.shifted_into(whole_slide)
    same_text = [box.shifted_into(whole_slide) for box in target.equivalents] or [truth]
    if report is None:
        centre = final_boxes(_rows(Box.centred(query.region.centre, 1, 1)), query, whole_slide)
        return Score(iou=0.0, iou_fallback=float(ious(centre, truth)[0]), iou_any=0.0)
    boxes = final_boxes(_rows(report.box) if report.draws is None else report.draws, query, whole_slide)
    weights = np.ones(1) if report.weights is None else report.weights
    found = ious(boxes, truth)
    expected = float(weights @ found)
    return Score(
        iou=expected,
        hit_share=None if report.draws is None else float(weights @ (found >= IOU_THRESHOLD)),
        iou_fallback=expected,
        iou_any=float(weights @ _best(boxes, same_text)),
    )


def _rows(box: Box) -> Floats:
    """Return a box as float64, shape (1, 4)."""
    return np.array([[box.x, box.y, box.width, box.height]], dtype=np.float64)


def _best(boxes: Floats, targets: Sequence[Box]) -> Floats:
    """Return each box's best IoU over the targets: float64, shape (n,)."""
    best: Floats = np.max([ious(boxes, target) for target in targets], axis=0)
    return best
