"""`grid-centroid`: of a grid of cells of the target's size, the one nearest to the middle of the tissue.

The grid starts at the search region's top-left corner and holds the cells whose centres lie in the region; along a
side shorter than half a cell there is one, in the middle. The middle of the tissue is the mean of the mask's tissue
cells. Without tissue the answer is the centre of the search region.
"""

import math

import numpy as np

from pathnav.geometry import Box
from pathnav.localise import Environment
from pathnav.slide import TissueMask


class GridCentroid:
    """Report the grid cell at the tissue's centroid."""

    name = "grid-centroid"
    version = "1"
    unbudgeted = True

    def run(self, environment: Environment) -> None:
        """Survey the tissue mask and report the cell."""
        query = environment.query
        middle = tissue_centroid(environment.survey.tissue_mask())
        if middle is None:
            box = Box.centred(query.region.centre, query.target_width, query.target_height)
            environment.report(box, conclusion="No tissue was found; the centre of the search region.")
            return
        box = nearest_cell(query.region, query.target_width, query.target_height, middle)
        environment.report(box, conclusion="The grid cell nearest to the centroid of the tissue.")


def tissue_centroid(mask: TissueMask) -> tuple[float, float] | None:
    """Return the mean position (x, y) of the tissue in level-0 px, None where there is none."""
    rows, columns = np.nonzero(mask.array)
    if rows.size == 0:
        return None
    x = mask.region.x + (float(columns.mean()) + 0.5) * mask.cell_px[0]
    y = mask.region.y + (float(rows.mean()) + 0.5) * mask.cell_px[1]
    return x, y


def nearest_cell(region: Box, width: float, height: float, point: tuple[float, float]) -> Box:
    """Return the grid cell whose centre is nearest to a point; the left and upper one of two at equal distance."""
    x = _nearest_centre(region.x, region.width, width, point[0])
    y = _nearest_centre(region.y, region.height, height, point[1])
    return Box.centred((x, y), width, height)


def _nearest_centre(start: float, length: float, cell: float, position: float) -> float:
    """Return, along one axis, the cell centre nearest to a position; the first of two at equal distance."""
    count = math.floor(length / cell + 0.5)
    if count == 0:
        return start + length / 2
    index = min(max(math.ceil((position - start) / cell - 1), 0), count - 1)
    return start + (index + 0.5) * cell
