"""`random`: yes to every tile, with a confidence drawn from the seed and the tile's name.

The draw does not depend on what else is asked, nor in which order.
"""

import hashlib
from collections.abc import Iterable, Sequence

from pathnav.explore import Source, TileImage, TileScore

_BITS = 53  # of a float's mantissa: every draw is exact


class RandomScorer:
    """Order tiles by chance.

    Args:
        seed: Draws another order.
    """

    name = "random"
    version = "1"
    needs_pixels = False

    def __init__(self, seed: int = 0) -> None:
        self.settings = {"seed": seed}

    def score(self, tiles: Sequence[TileImage]) -> Iterable[TileScore]:
        """Return an independent uniform draw per tile."""
        return [TileScore(True, self._draw(image.name), Source.COMPUTED) for image in tiles]

    def _draw(self, name: str) -> float:
        digest = hashlib.sha256(f"{self.settings['seed']}\x1f{name}".encode()).digest()
        return float((int.from_bytes(digest[:8]) >> (64 - _BITS)) / 2**_BITS)
