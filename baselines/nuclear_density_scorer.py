"""`nuclear-density`: yes to every tile; the more haematoxylin it holds, the surer.

Haematoxylin is unmixed by colour deconvolution (Ruifrok and Johnston 2001) with their stain vectors: optical densities
of the three channels times the inverse of the stain matrix. A tile's density is the mean over the part of its image
that shows the slide, each pixel's amount held to [0, 1]; nuclei have 0.4 to 1 of it, glass none.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray

from pathnav.explore import Source, TileImage, TileScore

STAINS = ((0.65, 0.70, 0.29), (0.07, 0.99, 0.11), (0.27, 0.57, 0.78))
"""Optical densities of red, green and blue of haematoxylin, eosin and DAB (Ruifrok and Johnston 2001, table 1)."""


class NuclearDensityScorer:
    """Order tiles by their haematoxylin."""

    name = "nuclear-density"
    version = "1"

    def score(self, tiles: Sequence[TileImage]) -> Iterable[TileScore]:
        """Return the mean haematoxylin of each tile, one after the other as the images are read."""
        return self._scores(tiles)

    def _scores(self, tiles: Sequence[TileImage]) -> Iterator[TileScore]:
        for image in tiles:
            shown = image.read()[: image.height_px, : image.width_px]
            yield TileScore(True, float(np.clip(haematoxylin(shown), 0, 1).mean()), Source.COMPUTED)


def haematoxylin(rgb: NDArray[np.uint8]) -> NDArray[np.float32]:
    """Return the amount of haematoxylin in each pixel: float32, shape (rows, columns), in units of optical density.

    Args:
        rgb: uint8, shape (rows, columns, 3); white is 255 in each channel. Negative where other stains prevail.
    """
    red, green, blue = (weight[rgb[..., channel]] for channel, weight in enumerate(_weights()))
    found: NDArray[np.float32] = red + green + blue
    return found


@cache
def _weights() -> NDArray[np.float32]:
    """Return what each value of each channel adds: float32, shape (3, 256); a look-up is 10 times a logarithm."""
    vectors = np.array(STAINS)
    unmixing = np.linalg.inv(vectors / np.linalg.norm(vectors, axis=1, keepdims=True))
    density = -np.log10(np.maximum(np.arange(256), 1) / 255)
    return np.outer(unmixing[:, 0], density).astype(np.float32)
