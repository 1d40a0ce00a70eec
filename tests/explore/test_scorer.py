"""What a score may say, and what of a scorer makes its scores different ones."""

import math
from collections.abc import Sequence
from typing import Any

import pytest

from pathnav.errors import PluginError
from pathnav.explore import Scorer, ScorerConfiguration, Source, TileImage, TileScore
from pathnav.explore.scorer import batch_tiles, needs_pixels


class Plain:
    def score(self, tiles: Sequence[TileImage]) -> list[TileScore]:
        return [TileScore(True, 0.5, Source.COMPUTED) for _ in tiles]


def plain(**attributes: Any) -> Scorer:
    """Return a scorer with some attributes."""
    scorer = Plain()
    for name, value in attributes.items():
        setattr(scorer, name, value)
    return scorer


@pytest.mark.parametrize(
    ("yes", "confidence", "source"),
    [
        (None, 0.5, Source.STATED),
        (None, None, Source.WORD),
        (False, None, Source.UNPARSED),
        (False, 0.0, Source.UNPARSED),
        (True, None, Source.LOGPROBS),
    ],
)
def test_an_unparsed_answer_is_neither_a_no_nor_has_it_a_confidence(
    yes: bool | None, confidence: float | None, source: Source
) -> None:
    with pytest.raises(ValueError, match="an unparsed answer has neither"):
        TileScore(yes, confidence, source)


@pytest.mark.parametrize("confidence", [-0.01, 1.01, math.nan, math.inf])
def test_a_confidence_lies_between_0_and_1(confidence: float) -> None:
    with pytest.raises(ValueError, match=r"must be in \[0, 1\]"):
        TileScore(True, confidence, Source.STATED)


def test_requests_are_not_negative() -> None:
    with pytest.raises(ValueError, match="requests"):
        TileScore(True, 0.5, Source.STATED, requests=-1)


def test_a_scorer_needs_nothing_but_score() -> None:
    assert isinstance(Plain(), Scorer)
    found = ScorerConfiguration.of(Plain(), 1024)
    assert (found.name, found.version, found.settings) == ("Plain", "0", {})
    assert batch_tiles(Plain()) == 64
    assert needs_pixels(Plain())


def test_whole_floats_and_the_order_of_settings_do_not_make_another_configuration() -> None:
    one = ScorerConfiguration.of(plain(settings={"a": 1, "b": [2.0, 0.5]}), 256)
    other = ScorerConfiguration.of(plain(settings={"b": (2, 0.5), "a": 1.0}), 256)
    assert one.key == other.key


@pytest.mark.parametrize(
    ("attributes", "tile_px", "code"),
    [
        ({"name": "other"}, 256, None),
        ({"version": "2"}, 256, None),
        ({"settings": {"a": 2}}, 256, None),
        ({}, 512, None),
        ({}, 256, "abc"),
    ],
)
def test_all_that_can_change_a_score_makes_another_configuration(
    attributes: dict[str, Any], tile_px: int, code: str | None
) -> None:
    base = {"name": "plain", "version": "1", "settings": {"a": 1}}
    usual = ScorerConfiguration.of(plain(**base), 256)
    assert ScorerConfiguration.of(plain(**(base | attributes)), tile_px, code).key != usual.key


@pytest.mark.parametrize("settings", [{"a": object()}, {"a": math.nan}, 5])
def test_settings_that_are_no_json_are_refused(settings: object) -> None:
    with pytest.raises(PluginError, match="scorer 'Plain'"):
        ScorerConfiguration.of(plain(settings=settings), 256)


@pytest.mark.parametrize("count", [0, -1, 1.5, "many"])
def test_a_batch_holds_at_least_one_tile(count: object) -> None:
    with pytest.raises(PluginError, match="batch_tiles"):
        batch_tiles(plain(batch_tiles=count))
