"""`random`: a window anywhere in the search region.

The value reported is the mean over 1,000 seeded draws, so that the row is a figure and not a throw of the dice.
"""

import numpy as np
from numpy.typing import NDArray

from pathnav.cohort.protocol import RANDOM_DRAWS
from pathnav.geometry import Box
from pathnav.localise import Environment


class RandomWindow:
    """Declare windows whose centres are uniform in the search region."""

    name = "random"
    version = "1"

    def run(self, environment: Environment) -> None:
        """Report the draws; looks at nothing."""
        query = environment.query
        boxes = draw_windows(query.region, query.target_width, query.target_height, RANDOM_DRAWS, environment.rng)
        environment.report_draws(boxes, conclusion=f"{RANDOM_DRAWS} windows drawn uniformly in the search region.")


def draw_windows(region: Box, width: float, height: float, count: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Return windows whose centres are uniform in a region.

    Returns: float64, shape (count, 4), rows [x, y, w, h] in level-0 px.
    """
    x = rng.uniform(region.x, region.right, count) - width / 2
    y = rng.uniform(region.y, region.bottom, count) - height / 2
    return np.column_stack([x, y, np.full(count, width), np.full(count, height)])
