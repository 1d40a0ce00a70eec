"""One exploration as it is read: what a scorer and a schedule kept of one slide, `pathnav-exploration-1`."""

from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from pathnav.cohort.protocol import MAGNIFICATIONS
from pathnav.report.record_parts import Record, SlideRecord, Tokens, is_pathnavs
from pathnav.run.key import hashed

SHIPPED_SCORERS = frozenset(("random", "tissue-density", "nuclear-density", "clip-retrieval", "oracle", "vlm"))

Count = Annotated[int, Field(ge=0)]


class AnnotationRecord(Record):
    """Which annotation the tiles were judged by."""

    path: str | None = None
    sha256: str | None = None
    classes: tuple[str, ...] = ()
    relative_to_bounds: bool = False
    area_px2: float | None = None
    """Area of the annotated tumour in level-0 pixels squared."""


class LevelRecord(Record):
    """Counts of one magnification; those that need an annotation are None without one."""

    magnification: float
    tiles: Count
    """Tiles of the grid, blank ones included."""
    scored: Count
    yes: Count
    unparsed: Count
    kept: Count
    filled: Count = 0
    candidates: Count
    tied: Count
    calls: Count
    positives: Count | None = None
    """Positive tiles, blank ones included."""
    reachable: Count | None = None
    """Positives among the children of the tiles kept one level up; at the first level all."""
    kept_positives: Count | None = None
    optimum_positives: Count | None = None
    """The most positives that any selection within the schedule could keep at this level."""


class ExplorationResult(Record):
    """One `result.json` of an exploration."""

    format: Literal["pathnav-exploration-1"]
    key: str
    slide: SlideRecord
    annotation: AnnotationRecord | None = None
    outcome: Literal["finished", "infra_error", "interrupted"]
    reason: str | None = None
    scorer: str
    version: str = "0"
    origin: str | None = None
    """Where the scorer's class came from: an installed package (`pathnav 0.1.0`), a module, or a file's path."""
    configuration: str | None = None
    """Hash of the scorer's code, options, model and decoding: the same for all slides."""
    settings: dict[str, Any] = Field(default_factory=dict)
    model: str | None = None
    decoding: dict[str, Any] | None = None
    schedule: tuple[int, ...] = Field(min_length=len(MAGNIFICATIONS), max_length=len(MAGNIFICATIONS))
    fill_to_k: bool = False
    tile_px: int
    min_tissue: float
    seed: int = 0
    calls: Count | None = None
    unparsed: Count | None = None
    levels: tuple[LevelRecord, ...] = ()
    """One a magnification, coarsest first; none unless the exploration is finished."""
    tokens: Tokens | None = None
    cost_usd: float | None = None
    images_sent: int | None = None
    bytes_sent: int | None = None
    seconds: float | None = None

    @model_validator(mode="after")
    def _is_whole(self) -> Self:
        """Refuse a finished exploration without all its levels, or whose truth is known in part."""
        if not self.is_finished:
            return self
        found = [level.magnification for level in self.levels]
        if found != list(MAGNIFICATIONS):
            raise ValueError(f"a finished exploration has levels at {list(MAGNIFICATIONS)}, got {found}")
        truth = [
            count is not None
            for level in self.levels
            for count in (level.positives, level.reachable, level.kept_positives, level.optimum_positives)
        ]
        if any(truth) != all(truth):
            raise ValueError("the counts of positives must be known at all levels or at none")
        return self

    @property
    def is_finished(self) -> bool:
        """Whether the slide was searched to its end."""
        return self.outcome == "finished"

    @property
    def is_interrupted(self) -> bool:
        """Whether the search was broken off, and goes on when it is run again."""
        return self.outcome == "interrupted"

    @property
    def has_truth(self) -> bool:
        """Whether an annotation says which tiles are positive."""
        return bool(self.levels) and self.levels[0].positives is not None

    @property
    def has_tumour(self) -> bool:
        """Whether a tile of any magnification is positive."""
        return any(level.positives for level in self.levels)

    @property
    def scored(self) -> int:
        """Tiles that the search needed scores of."""
        return sum(level.scored for level in self.levels)

    @property
    def is_shipped(self) -> bool:
        """Whether the scorer is one of pathnav's own, so that its name means what the protocol says."""
        return self.scorer in SHIPPED_SCORERS and is_pathnavs(self.origin)

    @property
    def variant(self) -> dict[str, Any]:
        """What was chosen for the scorer, each part under its own name, so that none hides another."""
        return {"version": self.version, "settings": self.settings, "decoding": self.decoding or {}}

    @property
    def experiment(self) -> str:
        """The hash of what scored: explorations that differ in it are never added up."""
        return self.configuration or hashed({"model": self.model, **self.variant})

    @property
    def denominators(self) -> tuple[int, tuple[tuple[int, int | None], ...]]:
        """What the rates of this slide are shares of: tile side, and tiles with positives of each level."""
        return self.tile_px, tuple((level.tiles, level.positives) for level in self.levels)


class PlannedSearch(Record):
    """A search as `run.json` lists it: one slide, one scorer, and all schedules."""

    slide: str
    """Path of the slide."""
    fingerprint: str
    schedules: tuple[tuple[int, ...], ...]
