"""From a reported box to the box that is scored (docs/protocol.md, section 2, Final box)."""

import numpy as np

from pathnav.cohort.query import Query
from pathnav.geometry import Box, Floats


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
