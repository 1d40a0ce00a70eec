"""Run search policies over a slide: each tile that any of them needs is scored once, and what is stored is not scored.

A sweep over schedules is one call with several policies; a replay makes no call to a scorer.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from pathnav.errors import PluginError, RecordError
from pathnav.explore.nesting import Numbers
from pathnav.explore.scorer import Scorer, ScorerConfiguration, TileImage, TileScore, batch_tiles
from pathnav.explore.scores import ScoreTable
from pathnav.explore.search import Policy, Selection, Wanted
from pathnav.explore.store import ScoreStore
from pathnav.explore.tiles import TileTree

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
    configuration: ScorerConfiguration | None = None,
    seed: int = 0,
    progress: Progress | None = None,
) -> Exploration:
    """Return what policies select, having scored the union of the tiles that they need.

    Args:
        tree: The slide's tiles.
        scorer: Scores them; asked level by level, in batches, only for tiles that the store does not hold.
        policies: The searches; they share all scores.
        store: Where scores are kept as they come; without it they end with the process.
        configuration: What names its scores in the store; default: what the scorer declares of itself.
        seed: Orders the equals.
        progress: Told how far the scoring is.

    Raises:
        PluginError: If the scorer or a policy breaks its contract.
        ModelError: If a tile got no answer; the scores so far are kept, and the same call goes on from there.
        RecordError: If the store fails.
    """
    named = configuration or ScorerConfiguration.of(scorer, tree.tile_px)
    desk = _Desk(tree, named, seed, store, scorer=scorer, progress=progress)
    return desk.run(policies)


def replay(
    tree: TileTree, configuration: ScorerConfiguration, policies: Sequence[Policy], *, store: ScoreStore, seed: int = 0
) -> Exploration:
    """Return what policies select from stored scores alone.

    Args:
        tree: The slide's tiles.
        configuration: Of the scorer whose scores are taken.
        policies: The searches.
        store: The scores.
        seed: Orders the equals.

    Raises:
        RecordError: If a tile that a policy needs has no stored score.
    """
    return _Desk(tree, configuration, seed, store).run(policies)


def empty_table(tree: TileTree, seed: int = 0) -> ScoreTable:
    """Return a table without scores for a slide's tiles."""
    eligible = [tree.eligible(level) for level in range(tree.levels)]
    return ScoreTable(tree.nesting, eligible, seed, tree.fingerprint)


class _Desk:
    """Gets scores into a table: from the store where it has them, else from the scorer."""

    def __init__(
        self,
        tree: TileTree,
        configuration: ScorerConfiguration,
        seed: int,
        store: ScoreStore | None,
        *,
        scorer: Scorer | None = None,
        progress: Progress | None = None,
    ) -> None:
        self.tree, self.configuration, self.store = tree, configuration, store
        self.scorer, self.progress = scorer, progress
        self.table = empty_table(tree, seed)
        self.tiles_now = 0
        self.requests_now = 0

    def run(self, policies: Sequence[Policy]) -> Exploration:
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
        if left.size and self.scorer is None:
            magnification, name = self.tree.magnification(level), self.configuration.name
            raise RecordError(f"{left.size} tiles at {magnification:g}x have no stored score of scorer {name!r}")
        total, known = tiles.size, tiles.size - left.size
        self._tell(level, known, total)
        step = batch_tiles(self.scorer) if self.scorer is not None else 1
        for start in range(0, left.size, step):
            batch = left[start : start + step]
            unstored = self._unstored(level, batch)  # once more: another process may have scored some since
            known += batch.size - unstored.size
            for scored in self._score(level, unstored):
                known += scored
                self._tell(level, known, total)

    def _unstored(self, level: int, tiles: Numbers) -> Numbers:
        """Enter what the store holds of some tiles and return the rest."""
        if self.store is None:
            return tiles
        grid = self.tree.grid(level)
        boxes = [grid.box(*divmod(number, grid.columns)) for number in tiles.tolist()]
        magnification = self.tree.magnification(level)
        found = self.store.find(self.configuration, self.tree.fingerprint, magnification, boxes)
        is_there = np.array([score is not None for score in found])
        self.table.set(level, tiles[is_there], [score for score in found if score is not None])
        rest: Numbers = tiles[~is_there]
        return rest

    def _score(self, level: int, tiles: Numbers) -> Iterator[int]:
        """Have some tiles scored, keep the scores as they come, and yield how many came."""
        if self.scorer is None or not tiles.size:
            return
        images = self.tree.images(level, tiles)
        answer = self.scorer.score(images)
        done = 0
        for part in _parts(answer):
            self._check(part, done + len(part), len(images), is_list=part is answer)
            batch = images[done : done + len(part)]
            self.table.set(level, tiles[done : done + len(part)], self._kept(level, batch, part))
            done += len(part)
            self.tiles_now += len(part)
            self.requests_now += sum(score.requests for score in part)
            yield len(part)
        if done < len(images):
            raise PluginError(f"scorer {self.configuration.name!r} gave {done} scores for {len(images)} tiles")

    def _check(self, part: Sequence[TileScore], count: int, expected: int, is_list: bool) -> None:
        """Refuse what is no score, and a list of another length before any of it is stored for the wrong tile."""
        name = self.configuration.name
        for score in part:
            if not isinstance(score, TileScore):
                raise PluginError(f"scorer {name!r} must give a TileScore for each tile, got {type(score).__name__}")
        if count > expected or (is_list and count < expected):
            raise PluginError(f"scorer {name!r} gave {count} scores for {expected} tiles")

    def _kept(self, level: int, images: Sequence[TileImage], scores: Sequence[TileScore]) -> Sequence[TileScore]:
        """Store scores and return those that stand."""
        if self.store is None:
            return scores
        scored = [(image.box, score) for image, score in zip(images, scores, strict=True)]
        magnification = self.tree.magnification(level)
        return self.store.add(self.configuration, self.tree.fingerprint, magnification, scored)

    def _tell(self, level: int, done: int, total: int) -> None:
        if self.progress is not None:
            self.progress(level, done, total, self.requests_now)


def _parts(answer: Iterable[TileScore]) -> Iterator[Sequence[TileScore]]:
    """Yield a list as it is, and an iterator's scores one by one."""
    if isinstance(answer, Sequence):
        if answer:
            yield answer
        return
    for score in answer:
        yield [score]
