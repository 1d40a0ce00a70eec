"""The tiles of a slide at 2.5x, 10x and 40x: three nested grids, and the pixels of a tile as a scorer sees them.

*Level* is the place of a magnification in (2.5, 10, 40): 0 is 2.5x. Boxes are level-0 pixels of the slide's plane.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from pathnav.cohort.protocol import MAGNIFICATIONS, MIN_TISSUE, TILE_PX
from pathnav.errors import ConfigError
from pathnav.explore.coverage import tissue_areas
from pathnav.explore.nesting import Nesting, Numbers
from pathnav.explore.scorer import Tile, TileImage
from pathnav.geometry import Box, Floats, Grid
from pathnav.slide import Reading, Slide, TissueMask, TissueStatus
from pathnav.slide.scale import UM_AT_1X

MAX_TILES = 20_000_000
"""More tiles at 40x are refused: their numbers alone would fill gigabytes, and no scorer would live to see them."""

_WHITE = 255
_NAME_DIGITS = 16  # of the fingerprint in a tile's name; 64 bits tell the slides of any cohort apart


@dataclass(frozen=True, slots=True, eq=False)
class _Tissue:
    """What a tissue mask says of the tiles.

    Args:
        status: What was found.
        shares: Per level float64, shape (count,): the share of each tile's area.
    """

    status: TissueStatus
    shares: tuple[Floats, ...]


class TileTree:
    """The tiles of a slide: arithmetic on numbers, no list of objects.

    At 40x a whole tile is `round(tile_px * 0.25 / mpp)` level-0 pixels wide (per axis), at 10x 4 times and at 2.5x 16
    times as wide. The grids start at the corner of the scanned area; a tile at its right or lower edge is cut to it,
    and so are its box and its area.

    Args:
        slide: An open slide with a physical scale.
        tile_px: Side of a tile's image, in pixels at the tile's magnification.
        min_tissue: Least share of tissue of a tile that is shown to a scorer; 0 shows all tiles and needs no mask.
        mask: Tissue of the scanned area; found on the slide's overview where it is needed and not given.

    Raises:
        ConfigError: If a setting is out of range.
        SlideError: If the slide's scale is not known.
    """

    def __init__(
        self,
        slide: Slide,
        tile_px: int = TILE_PX,
        min_tissue: float = MIN_TISSUE,
        mask: TissueMask | None = None,
    ) -> None:
        if tile_px < 1:
            raise ConfigError(f"tile_px must be a whole number of at least 1, got {tile_px}")
        if not 0 <= min_tissue <= 1:
            raise ConfigError(f"min_tissue must be in [0, 1], got {min_tissue}")
        self._slide, self._mask = slide, mask
        self.tile_px, self.min_tissue = tile_px, min_tissue
        self.nesting = Nesting.over(slide.bounds, _finest_side(slide, tile_px))
        if self.count(self.levels - 1) > MAX_TILES:
            found = f"{self.count(self.levels - 1):,} tiles at 40x"
            raise ConfigError(
                f"tile_px {tile_px} makes {found} of {slide.path}, more than {MAX_TILES:,}; take a larger"
            )

    @property
    def levels(self) -> int:
        """How many magnifications there are: 3."""
        return self.nesting.levels

    @property
    def fingerprint(self) -> str:
        """The name of the slide's content."""
        return self._slide.fingerprint

    def magnification(self, level: int) -> float:
        """Return a level's magnification."""
        return MAGNIFICATIONS[level]

    def grid(self, level: int) -> Grid:
        """Return a level's grid."""
        return self.nesting.grids[level]

    def count(self, level: int) -> int:
        """Return how many tiles a level has, blank ones included."""
        return self.nesting.count(level)

    def areas(self, level: int) -> Floats:
        """Return the tiles' areas in square level-0 pixels: float64, shape (count,)."""
        return self.grid(level).areas()

    def tile(self, level: int, number: int) -> Tile:
        """Return the tile of a number.

        Raises:
            IndexError: If the level has no such tile.
        """
        grid = self.grid(level)
        if not 0 <= number < grid.count:
            raise IndexError(f"a tile number at {MAGNIFICATIONS[level]}x must be in [0, {grid.count}), got {number}")
        return Tile(level, *divmod(int(number), grid.columns))

    def number(self, tile: Tile) -> int:
        """Return a tile's place in its level's grid, in reading order."""
        return tile.row * self.grid(tile.level).columns + tile.column

    def box(self, tile: Tile) -> Box:
        """Return a tile's part of the scanned area, in level-0 pixels."""
        return self.grid(tile.level).box(tile.row, tile.column)

    def children(self, tile: Tile) -> list[Tile]:
        """Return a tile's children in reading order: up to 16, none at 40x."""
        if tile.level == self.levels - 1:
            return []
        below = self.nesting.children(tile.level, np.array([self.number(tile)]))
        return [self.tile(tile.level + 1, number) for number in below.tolist()]

    def parent(self, tile: Tile) -> Tile | None:
        """Return the tile one level up that holds a tile; None at 2.5x."""
        if tile.level == 0:
            return None
        return Tile(tile.level - 1, tile.row // self.nesting.factor, tile.column // self.nesting.factor)

    @property
    def tissue_status(self) -> TissueStatus:
        """What the tissue mask found; on a slide that is not brightfield every tile counts as tissue."""
        return self._tissue.status

    def tissue(self, level: int) -> Floats:
        """Return the tiles' tissue as a share of their area: float64, shape (count,)."""
        return self._tissue.shares[level]

    def eligible(self, level: int) -> NDArray[np.bool_]:
        """Return which tiles are shown to a scorer: bool, shape (count,).

        All are with `min_tissue` 0, and on a slide of which no brightfield mask can be made.
        """
        if self.min_tissue == 0 or self.tissue_status is TissueStatus.NOT_BRIGHTFIELD:
            return np.ones(self.count(level), dtype=np.bool_)
        return self.tissue(level) >= self.min_tissue

    def read_tile(self, tile: Tile) -> NDArray[np.uint8]:
        """Return a tile's image: uint8 RGB, shape (tile_px, tile_px, 3); white beyond the scanned area."""
        return self.reading(tile).rgb

    def reading(self, tile: Tile) -> Reading:
        """Return a tile's image with the record of how it came about; the box is the tile's, without the padding."""
        found = self._slide.reading(self.box(tile), magnification=self._shown_at(tile.level))
        return replace(found, rgb=_padded(found.rgb, self.tile_px))

    def shown_px(self, tile: Tile) -> tuple[int, int]:
        """Return the width and height of the part of a tile's image that shows the slide, in image pixels."""
        step, box = self._slide.downsample(self._shown_at(tile.level)), self.box(tile)
        width_px, height_px = max(1, round(box.width / step[0])), max(1, round(box.height / step[1]))
        return min(width_px, self.tile_px), min(height_px, self.tile_px)

    def image(self, tile: Tile) -> TileImage:
        """Return a tile as a scorer gets it; its pixels are read when it asks for them."""
        box, magnification = self.box(tile), MAGNIFICATIONS[tile.level]
        known = self.tissue_status is not TissueStatus.NOT_BRIGHTFIELD
        width_px, height_px = self.shown_px(tile)
        return TileImage(
            name=f"{self.fingerprint[:_NAME_DIGITS]}/{magnification:g}x/{','.join(map(str, box.as_list()))}",
            tile=tile,
            number=self.number(tile),
            box=box,
            magnification=magnification,
            tissue_share=float(self.tissue(tile.level)[self.number(tile)]) if known else None,
            width_px=width_px,
            height_px=height_px,
            tile_px=self.tile_px,
            read=lambda: self.read_tile(tile),
        )

    def images(self, level: int, numbers: Numbers) -> Sequence[TileImage]:
        """Return some tiles of a level as a scorer gets them."""
        return [self.image(self.tile(level, number)) for number in numbers.tolist()]

    def _shown_at(self, level: int) -> float:
        """Return the magnification at which a whole tile has exactly `tile_px` pixels.

        It is the level's own but for the rounding of a tile's side to whole level-0 pixels, 0.1 % at 20x: without it
        every other 20x scan would give images of 1,025 or 1,023 px.
        """
        grid, mpp = self.grid(level), self._slide.mpp_um
        steps = grid.tile_width * mpp[0] * grid.tile_height * mpp[1] / self.tile_px**2
        return UM_AT_1X / math.sqrt(steps)

    @cached_property
    def _tissue(self) -> _Tissue:
        mask = self._slide.tissue_mask() if self._mask is None else self._mask
        areas = [tissue_areas(mask, self.grid(self.levels - 1))]
        for level in range(self.levels - 1, 0, -1):
            areas.insert(0, self.nesting.by_parent(level, areas[0]).sum(axis=1))
        shares = (np.clip(found / self.areas(level), 0.0, 1.0) for level, found in enumerate(areas))
        return _Tissue(mask.status, tuple(shares))


def _finest_side(slide: Slide, tile_px: int) -> tuple[int, int]:
    """Return the width and height of a tile at 40x, in level-0 pixels."""
    step = slide.downsample(MAGNIFICATIONS[-1])
    width, height = round(tile_px * step[0]), round(tile_px * step[1])
    if min(width, height) < 1:
        raise ConfigError(
            f"tile_px {tile_px} is less than one level-0 pixel of {slide.path} at 40x; it must be at least "
            f"{math.ceil(1 / min(step))}"
        )
    return width, height


def _padded(rgb: NDArray[np.uint8], side_px: int) -> NDArray[np.uint8]:
    """Return an image on a white square, at its upper left; what is more (1 px where axes differ in scale) is cut."""
    height_px, width_px = min(rgb.shape[0], side_px), min(rgb.shape[1], side_px)
    if rgb.shape[:2] == (side_px, side_px):
        return rgb
    canvas = np.full((side_px, side_px, 3), _WHITE, np.uint8)
    canvas[:height_px, :width_px] = rgb[:height_px, :width_px]
    return canvas
