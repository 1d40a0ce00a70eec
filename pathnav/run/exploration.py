"""One search of one slide: which scorer, over which tiles, with which schedules; each schedule has a key of its own."""

import functools
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pathnav.cohort.protocol import MAX_TILE_PX, MIN_TISSUE, TILE_PX
from pathnav.errors import ConfigError
from pathnav.explore.schedule import Schedule
from pathnav.model.prices import Prices, shipped_prices
from pathnav.run.case import SlideFacts, SlideSource
from pathnav.run.key import hashed
from pathnav.run.scorer_choice import ScorerChoice
from pathnav.run.truth import Truth

if TYPE_CHECKING:
    from pathnav.slide import Slide


@dataclass(frozen=True, slots=True)
class TileSettings:
    """Which tiles there are, and which are shown.

    Args:
        tile_px: Side of a tile's image in pixels at its magnification.
        min_tissue: Least share of tissue of a tile that is shown to a scorer; 0 shows all.
        fill_to_k: Where fewer than K say Yes, fill with the best No.

    Raises:
        ConfigError: If a value is out of range.
    """

    tile_px: int = TILE_PX
    min_tissue: float = MIN_TISSUE
    fill_to_k: bool = False

    def __post_init__(self) -> None:
        if not 1 <= self.tile_px <= MAX_TILE_PX:
            raise ConfigError(f"tile_px must be a whole number from 1 to {MAX_TILE_PX:,}, got {self.tile_px}")
        if not 0 <= self.min_tissue <= 1:
            raise ConfigError(f"min_tissue must be in [0, 1], got {self.min_tissue}")

    def check(self, slide: "Slide") -> None:
        """Refuse tiles that an open slide cannot be cut into; no pixel is read.

        Raises:
            ConfigError: If they would be too many, or less than a pixel.
        """
        from pathnav.explore.tiles import TileTree

        TileTree(slide, self.tile_px, self.min_tissue)


@dataclass(frozen=True)
class Search:
    """One scorer on one slide; the schedules share its scores.

    Args:
        source: How to open the slide.
        slide: What is known about it.
        truth: Where its tumour is; None where nobody knows.
        scorer: Who scores.
        schedules: K by level, one or more.
        tiles: Which tiles.
        seed: Orders the equals.
        is_alone: Whether it is all that was asked for: a scorer that breaks its contract at once is then an error.
        prices: What tokens cost; changes no score, so it is not in the key.

    Raises:
        ConfigError: If the seed is negative, or the oracle is asked what nobody knows.
    """

    source: SlideSource
    slide: SlideFacts
    truth: Truth | None
    scorer: ScorerChoice
    schedules: tuple[Schedule, ...]
    tiles: TileSettings = TileSettings()
    seed: int = 0
    is_alone: bool = False
    prices: Prices = field(default_factory=shipped_prices, compare=False, repr=False)

    def __post_init__(self) -> None:
        if self.seed < 0:
            raise ConfigError(f"the seed must be a whole number of 0 or more, got {self.seed}")
        if self.scorer.is_oracle and self.truth is None:
            raise ConfigError(
                "the oracle needs a slide with a tumour annotation", remedy="give --annotation and --tumour-class"
            )

    @functools.cached_property
    def _shared_key(self) -> dict[str, Any]:
        slide = self.slide
        return {
            "slide": slide.fingerprint,
            "mpp_um": slide.mpp_um,
            "reader": slide.reader,
            "truth": self.truth.key_fields() if self.truth else None,
            **self.scorer.key_fields,
            "tile_px": self.tiles.tile_px,
            "min_tissue": self.tiles.min_tissue,
            "fill_to_k": self.tiles.fill_to_k,
            "seed": self.seed,
        }

    def key(self, schedule: Schedule) -> str:
        """Return the name of one schedule's result in a run folder: a hash of all that can change it."""
        return hashed({**self._shared_key, "schedule": list(schedule.keep)})

    @property
    def keys(self) -> list[str]:
        """The keys of all schedules."""
        return [self.key(schedule) for schedule in self.schedules]

    @functools.cached_property
    def scores_name(self) -> str:
        """The name of its file of scores: of the scorer and of all that can change a score of a tile."""
        shared = {name: self._shared_key[name] for name in ("slide", "mpp_um", "reader", "tile_px")}
        told = self._shared_key["truth"] if self.scorer.is_oracle else None
        name = re.sub(r"[^A-Za-z0-9-]+", "-", self.scorer.name)[:40]
        return f"{name}-{hashed({**shared, **self.scorer.key_fields, 'truth': told})}"

    def as_json(self) -> dict[str, Any]:
        """Return what `run.json` keeps about it; it holds where the truth lies, so no scorer may see it."""
        return {
            "slide": self.source.place,
            "fingerprint": self.slide.fingerprint,
            "annotation": self.truth.as_json() if self.truth else None,
            "scorer": self.scorer.name,
            "schedules": [list(schedule.keep) for schedule in self.schedules],
        }


def in_order(searches: Iterable[Search]) -> list[Search]:
    """Return searches in the order in which they run: those that ask a model first, then as given."""
    return sorted(searches, key=lambda search: search.scorer.model is None)
