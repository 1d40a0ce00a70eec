"""Run search policies over a slide: each tile that any of them needs is scored once, and what is stored is not scored.

A sweep over schedules is one call with several policies; a replay makes no call to a scorer.
"""

from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from dataclasses import dataclass

import numpy as np

from pathnav.errors import PluginError, RecordError
from pathnav.explore.answers import Placed, answers
from pathnav.explore.nesting import Numbers
from pathnav.explore.scorer import Scorer, TileImage, TileScore, batch_tiles
from pathnav.explore.scores import ScoreTable
from pathnav.explore.search import Policy, Selection, Wanted
from pathnav.explore.store import ScoreStore
from pathnav.explore.tiles import TileTree
from pathnav.geometry import Box

Progress = Callable[[int, int, int, int], None]
"""Called with the level, how many tiles of it that are asked for have scores, how many there are, requests so far."""


@dataclass(frozen=True, slots=True, eq=False)
class Exploration:
    """What policies found on one slide.

    Args:
        table: All scores that they rest on.
        selections: One per policy, in their order.
        tiles_now: Tiles that this call had scored; the others were stored.
        requests_now: Requests that these took.
    """

    table: ScoreTable
    selections: tuple[Selection, ...]
    tiles_now: int
    requests_now: int


def explore(
    tree: TileTree,
    scorer: Scorer,
    policies: Sequence[Policy],
    *,
    store: ScoreStore | None = None,
    seed: int = 0,
    progress: Progress | None = None,
) -> Exploration:
    """Return what policies select, having scored the union of the tiles that they need.

    Args:
        tree: The slide's tiles.
        scorer: Scores them; asked level by level, in batches, only for tiles that the store does not hold.
        policies: The searches; they share all scores.
        store: Where its scores of the slide are kept as they come; without it they end with the process.
        seed: Orders the equals.
        progress: Told how far the scoring is.

    Raises:
        PluginError: If the scorer or a policy breaks its contract, or the scorer raises an error of its own.
        ModelError: If a tile got no answer; the scores so far are kept, and the same call goes on from there.
        RecordError: If the store fails.
    """
    return _Run(tree, seed, store, scorer=scorer, progress=progress).to_the_end(policies)


def replay(tree: TileTree, policies: Sequence[Policy], *, store: ScoreStore, seed: int = 0) -> Exploration:
    """Return what policies select from stored scores alone.

    Args:
        tree: The slide's tiles.
        policies: The searches.
        store: The scores of a scorer on this slide.
        seed: Orders the equals.

    Raises:
        RecordError: If a tile that a policy needs has no stored score.
    """
    return _Run(tree, seed, store).to_the_end(policies)


def empty_table(tree: TileTree, seed: int = 0) -> ScoreTable:
    """Return a table without scores for a slide's tiles."""
    eligible = [tree.eligible(level) for level in range(tree.levels)]
    return ScoreTable(tree.nesting, eligible, seed, tree.fingerprint)


class _Run:
    """Gets scores into a table: from the store where it has them, else from the scorer."""

    def __init__(
        self,
        tree: TileTree,
        seed: int,
        store: ScoreStore | None,
        *,
        scorer: Scorer | None = None,
        progress: Progress | None = None,
    ) -> None:
        self.tree, self.store, self.scorer, self.progress = tree, store, scorer, progress
        self.table = empty_table(tree, seed)
        self.tiles_now = 0
        self.requests_now = 0

    def to_the_end(self, policies: Sequence[Policy]) -> Exploration:
        """Return the policies' selections."""
        steps = [policy.advance(self.table) for policy in policies]
        while any(isinstance(step, Wanted) for step in steps):
            wanted = [step for step in steps if isinstance(step, Wanted)]
            if any(sum(tiles.size for tiles in step.tiles) == 0 for step in wanted):
                raise PluginError("a search policy must want a tile or return its selection")
            for level in range(self.tree.levels):
                self._fill(level, np.unique(np.concatenate([step.tiles[level] for step in wanted])))
            steps = [
                policy.advance(self.table) if isinstance(step, Wanted) else step
                for policy, step in zip(policies, steps, strict=True)
            ]
        selections = tuple(step for step in steps if isinstance(step, Selection))
        return Exploration(self.table, selections, self.tiles_now, self.requests_now)

    def _fill(self, level: int, tiles: Numbers) -> None:
        """Get the scores of some tiles of a level."""
        if not tiles.size:
            return
        if self.table.unknown(level, tiles).size < tiles.size or not self.table.eligible[level][tiles].all():
            raise PluginError("a search policy must want only eligible tiles that have no score yet")
        left = self._unstored(level, tiles)
        known = tiles.size - left.size
        self._tell(level, known, tiles.size)
        if not left.size:
            return
        if self.scorer is None:
            raise RecordError(f"{left.size} tiles at {self.tree.magnification(level):g}x have no stored score")
        step = batch_tiles(self.scorer)
        for start in range(0, left.size, step):
            with closing(self._score(self.scorer, level, left[start : start + step])) as counts:
                for count in counts:
                    known += count
                    self._tell(level, known, tiles.size)

    def _boxes(self, level: int, tiles: Numbers) -> list[Box]:
        grid = self.tree.grid(level)
        return [grid.box(*divmod(number, grid.columns)) for number in tiles.tolist()]

    def _unstored(self, level: int, tiles: Numbers) -> Numbers:
        """Enter what the store holds of some tiles and return the rest."""
        if self.store is None or not tiles.size:
            return tiles
        found = self.store.find(self.tree.magnification(level), self._boxes(level, tiles))
        is_there = np.array([score is not None for score in found])
        self.table.set(level, tiles[is_there], [score for score in found if score is not None])
        rest: Numbers = tiles[~is_there]
        return rest

    def _score(self, scorer: Scorer, level: int, tiles: Numbers) -> Generator[int]:
        """Have tiles scored, keep the scores as they come, and yield how many came."""
        images = self.tree.images(level, tiles)
        with closing(answers(scorer, images)) as parts:
            for part in parts:
                self._take_down(level, tiles, images, part)
                yield len(part)

    def _take_down(self, level: int, due: Numbers, images: Sequence[TileImage], part: Sequence[Placed]) -> None:
        """Keep what came of some of the tiles that are due."""
        places, scores = [place for place, _ in part], [score for _, score in part]
        self.requests_now += sum(score.requests for score in scores)
        kept = self._kept(level, [images[place] for place in places], scores)
        self.table.set(level, due[places], kept)
        self.tiles_now += len(part)

    def _kept(self, level: int, images: Sequence[TileImage], scores: Sequence[TileScore]) -> Sequence[TileScore]:
        """Store scores and return those that stand."""
        if self.store is None:
            return scores
        scored = [(image.box, score) for image, score in zip(images, scores, strict=True)]
        return self.store.add(self.tree.magnification(level), scored)

    def _tell(self, level: int, done: int, total: int) -> None:
        if self.progress is not None:
            self.progress(level, done, total, self.requests_now)
