"""Search policies: from the scores known so far, which tiles to score next, or which tiles are kept.

A policy is a function of the table of scores and of nothing else. So the same policy drives a live search, continues a
broken one and is replayed from stored scores, and a sweep of policies shares one table.
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from pathnav.explore.nesting import Numbers
from pathnav.explore.schedule import Schedule
from pathnav.explore.scores import Answer, ScoreTable


@dataclass(frozen=True, slots=True, eq=False)
class Wanted:
    """Tiles whose scores a policy needs before it can go on.

    Args:
        tiles: Per level int64, shape (n,): tile numbers that have no score yet; eligible ones, at least one in all.
    """

    tiles: tuple[Numbers, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Choice:
    """What a search asked for and kept at one level.

    Args:
        scored: int64: the tiles that it asked scores of, in reading order.
        kept: int64: the tiles that it kept, in reading order.
        yes: How many of `scored` are Yes.
        unparsed: How many of `scored` got no answer that could be understood.
        filled: How many of `kept` are No.
        candidates: How many tiles were up for choice.
        tied: How many of them have the confidence, to 4 decimals, of another one in the same choice.
        requests: Requests that the scores took.
    """

    scored: Numbers
    kept: Numbers
    yes: int
    unparsed: int
    filled: int
    candidates: int
    tied: int
    requests: int


@dataclass(frozen=True, slots=True, eq=False)
class Selection:
    """The outcome of a search: one choice per level, coarsest first."""

    levels: tuple[Choice, ...]

    @property
    def requests(self) -> int:
        """Requests that the selection rests on."""
        return sum(choice.requests for choice in self.levels)


class Policy(Protocol):
    """A way to search: best-first frontiers and the like are further classes with this method."""

    def advance(self, table: ScoreTable) -> Wanted | Selection:
        """Return what to score next, or the selection once the table holds all that it takes.

        Called again with the same table after the wanted scores were entered, until it returns a selection. It must
        not change the table, and must want only eligible tiles without a score.
        """


@dataclass(frozen=True, slots=True)
class TopK:
    """Hierarchical top-K: the K best Yes of the slide at 2.5x, then the K best Yes among the children of each.

    Args:
        schedule: K by level.
        fill_to_k: Where fewer than K say Yes, fill with the best No.
    """

    schedule: Schedule
    fill_to_k: bool = False

    def advance(self, table: ScoreTable) -> Wanted | Selection:
        """Return the tiles to score at the first level that lacks scores, else the kept tiles."""
        nesting = table.nesting
        choices: list[Choice] = []
        asked = np.flatnonzero(table.eligible[0])
        for level, keep in enumerate(self.schedule.keep):
            if level > 0:
                asked = table.eligible_of(level, nesting.children(level - 1, choices[-1].kept))
            missing = table.unknown(level, asked)
            if missing.size:
                nothing = np.empty(0, np.int64)
                return Wanted(tuple(missing if at == level else nothing for at in range(nesting.levels)))
            choices.append(self._choose(table, level, asked, keep))
        return Selection(tuple(choices))

    def _choose(self, table: ScoreTable, level: int, asked: Numbers, keep: int) -> Choice:
        """Return the choice among scored tiles: `keep` of all at the first level, of each parent's below."""
        answers = table.answers[level][asked]
        is_candidate = (answers == Answer.YES) | ((answers == Answer.NO) & self.fill_to_k)
        tiles, is_no = asked[is_candidate], answers[is_candidate] == Answer.NO
        group = table.nesting.parents(level, tiles) if level else np.zeros_like(tiles)
        confidence = table.rounded(level, tiles)
        # last key first: per group the Yes before the No, the surer first, equals by the seeded hash
        order = np.lexsort((table.tie_order(level, tiles), -confidence, is_no, group))
        kept = order[_places(group[order]) < keep]
        return Choice(
            scored=np.sort(asked),
            kept=np.sort(tiles[kept]),
            yes=int(np.count_nonzero(answers == Answer.YES)),
            unparsed=int(np.count_nonzero(answers == Answer.UNPARSED)),
            filled=int(np.count_nonzero(is_no[kept])),
            candidates=tiles.size,
            tied=_tied(group[order], is_no[order], confidence[order]),
            requests=int(table.requests[level][asked].sum()),
        )


def _places(groups: Numbers) -> Numbers:
    """Return each element's place in its group, from 0: int64, shape (n,), for groups that lie together."""
    starts = np.flatnonzero(np.diff(groups, prepend=groups[:1] - 1)) if groups.size else groups
    lengths = np.diff(starts, append=groups.size)
    places: Numbers = np.arange(groups.size) - np.repeat(starts, lengths)
    return places


def _tied(*sorted_keys: np.ndarray[tuple[int, ...], np.dtype[np.generic]]) -> int:
    """Return how many elements have a neighbour with the same keys."""
    same = np.logical_and.reduce([keys[1:] == keys[:-1] for keys in sorted_keys])
    before, after = np.append(same, False), np.insert(same, 0, False)
    return int(np.count_nonzero(before | after))
