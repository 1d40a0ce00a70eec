"""Scorers that each break one rule of the contract, and one that keeps them all."""

import json
from collections.abc import Iterator, Sequence
from itertools import count
from pathlib import Path
from typing import Any, ClassVar

from pathnav.explore import Source, TileImage, TileScore
from pathnav.explore.conformance import ScorerRule


def brightness(image: TileImage) -> TileScore:
    """Return how dark a tile is."""
    return TileScore(True, 1 - float(image.read().mean()) / 255, Source.COMPUTED)


def at_place(image: TileImage, shift: float = 0.0) -> TileScore:
    """Return a score made of the tile's place alone."""
    return TileScore(True, (image.number % 7 + shift) / 10, Source.COMPUTED)


class Sound:
    """Scores by brightness, one tile after the other."""

    def score(self, tiles: Sequence[TileImage]) -> Iterator[TileScore]:
        return (brightness(image) for image in tiles)


class LeavesOneOut:
    broken = ScorerRule.COUNT

    def score(self, tiles: Sequence[TileImage]) -> list[TileScore]:
        return [brightness(image) for image in tiles[1:]]


class GivesNumbers:
    broken = ScorerRule.COUNT

    def score(self, tiles: Sequence[TileImage]) -> list[float]:
        return [0.5 for _ in tiles]


class ScoresNothingToo:
    broken = ScorerRule.COUNT

    def score(self, tiles: Sequence[TileImage]) -> list[TileScore]:
        return [brightness(image) for image in tiles] or [TileScore.unparsed()]


class KeepsAnObject:
    broken = ScorerRule.COUNT

    def score(self, tiles: Sequence[TileImage]) -> list[TileScore]:
        return [TileScore(True, 0.5, Source.COMPUTED, detail={"image": image.box}) for image in tiles]


class ChangesItsSettings:
    broken = ScorerRule.SETTINGS

    def __init__(self) -> None:
        self.settings = {"calls": 0}

    def score(self, tiles: Sequence[TileImage]) -> list[TileScore]:
        self.settings["calls"] += 1
        return [brightness(image) for image in tiles]


class HasSettingsByChance:
    broken = ScorerRule.SETTINGS
    made: ClassVar[Iterator[int]] = count()

    def __init__(self) -> None:
        self.settings = {"instance": next(self.made)}

    def score(self, tiles: Sequence[TileImage]) -> list[TileScore]:
        return [brightness(image) for image in tiles]


class HasSettingsThatAreNoJson:
    broken = ScorerRule.SETTINGS
    settings: ClassVar[dict[str, Any]] = {"model": object()}

    def score(self, tiles: Sequence[TileImage]) -> list[TileScore]:
        return [brightness(image) for image in tiles]


class WantsNoTiles:
    broken = ScorerRule.SETTINGS
    batch_tiles = 0

    def score(self, tiles: Sequence[TileImage]) -> list[TileScore]:
        return [brightness(image) for image in tiles]


class ReadsUndeclared:
    broken = ScorerRule.PIXELS
    needs_pixels = False

    def score(self, tiles: Sequence[TileImage]) -> list[TileScore]:
        return [brightness(image) for image in tiles]


class ReadsNothing:
    broken = ScorerRule.PIXELS

    def score(self, tiles: Sequence[TileImage]) -> list[TileScore]:
        return [at_place(image) for image in tiles]


class ChangesItsMind:
    broken = ScorerRule.REPEAT
    needs_pixels = False

    def __init__(self) -> None:
        self.calls = 0

    def score(self, tiles: Sequence[TileImage]) -> list[TileScore]:
        self.calls += 1
        return [at_place(image, shift=self.calls) for image in tiles]


class RanksTheBatch:
    broken = ScorerRule.BATCH
    needs_pixels = False

    def score(self, tiles: Sequence[TileImage]) -> list[TileScore]:
        return [TileScore(True, place / len(tiles), Source.COMPUTED) for place, _ in enumerate(tiles)]


class ReadsTheTruth:
    broken = ScorerRule.TRUTH
    needs_pixels = False

    def score(self, tiles: Sequence[TileImage]) -> list[TileScore]:
        for image in tiles:
            json.loads(truth_beside(image).read_text())
        return [at_place(image) for image in tiles]


class ReadsTheTruthIfItIsThere:
    broken = ScorerRule.TRUTH
    needs_pixels = False

    def score(self, tiles: Sequence[TileImage]) -> list[TileScore]:
        return [at_place(image, shift=float(truth_beside(image).exists())) for image in tiles]


def truth_beside(image: TileImage) -> Path:
    """Return a file beside the slide, reached through a function's closure."""
    inner: Any = image.read
    while "image" in inner.__code__.co_freevars:
        cells = dict(zip(inner.__code__.co_freevars, inner.__closure__, strict=True))
        inner = cells["image"].cell_contents.read
    tree = dict(zip(inner.__code__.co_freevars, inner.__closure__, strict=True))["self"].cell_contents
    return Path(tree._slide.path).with_suffix(".tree.json")


BAD_SCORERS = (
    LeavesOneOut,
    GivesNumbers,
    ScoresNothingToo,
    KeepsAnObject,
    ChangesItsSettings,
    HasSettingsByChance,
    HasSettingsThatAreNoJson,
    WantsNoTiles,
    ReadsUndeclared,
    ReadsNothing,
    ChangesItsMind,
    RanksTheBatch,
    ReadsTheTruth,
    ReadsTheTruthIfItIsThere,
)
