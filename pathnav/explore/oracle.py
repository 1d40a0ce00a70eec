"""The control that is told the truth: what a perfect scorer would keep within a schedule."""

import hashlib
from collections.abc import Iterable, Sequence

import numpy as np

from pathnav.cohort.protocol import POSITIVE_SHARE
from pathnav.errors import PluginError
from pathnav.explore.scorer import Source, TileImage, TileScore
from pathnav.geometry import Floats


class OracleScorer:
    """Score a tile by its overlap with the tumour. Only the runner hands that over, and only to this very class."""

    name = "oracle"
    version = "1"
    needs_pixels = False

    def __init__(self) -> None:
        self._overlaps: tuple[Floats, ...] | None = None

    def accept_truth(self, overlaps: Sequence[Floats]) -> None:
        """Take the truth of the next slide.

        Args:
            overlaps: Per level float64, shape (count,): overlap with the tumour as a share of each tile's area.
        """
        self._overlaps = tuple(np.asarray(level, dtype=np.float64) for level in overlaps)

    @property
    def settings(self) -> dict[str, str | None]:
        """The truth's SHA-256, so that a corrected annotation is not answered from old scores; None without it."""
        if self._overlaps is None:
            return {"truth": None}
        digest = hashlib.sha256()
        for level in self._overlaps:
            digest.update(level.astype("<f8").tobytes())
        return {"truth": digest.hexdigest()}

    def score(self, tiles: Sequence[TileImage]) -> Iterable[TileScore]:
        """Return the overlap as the confidence, and yes where it is more than 5 %.

        Raises:
            PluginError: If no truth was handed over.
        """
        if self._overlaps is None:
            raise PluginError("scorer 'oracle' needs a slide with a tumour annotation", remedy="give --annotation")
        shares = [float(np.clip(self._overlaps[image.tile.level][image.number], 0, 1)) for image in tiles]
        return [TileScore(share > POSITIVE_SHARE, share, Source.COMPUTED) for share in shares]
