"""An image encoder without a network: what it embeds of an image can be said in a sentence, so tests know it."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray


class PlainEncoder:
    """Embeds an image as its pixels on a coarse raster, of unit length; counts what it was shown.

    Args:
        side_px: Side of the images.
        raster: Side of the raster; an embedding has `3 * raster ** 2` numbers.
        name: Tells it from others.
    """

    def __init__(self, side_px: int = 32, raster: int = 8, name: str = "plain") -> None:
        self.side_px, self._raster, self.batch, self.name = side_px, raster, 5, name
        self.shown = 0
        self.calls: list[int] = []

    @property
    def identity(self) -> Mapping[str, Any]:
        """Name and sizes."""
        return {"name": self.name, "side_px": self.side_px, "raster": self._raster}

    @property
    def dimensions(self) -> int:
        """Numbers of an embedding."""
        return 3 * self._raster**2

    def encode_images(self, images: NDArray[np.uint8]) -> NDArray[np.float32]:
        """Return the rasters."""
        self.shown += len(images)
        self.calls.append(len(images))
        cell = self.side_px // self._raster
        cells = images.reshape(len(images), self._raster, cell, self._raster, cell, 3).mean(axis=(2, 4))
        flat = cells.reshape(len(images), -1) + 1
        found: NDArray[np.float32] = (flat / np.linalg.norm(flat, axis=1, keepdims=True)).astype(np.float32)
        return found
