"""The rules that a scorer promises to keep, and a check that names the first one broken.

Authors call `pathnav.testing.check_scorer`, which brings a slide.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pathnav.errors import PluginError
from pathnav.explore.answers import answers
from pathnav.explore.scorer import Scorer, ScorerConfiguration, TileImage, TileScore, batch_tiles, needs_pixels
from pathnav.explore.tiles import TileTree
from pathnav.slide import Slide

_TILES_PER_LEVEL = 6
_TILE_PX = 64


class ScorerRule(StrEnum):
    """What a scorer promises."""

    COUNT = "scores every tile, in order"
    SETTINGS = "declares its settings"
    PIXELS = "says whether it reads pixels"
    REPEAT = "scores a tile alike every time"
    BATCH = "scores a tile alike in any batch"
    TRUTH = "never sees the truth"


@dataclass(frozen=True, slots=True)
class Broken:
    """A rule that a scorer breaks, and how that shows."""

    rule: ScorerRule
    reason: str


class ScorerTrial:
    """Checks of one scorer on one slide, each with fresh instances.

    Args:
        make: Returns a new instance of the scorer.
        slide: A slide with a physical scale and some tissue.
    """

    def __init__(self, make: Callable[[], Scorer], slide: Slide) -> None:
        self._make = make
        self._tree = TileTree(slide, _TILE_PX, min_tissue=0)
        self._reads = 0
        self.images = [self._watched(image) for level in range(self._tree.levels) for image in self._some(level)]
        self._first: list[TileScore] = []

    def run(self) -> Broken | None:
        """Return the first broken rule, None where all are kept."""
        checks = (self._settings, self._count, self._pixels, self._repeat, self._batch, self._ready)
        return next((broken for broken in (check() for check in checks) if broken), None)

    def blind(self) -> Broken | None:
        """Return whether the scores change when the files that hold the truth no longer lie beside the slide."""
        try:
            if _answers(self._scores(self.images)) != _answers(self._first):
                return Broken(ScorerRule.TRUTH, "its scores changed when the truth no longer lay beside the slide")
        except OSError as error:
            return Broken(ScorerRule.TRUTH, f"it needs a file beside the slide: {error}")
        return None

    def _some(self, level: int) -> Sequence[TileImage]:
        """Return a few tiles of a level, the first and the last (cut at the edge) among them."""
        count = self._tree.count(level)
        numbers = np.unique(np.linspace(0, count - 1, _TILES_PER_LEVEL).round().astype(np.int64))
        return self._tree.images(level, numbers)

    def _watched(self, image: TileImage) -> TileImage:
        """Return the image with its reads counted."""

        def read() -> NDArray[np.uint8]:
            self._reads += 1
            return image.read()

        return replace(image, read=read)

    def _scores(self, images: Sequence[TileImage]) -> list[TileScore]:
        return list(self._make().score(images))

    def _settings(self) -> Broken | None:
        scorer = self._make()
        try:
            batch_tiles(scorer)
            first, second = (ScorerConfiguration.of(one, _TILE_PX).as_text() for one in (scorer, self._make()))
        except PluginError as error:
            return Broken(ScorerRule.SETTINGS, str(error))
        list(scorer.score(self.images[:1]))
        later = ScorerConfiguration.of(scorer, _TILE_PX).as_text()
        other = next((text for text in (second, later) if text != first), None)
        return Broken(ScorerRule.SETTINGS, f"they were {first} and then {other}") if other else None

    def _count(self) -> Broken | None:
        self._reads = 0
        self._first = self._scores(self.images)
        if len(self._first) != len(self.images):
            return Broken(ScorerRule.COUNT, f"it gave {len(self._first)} scores for {len(self.images)} tiles")
        for score in self._first:
            if not isinstance(score, TileScore):
                return Broken(ScorerRule.COUNT, f"it gave a {type(score).__name__}, expected a TileScore")
        if self._scores([]):
            return Broken(ScorerRule.COUNT, "it gave scores for no tiles")
        return _stored(self._first)

    def _pixels(self) -> Broken | None:
        declared = needs_pixels(self._make())
        if self._reads and not declared:
            return Broken(ScorerRule.PIXELS, "it read images but declares needs_pixels = False")
        if declared and not self._reads:
            return Broken(ScorerRule.PIXELS, "it read no image: declare needs_pixels = False")
        return None

    def _repeat(self) -> Broken | None:
        scorer = self._make()
        if any(_answers(scorer.score(self.images)) != _answers(self._first) for _ in range(2)):
            return Broken(ScorerRule.REPEAT, "it scored the same tiles differently: draw from the tile's name")
        return None

    def _batch(self) -> Broken | None:
        backwards = self._scores(self.images[::-1])[::-1]
        scorer = self._make()
        alone = [score for image in self.images for score in scorer.score([image])]
        if not _answers(backwards) == _answers(alone) == _answers(self._first):
            return Broken(ScorerRule.BATCH, "a tile's score depended on the other tiles or on their order")
        return None

    def _ready(self) -> Broken | None:
        """Return whether the scores that come as they are ready are those that come in order."""
        scorer = self._make()
        if getattr(scorer, "score_as_ready", None) is None:
            return None
        try:
            found = dict(pair for part in answers(scorer, self.images) for pair in part)
        except PluginError as error:
            return Broken(ScorerRule.COUNT, f"in score_as_ready, {error}")
        if _answers(found[place] for place in range(len(self.images))) != _answers(self._first):
            return Broken(ScorerRule.REPEAT, "score_as_ready scored tiles differently from score")
        return None


def _answers(scores: Any) -> list[tuple[bool | None, float | None]]:
    """Return what a search sees of some scores; requests and details may differ from time to time."""
    return [(score.yes, score.confidence) for score in scores]


def _stored(scores: Sequence[TileScore]) -> Broken | None:
    """Return whether a detail cannot be stored."""
    for score in scores:
        try:
            json.dumps(score.detail, allow_nan=False)
        except (TypeError, ValueError) as error:
            return Broken(ScorerRule.COUNT, f"the detail of a score has no JSON form: {error}")
    return None
