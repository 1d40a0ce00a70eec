"""The conformance check holds a scorer to what it promises with `score_as_ready`."""

from collections.abc import Iterator, Sequence

import pytest

from pathnav.explore import TileImage, TileScore
from pathnav.explore.conformance import ScorerRule
from pathnav.testing import ConformanceError, check_scorer
from support.bad_scorers import at_place


class Backwards:
    """Gives the last tile first, as a server may."""

    needs_pixels = False

    def score(self, tiles: Sequence[TileImage]) -> list[TileScore]:
        return [at_place(image) for image in tiles]

    def score_as_ready(self, tiles: Sequence[TileImage]) -> Iterator[tuple[int, TileScore]]:
        for place in reversed(range(len(tiles))):
            yield place, at_place(tiles[place])


class LeavesOneOut(Backwards):
    def score_as_ready(self, tiles: Sequence[TileImage]) -> Iterator[tuple[int, TileScore]]:
        yield from list(super().score_as_ready(tiles))[1:]


class GivesOneTwice(Backwards):
    def score_as_ready(self, tiles: Sequence[TileImage]) -> Iterator[tuple[int, TileScore]]:
        found = list(super().score_as_ready(tiles))
        yield from [*found[1:], found[-1]]


class CountsFromOne(Backwards):
    def score_as_ready(self, tiles: Sequence[TileImage]) -> Iterator[tuple[int, TileScore]]:
        return ((place + 1, score) for place, score in super().score_as_ready(tiles))


class ForgetsThePlaces(Backwards):
    def score_as_ready(self, tiles: Sequence[TileImage]) -> Iterator[tuple[int, TileScore]]:
        return iter(self.score(tiles))  # type: ignore[arg-type]


class MixesThemUp(Backwards):
    def score_as_ready(self, tiles: Sequence[TileImage]) -> Iterator[tuple[int, TileScore]]:
        for place, image in enumerate(tiles):
            yield len(tiles) - 1 - place, at_place(image)


def test_scores_in_any_order_keep_the_contract() -> None:
    assert check_scorer(Backwards) == tuple(ScorerRule)


@pytest.mark.parametrize(
    ("scorer", "rule", "says"),
    [
        (LeavesOneOut, ScorerRule.COUNT, "gave 12 scores for 13 tiles"),
        (GivesOneTwice, ScorerRule.COUNT, "gave place 0 of 13 tiles, twice"),
        (CountsFromOne, ScorerRule.COUNT, "gave place 13 of 13 tiles, that none has"),
        (ForgetsThePlaces, ScorerRule.COUNT, "must yield pairs of a tile's place and its TileScore, got TileScore"),
        (MixesThemUp, ScorerRule.REPEAT, "score_as_ready scored tiles differently from score"),
    ],
)
def test_a_scorer_that_breaks_the_contract_is_told_how(scorer: type, rule: ScorerRule, says: str) -> None:
    with pytest.raises(ConformanceError) as caught:
        check_scorer(scorer)
    assert caught.value.rule is rule
    assert says in str(caught.value)
