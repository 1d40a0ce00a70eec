"""Looking without a budget: for agents that declare `unbudgeted = True`, and marked in their rows."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from pathnav.geometry import Box
from pathnav.retrieval.embeddings import EmbeddingStore, window_images
from pathnav.retrieval.model import ImageTextModel, Vectors
from pathnav.retrieval.windows import Numbers, WindowGrid
from pathnav.slide import Reading, Slide, TissueMask
from pathnav.slide.scale import UM_AT_1X
from pathnav.slide.tissue import find_tissue


class Survey:
    """The tissue mask of the search region and any window of it; `boxes` says what was read.

    Args:
        slide: The slide.
        region: The search region in level-0 pixels; nothing outside it is read.
        blank_images: A control: white instead of pixels.
        embeddings: Where embeddings of windows are kept; default: they go with the survey.
    """

    def __init__(self, slide: Slide, region: Box, blank_images: bool, embeddings: EmbeddingStore | None = None) -> None:
        self._slide = slide
        self._blank = blank_images
        self._embeddings = embeddings
        self.region = region
        self.boxes: list[Box] = []

    @property
    def embedding_costs(self) -> dict[str, int] | None:
        """What embeddings of windows have cost; None where none were asked for."""
        return self._embeddings.costs if self._embeddings is not None else None

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

    def embed(self, grid: WindowGrid, numbers: Numbers, model: ImageTextModel) -> Vectors:
        """Return a model's embeddings of windows, which is shown only those that are not kept from before.

        A window's image is square, as large as the model takes it; the window's long side fills it, and what its short
        side leaves is white.

        Args:
            grid: Windows over the search region.
            numbers: Those that are wanted, int64, shape (n,).
            model: Encodes them.

        Returns:
            float32, shape (n, dimensions), rows of unit length.
        """
        self.boxes.extend(grid.covered(numbers))
        if self._embeddings is None:
            self._embeddings = EmbeddingStore()
        mpp = self._slide.mpp_um
        magnification = UM_AT_1X * model.side_px / max(grid.width * mpp[0], grid.height * mpp[1])
        shown = {"side_px": model.side_px, "mpp_um": list(mpp), "blank": self._blank}

        def read(box: Box) -> Reading:
            found = self._slide.reading(box, magnification=magnification)
            return replace(found, rgb=np.full_like(found.rgb, 255)) if self._blank else found

        images = window_images(grid, numbers, read, model.side_px)
        return self._embeddings.embedded(
            numbers,
            grid.boxes(numbers),
            images,
            model=model,
            slide=self._slide.fingerprint,
            grid={**grid.settings, **shown},
        )


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
