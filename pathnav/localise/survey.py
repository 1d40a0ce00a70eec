"""Looking without a budget: for agents that declare `unbudgeted = True`, and marked in their rows."""

import numpy as np
from numpy.typing import NDArray

from pathnav.geometry import Box
from pathnav.slide import Slide, TissueMask
from pathnav.slide.tissue import find_tissue


class Survey:
    """The tissue mask of the search region and any window of it; `boxes` says what was read.

    Args:
        slide: The slide.
        region: The search region in level-0 pixels; nothing outside it is read.
        blank_images: A control: white instead of pixels.
    """

    def __init__(self, slide: Slide, region: Box, blank_images: bool) -> None:
        self._slide = slide
        self._blank = blank_images
        self.region = region
        self.boxes: list[Box] = []

    def tissue_mask(self, max_side_px: int = 1024) -> TissueMask:
        """Return the tissue mask of the search region, its long side at most `max_side_px` cells."""
        self.boxes.append(self.region)
        if self._blank:
            overview = self._slide.overview(self.region, max_side_px)
            return find_tissue(np.full_like(overview, 255), self.region)
        return self._slide.tissue_mask(self.region, max_side_px)

    def read(self, box: Box, magnification: float) -> NDArray[np.uint8]:
        """Return the pixels of a box at a magnification; white outside the search region.

        Returns: uint8 RGB, shape (height_px, width_px, 3).
        """
        self.boxes.append(box.intersection(self.region))
        rgb = self._slide.read(box, magnification=magnification)
        if self._blank:
            return np.full_like(rgb, 255)
        return _white_outside(rgb, box, self.region)


def _white_outside(rgb: NDArray[np.uint8], box: Box, region: Box) -> NDArray[np.uint8]:
    """Return the pixels of a box with everything beyond a region in white."""
    if region.holds(box):
        return rgb
    height_px, width_px = rgb.shape[:2]
    centre_x = box.x + (np.arange(width_px) + 0.5) * box.width / width_px
    centre_y = box.y + (np.arange(height_px) + 0.5) * box.height / height_px
    inside_x = (centre_x >= region.x) & (centre_x < region.right)
    inside_y = (centre_y >= region.y) & (centre_y < region.bottom)
    return np.where((inside_y[:, None] & inside_x[None, :])[..., None], rgb, np.uint8(255))
