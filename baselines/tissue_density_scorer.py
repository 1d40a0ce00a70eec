"""`tissue-density`: yes to every tile; the more tissue it holds, the surer.

Many tiles inside tissue are full of it, and those are equals: the tie rate of this scorer says how far it is chance.
"""

from collections.abc import Iterable, Sequence

from pathnav.errors import SlideError
from pathnav.explore import Source, TileImage, TileScore


class TissueDensityScorer:
    """Order tiles by their tissue share."""

    name = "tissue-density"
    version = "1"
    needs_pixels = False

    def score(self, tiles: Sequence[TileImage]) -> Iterable[TileScore]:
        """Return the tissue share of each tile's box.

        Raises:
            SlideError: If no tissue mask can be made of the slide.
        """
        return [TileScore(True, _share(image), Source.COMPUTED) for image in tiles]


def _share(image: TileImage) -> float:
    if image.tissue_share is None:
        raise SlideError("tissue-density needs a brightfield slide; no tissue mask can be made of this one")
    return image.tissue_share
