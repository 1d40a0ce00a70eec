"""The most positive tiles that any selection within a schedule could keep, by dynamic programming over the tree.

Each level is taken on its own: for the optimum at 40x a selection may pass through 2.5x and 10x tiles that are not
positive. A tile's worth is then the sum of the worths of its K best children, since the choice among one parent's
children does not restrict the choice among another's; the slide's is the sum of its K best tiles.
"""

from collections.abc import Sequence

import numpy as np

from pathnav.explore.nesting import Nesting, Numbers
from pathnav.explore.schedule import Schedule
from pathnav.explore.scores import Flags


def optimum_counts(
    nesting: Nesting, schedule: Schedule, positives: Sequence[Flags], eligible: Sequence[Flags]
) -> tuple[int, ...]:
    """Return, per level, the most positives that a selection within the schedule keeps at that level.

    Args:
        nesting: The grids.
        schedule: K by level.
        positives: Per level bool, shape (count,): the positive tiles.
        eligible: Per level bool, shape (count,): the tiles that a search may keep or pass through; no search keeps a
            tile that is not shown to its scorer.
    """
    return tuple(_optimum(nesting, schedule, level, positives[level], eligible) for level in range(nesting.levels))


def _optimum(nesting: Nesting, schedule: Schedule, target: int, positives: Flags, eligible: Sequence[Flags]) -> int:
    worth = (positives & eligible[target]).astype(np.int64)
    for level in range(target, 0, -1):
        below = _sum_of_best(nesting.by_parent(level, worth), schedule.keep[level])
        worth = np.where(eligible[level - 1], below, 0)
    return int(_sum_of_best(worth[None, :], schedule.keep[0])[0])


def _sum_of_best(worths: Numbers, keep: int) -> Numbers:
    """Return the sum of the `keep` largest of each row: int64, shape (rows,)."""
    width = worths.shape[1]
    if keep < width:
        worths = np.partition(worths, width - keep, axis=1)[:, width - keep :]
    found: Numbers = worths.sum(axis=1)
    return found
