"""Grids that nest: every tile is cut into the same number of tiles of the next grid. Arithmetic on tile numbers.

*Level* counts from the coarsest grid, 0. A tile's *number* is its place in its own grid, in reading order. Nothing here
knows of slides or pixels, so that searches and optima are functions of numbers and can be tested on small trees.
"""

from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from pathnav.cohort.protocol import MAGNIFICATIONS, TILE_FACTOR
from pathnav.geometry import Box, Grid

Numbers = NDArray[np.int64]
Scalar = TypeVar("Scalar", bound=np.generic)


@dataclass(frozen=True, slots=True)
class Nesting:
    """Nested grids over one area.

    Args:
        grids: Coarsest first; all over the same area, each tile `factor` times as wide and as high as the next grid's.
        factor: Children along a tile's side.
    """

    grids: tuple[Grid, ...]
    factor: int

    @classmethod
    def over(
        cls,
        area: Box,
        finest_side: tuple[float, float],
        levels: int = len(MAGNIFICATIONS),
        factor: int = TILE_FACTOR,
    ) -> "Nesting":
        """Return the grids over an area.

        Args:
            area: In level-0 pixels; all grids start at its corner.
            finest_side: Width and height of a tile of the finest grid, in level-0 pixels.
            levels: How many grids.
            factor: Children along a tile's side.
        """
        steps = [factor**power for power in reversed(range(levels))]
        return cls(tuple(Grid(area, finest_side[0] * step, finest_side[1] * step) for step in steps), factor)

    @property
    def levels(self) -> int:
        """How many grids there are."""
        return len(self.grids)

    def count(self, level: int) -> int:
        """Return how many tiles a level has."""
        return self.grids[level].count

    def children(self, level: int, tiles: Numbers) -> Numbers:
        """Return the children of some tiles of a level, one parent after the other, each in reading order.

        Args:
            level: The parents' level.
            tiles: int64, shape (n,): the parents' numbers.

        Returns: int64, shape (m,): numbers at the next level; at the area's edge a parent has fewer.
        """
        below = self.grids[level + 1]
        row, column = np.divmod(tiles, self.grids[level].columns)
        steps = np.arange(self.factor)
        rows = (row * self.factor)[:, None, None] + steps[:, None]
        columns = (column * self.factor)[:, None, None] + steps[None, :]
        exists = (rows < below.rows) & (columns < below.columns)
        found: Numbers = (rows * below.columns + columns)[exists]
        return found

    def parents(self, level: int, tiles: Numbers) -> Numbers:
        """Return the parents of some tiles of a level: int64, shape (n,), numbers at the level above."""
        row, column = np.divmod(tiles, self.grids[level].columns)
        found: Numbers = row // self.factor * self.grids[level - 1].columns + column // self.factor
        return found

    def by_parent(self, level: int, values: NDArray[Scalar]) -> NDArray[Scalar]:
        """Return a level's values laid out by parent; zero where a parent at the edge has no child.

        Args:
            level: The children's level.
            values: Shape (count(level),).

        Returns: Shape (count(level - 1), factor * factor).
        """
        grid, above = self.grids[level], self.grids[level - 1]
        whole = np.zeros((above.rows * self.factor, above.columns * self.factor), dtype=values.dtype)
        whole[: grid.rows, : grid.columns] = values.reshape(grid.rows, grid.columns)
        blocks = whole.reshape(above.rows, self.factor, above.columns, self.factor)
        return blocks.swapaxes(1, 2).reshape(above.count, self.factor**2)
