"""Live searches: each tile is scored once, whatever asks for it, and never again once it is stored."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pathnav.cohort.protocol import SCHEDULES
from pathnav.errors import ModelError, PluginError, RecordError
from pathnav.explore import (
    Choice,
    Policy,
    Schedule,
    ScorerConfiguration,
    ScoreStore,
    Selection,
    Source,
    TileImage,
    TileScore,
    TileTree,
    TopK,
    Wanted,
    explore,
    replay,
)
from pathnav.explore.nesting import Numbers
from pathnav.explore.scores import Answer, ScoreTable
from support.tile_scorers import Noting, Streaming, answer

SWEEP = [TopK(Schedule(keep)) for keep in SCHEDULES]


@pytest.fixture
def store(tree: TileTree, tmp_path: Path) -> Iterator[ScoreStore]:
    named = ScorerConfiguration.of(Noting(), tree.tile_px)
    with ScoreStore(tmp_path / "scores.sqlite", named, tree.fingerprint) as opened:
        yield opened


def kept(selection: Selection) -> list[list[int]]:
    return [choice.kept.tolist() for choice in selection.levels]


def test_a_sweep_scores_the_union_of_its_tiles_once(tree: TileTree) -> None:
    sweep, apart = Noting(), set()
    found = explore(tree, sweep, SWEEP)
    for policy, selection in zip(SWEEP, found.selections, strict=True):
        alone = Noting()
        assert kept(explore(tree, alone, [policy]).selections[0]) == kept(selection)
        assert len(alone.asked) == sum(choice.scored.size for choice in selection.levels)
        apart |= set(alone.asked)
    assert len(sweep.asked) == len(set(sweep.asked))
    assert set(sweep.asked) == apart
    assert found.tiles_now == len(apart)


@pytest.mark.parametrize("make", [Noting, Streaming])
def test_a_second_run_asks_the_scorer_nothing(tree: TileTree, store: ScoreStore, make: Any) -> None:
    first = explore(tree, make(), SWEEP, store=store)
    again = make()
    second = explore(tree, again, SWEEP[1:3], store=store)
    assert again.asked == []
    assert (second.tiles_now, second.requests_now) == (0, 0)
    assert [kept(s) for s in second.selections] == [kept(s) for s in first.selections[1:3]]
    assert [s.requests for s in second.selections] == [s.requests for s in first.selections[1:3]], "they rest on them"


def test_stored_scores_replay_without_a_scorer(tree: TileTree, store: ScoreStore) -> None:
    live = explore(tree, Noting(), SWEEP, store=store, seed=3)
    again = replay(tree, SWEEP, store=store, seed=3)
    assert [kept(s) for s in again.selections] == [kept(s) for s in live.selections]


def test_a_replay_of_what_is_not_stored_is_refused(tree: TileTree, store: ScoreStore) -> None:
    with pytest.raises(RecordError, match=r"tiles at 2\.5x have no stored score"):
        replay(tree, SWEEP, store=store)


def test_requests_are_those_that_the_result_rests_on(tree: TileTree) -> None:
    found = explore(tree, Noting(), [TopK(Schedule((2, 2, 2)))])
    (selection,) = found.selections
    scores = [
        answer(image) for level, choice in enumerate(selection.levels) for image in tree.images(level, choice.scored)
    ]
    assert selection.requests == found.requests_now == sum(score.requests for score in scores)
    assert sum(c.unparsed for c in selection.levels) == sum(score.yes is None for score in scores) > 0


def test_a_batch_is_as_large_as_the_scorer_wants(tree: TileTree) -> None:
    scorer = Noting()
    explore(tree, scorer, SWEEP)
    assert max(scorer.batches) == 10
    whole = [size == 10 for size in scorer.batches]
    assert whole.count(False) <= 3, "only the last batch of each level is smaller"


def test_blank_tiles_are_not_shown_to_the_scorer(tree: TileTree) -> None:
    scorer = Noting()
    found = explore(tree, scorer, [TopK(Schedule((10**6,) * 3), fill_to_k=True)])
    for level, choice in enumerate(found.selections[0].levels):
        assert tree.eligible(level)[choice.scored].all()
    assert np.count_nonzero(~tree.eligible(2)) > 0


def test_a_lost_endpoint_loses_no_score_and_the_run_goes_on_from_there(tree: TileTree, store: ScoreStore) -> None:
    broken, mended = Streaming(lasts=37), Streaming()
    with pytest.raises(ModelError, match="gone"):
        explore(tree, broken, SWEEP, store=store)
    found = explore(tree, mended, SWEEP, store=store)
    assert len(broken.asked) == 37
    assert not set(broken.asked) & set(mended.asked)
    assert [kept(s) for s in found.selections] == [kept(s) for s in explore(tree, Noting(), SWEEP).selections]


class Scripted:
    """Returns what it is given."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    def score(self, tiles: Sequence[TileImage]) -> Any:
        return self.answer(tiles)


GOOD = TileScore(True, 0.5, Source.COMPUTED)


@pytest.mark.parametrize(
    ("said", "sentence"),
    [
        (lambda tiles: [], "gave 0 scores for"),
        (lambda tiles: [GOOD] * (len(tiles) - 1), "scores for"),
        (lambda tiles: [GOOD] * (len(tiles) + 1), "gave 13 scores for 12 tiles"),
        (lambda tiles: iter([GOOD] * (len(tiles) + 1)), "gave 13 scores for 12 tiles"),
        (lambda tiles: iter([GOOD] * (len(tiles) - 1)), "gave 11 scores for 12 tiles"),
        (lambda tiles: [0.5] * len(tiles), "must give a TileScore for each tile, got float"),
        (lambda tiles: iter([None]), "got None"),
    ],
)
def test_a_scorer_that_breaks_its_contract_is_named(tree: TileTree, said: Any, sentence: str) -> None:
    with pytest.raises(PluginError, match=f"scorer 'Scripted' .*{sentence}"):
        explore(tree, Scripted(said), SWEEP)


def test_a_list_of_the_wrong_length_is_not_stored_for_the_wrong_tiles(tree: TileTree, store: ScoreStore) -> None:
    short = Scripted(lambda tiles: [GOOD] * (len(tiles) - 1))
    with pytest.raises(PluginError, match="gave 11 scores for 12 tiles"):
        explore(tree, short, SWEEP, store=store)
    boxes = [tree.box(tree.tile(0, number)) for number in range(12)]
    assert store.find(2.5, boxes) == [None] * 12


class Greedy:
    """A policy that wants what it must not."""

    def __init__(self, tiles: Numbers) -> None:
        self.tiles = tiles

    def advance(self, table: ScoreTable) -> Wanted | Selection:
        nothing = np.empty(0, np.int64)
        return Wanted((nothing, nothing, self.tiles))


def test_a_policy_that_wants_known_or_blank_tiles_is_stopped(tree: TileTree) -> None:
    shown = np.flatnonzero(tree.eligible(2))
    blank = np.flatnonzero(~tree.eligible(2))
    for tiles in (shown[:1], blank[:1]):
        with pytest.raises(PluginError, match="only eligible tiles that have no score yet"):
            explore(tree, Noting(), [Greedy(tiles)])


def test_a_policy_that_wants_nothing_is_stopped(tree: TileTree) -> None:
    with pytest.raises(PluginError, match="must want a tile or return its selection"):
        explore(tree, Noting(), [Greedy(np.empty(0, np.int64))])


def test_progress_is_told_level_by_level(tree: TileTree) -> None:
    told: list[tuple[int, int, int, int]] = []
    found = explore(tree, Noting(), SWEEP[2:3], progress=lambda *step: told.append(step))
    for level, choice in enumerate(found.selections[0].levels):
        steps = [step for step in told if step[0] == level]
        assert steps[0][1:3] == (0, choice.scored.size)
        assert steps[-1][1:3] == (choice.scored.size, choice.scored.size)


class BestFirst:
    """A frontier over the whole tree: open the surest tile, wherever it lies, until so many tiles have been scored.

    It keeps, at each level, the surest Yes. A policy of another kind than top-K: it goes back to what it left.
    """

    def __init__(self, budget: int, keep: int) -> None:
        self.budget, self.keep = budget, keep

    def advance(self, table: ScoreTable) -> Wanted | Selection:
        asked = [np.flatnonzero(table.eligible[0])] + [np.empty(0, np.int64)] * 2
        opened: set[tuple[int, int]] = set()
        while True:
            missing = [table.unknown(level, tiles) for level, tiles in enumerate(asked)]
            if any(tiles.size for tiles in missing):
                return Wanted(tuple(missing))
            frontier = [
                (-float(table.confidences[level][tile]), level, tile)
                for level in (0, 1)
                for tile in asked[level].tolist()
                if (level, tile) not in opened and table.answers[level][tile] == Answer.YES
            ]
            if not frontier or sum(tiles.size for tiles in asked) >= self.budget:
                return Selection(tuple(self._choice(table, level, tiles) for level, tiles in enumerate(asked)))
            _, level, tile = min(frontier)
            opened.add((level, tile))
            below = table.eligible_of(level + 1, table.nesting.children(level, np.array([tile])))
            asked[level + 1] = np.concatenate([asked[level + 1], below])

    def _choice(self, table: ScoreTable, level: int, asked: Numbers) -> Choice:
        yes = asked[table.answers[level][asked] == Answer.YES]
        kept = yes[np.argsort(-table.confidences[level][yes], kind="stable")][: self.keep]
        requests = int(table.requests[level][asked].sum())
        return Choice(np.sort(asked), np.sort(kept), yes.size, 0, 0, yes.size, 0, requests)


def test_a_policy_of_another_kind_searches_is_stored_and_is_replayed(tree: TileTree, store: ScoreStore) -> None:
    scorer = Noting()
    policies: list[Policy] = [BestFirst(150, 5), TopK(Schedule((3, 3, 3)))]
    live = explore(tree, scorer, policies, store=store)
    frontier, top_k = live.selections
    assert 150 <= sum(choice.scored.size for choice in frontier.levels) < 150 + 16
    assert all(choice.kept.size for choice in frontier.levels)
    assert len(scorer.asked) == len(set(scorer.asked)), "tiles that both policies want are scored once"
    again = replay(tree, policies, store=store)
    assert [kept(s) for s in again.selections] == [kept(frontier), kept(top_k)]
