"""Scenarios: what to run, as a value (`docs/scenario-format.md`).

`load_scenario` in `scenario_file.py` reads one from a file and fills its slots; `cases` in `case.py` turns it into the
questions to ask (jitter, swapped findings, sample and budgets applied). The runner crosses these with the scenario's
`localise.agents` and `localise.repeats`, and applies `localise.blank_images`, `localise.views`, `model`, `decoding`,
`seed` and `out`.
"""

import os
import re
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self
from urllib.parse import urlsplit

from pydantic import BeforeValidator, Field, PlainSerializer, field_validator, model_validator

from pathnav.cohort import protocol
from pathnav.cohort.node import Frozen, Magnification, Text
from pathnav.cohort.phantom import LARGEST_SIDE_PX, LEAST_SIDE_PX
from pathnav.cohort.scenario_values import (
    Agent,
    Budget,
    Keep,
    agents_from,
    agents_to_json,
    budgets_from,
    budgets_to_json,
    schedules_from,
    schedules_to_json,
    scorers_from,
)
from pathnav.errors import ConfigError

if TYPE_CHECKING:
    from pathnav.slide import Slide

SCENARIO_FORMAT = "pathnav-scenario-1"


class SlideSpec(Frozen):
    """One slide of a cohort."""

    path: Text
    """File, folder of a DICOM series, or URL; absolute once loaded."""
    mpp: Annotated[float, Field(ge=0.05, le=20)] | None = None
    """Micrometres per level-0 pixel, where the file does not say or is wrong."""
    objective_power: Annotated[float, Field(gt=0)] | None = None
    reader: Literal["openslide", "tiffslide"] | None = None
    organ: str | None = None
    """Stratum of a sample; without it, the tree's."""
    tree: Text | None = None
    """File of diagnostic trees: without one the slide has no queries."""
    annotation: Text | None = None
    """File of tumour polygons."""
    tumour_classes: Annotated[tuple[str, ...], Field(strict=False)] = ()
    """Classes of the annotation that count as tumour."""
    relative_to_bounds: bool = False
    """Whether the annotation's coordinates count from the corner of the scanned area."""
    tumour_free: bool = False
    """The slide is known to have no tumour, so that there is no annotation."""

    @model_validator(mode="after")
    def _one_truth(self) -> Self:
        if self.tumour_free and self.annotation is not None:
            raise ValueError("tumour_free must not stand beside an annotation")
        return self

    def open(self) -> "Slide":
        """Return the open slide.

        Raises:
            SlideError: If it cannot be opened.
        """
        from pathnav.slide import open_slide

        return open_slide(self.path, mpp=self.mpp, objective_power=self.objective_power, reader=self.reader)


class PhantomsSpec(Frozen):
    """Phantom slides, made on first use and kept in the user's cache folder."""

    count: Annotated[int, Field(ge=1)] = 3
    side: Annotated[int, Field(ge=LEAST_SIDE_PX, le=LARGEST_SIDE_PX)] = 8192
    """Width and height in level-0 pixels of 0.25 um."""
    seed: Annotated[int, Field(ge=0)] = 1
    """Of the first phantom; the next ones count up."""


class SampleSpec(Frozen):
    """A seeded sample of a cohort, see `sample.py`."""

    slides: Annotated[int, Field(ge=1)] | None = None
    """None takes all."""
    stratify: Literal["organ"] | None = None
    queries_per_magnification: Annotated[int, Field(ge=1)] | None = None
    """Per slide; None takes all."""
    seed: int = 0


class CohortSpec(Frozen):
    """The slides of a scenario: named, or phantoms."""

    slides: Annotated[tuple[SlideSpec, ...], Field(strict=False)] | None = None
    phantoms: PhantomsSpec | None = None
    sample: SampleSpec | None = None

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if (self.slides is None) == (self.phantoms is None):
            raise ValueError("needs either slides, or phantoms, or a file (--cohort FILE on the command line)")
        if self.slides is not None and not self.slides:
            raise ValueError("slides must name at least one slide")
        paths = [slide.path for slide in self.slides or ()]
        double = sorted({path for path in paths if paths.count(path) > 1})
        if double:
            raise ValueError(f"slides must not be named twice: {', '.join(double)}")
        return self


class ModelSpec(Frozen):
    """A chat endpoint. None of it but the name can change an answer, so only the name enters an episode's key."""

    name: Text
    base_url: Text | None = None
    api_key_env: Text | None = None
    """Name of the environment variable that holds the key; the key itself never stands in a scenario."""
    timeout_s: Annotated[float, Field(gt=0)] = 120.0
    concurrency: Annotated[int, Field(ge=1)] = 8
    """Requests of a scorer that may be in flight."""

    @field_validator("base_url")
    @classmethod
    def _no_password(cls, url: str | None) -> str | None:
        parts = urlsplit(url or "http://none")
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"must be an http(s) address such as http://127.0.0.1:8000/v1, got {url!r}")
        if parts.username or parts.password:
            raise ValueError("must not hold a user name or password; name an environment variable in api_key_env")
        return url

    def api_key(self) -> str | None:
        """Return the key that the environment holds, None where the scenario names no variable.

        Raises:
            ConfigError: If the variable is not set.
        """
        if self.api_key_env is None:
            return None
        key = os.environ.get(self.api_key_env)
        if not key:
            raise ConfigError(f"model.api_key_env: the environment variable {self.api_key_env} is not set")
        return key


class DecodingSpec(Frozen):
    """How a model's answers are decoded."""

    temperature: Annotated[float, Field(ge=0, le=2)] = protocol.TEMPERATURE
    top_p: Annotated[float, Field(gt=0, le=1)] = protocol.TOP_P
    max_tokens: Annotated[int, Field(ge=1)] = protocol.MAX_TOKENS
    seed: int | None = None
    """None sends the seed of the case, so that repeats differ where the server heeds it."""
    image_detail: Literal["low", "high", "auto"] = "high"


class ViewSpec(Frozen):
    """How images are shown to a model: the options of the `vlm` agent, where it does not give its own."""

    guides: bool = True
    view_px: Annotated[int, Field(ge=protocol.MIN_IMAGE_SIDE_PX)] = protocol.VIEW_LIMIT_PX
    """Limit of the long side."""
    jpeg_quality: Annotated[int, Field(ge=1, le=95)] = protocol.JPEG_QUALITY
    placement: Literal["user_after_tools", "bridge", "tool"] = "user_after_tools"
    """Which message carries the images of a tool call."""


class LocaliseSpec(Frozen):
    """Mode A: who is asked, with which budgets, under which controls."""

    agents: Annotated[tuple[Agent, ...], BeforeValidator(agents_from), PlainSerializer(agents_to_json)]
    budget: Annotated[tuple[Budget, ...], BeforeValidator(budgets_from), PlainSerializer(budgets_to_json)] = (
        Budget.named("base"),
    )
    """One or more; every case is asked with each."""
    magnifications: Annotated[tuple[Magnification, ...], Field(min_length=1, strict=False)] = protocol.MAGNIFICATIONS
    repeats: Annotated[int, Field(ge=1)] = 1
    jitter: Annotated[float, Field(ge=0, le=0.5)] = 0.0
    """Control: largest shift of a search region as a share of its side."""
    swapped_findings: bool = False
    """Control: every query gets the finding of another."""
    blank_images: bool = False
    """Control: white instead of pixels."""
    views: ViewSpec = ViewSpec()

    @field_validator("magnifications")
    @classmethod
    def _in_order(cls, magnifications: tuple[float, ...]) -> tuple[float, ...]:
        return tuple(sorted(set(magnifications)))


class ExploreSpec(Frozen):
    """Mode B: who scores tiles, with which schedules, over which tiles."""

    scorers: Annotated[tuple[Agent, ...], BeforeValidator(scorers_from), PlainSerializer(agents_to_json)]
    schedule: Annotated[tuple[Keep, ...], BeforeValidator(schedules_from), PlainSerializer(schedules_to_json)] = (
        protocol.SCHEDULE,
    )
    """K at 2.5x, 10x and 40x; one or more, which share all scores."""
    tile_px: Annotated[int, Field(ge=1, le=protocol.MAX_TILE_PX)] = protocol.TILE_PX
    """Side of a tile's image at its magnification."""
    min_tissue: Annotated[float, Field(ge=0, le=1)] = protocol.MIN_TISSUE
    fill_to_k: bool = False
    """Where fewer than K say Yes, fill with the best No."""


class Scenario(Frozen):
    """All that a run is made of. Read one with `load_scenario`."""

    format: Literal["pathnav-scenario-1"]
    name: str
    """Names the run's folder; the file's stem where it is not given."""
    cohort: CohortSpec
    model: ModelSpec | None = None
    """None: agents that need a model get the offline stub."""
    decoding: DecodingSpec = DecodingSpec()
    localise: LocaliseSpec = LocaliseSpec.model_construct(agents=())
    """Without one, no agent is asked."""
    explore: ExploreSpec | None = None
    seed: int = 0
    out: Text | None = None
    """Output folder; None leaves it to the command."""

    @model_validator(mode="after")
    def _some_mode(self) -> Self:
        if not self.localise.agents and self.explore is None:
            raise ValueError("needs localise (Mode A: agents), explore (Mode B: scorers), or both")
        return self

    @field_validator("name")
    @classmethod
    def _folder_name(cls, name: str) -> str:
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", name):
            raise ValueError(f"must be made of letters, digits, '.', '_' and '-', got {name!r}")
        return name

    def resolved(self) -> dict[str, Any]:
        """Return the whole scenario as plain JSON: defaults written out, paths absolute, no secrets.

        It is itself a scenario: saved to a file and loaded again it gives an equal one.
        """
        there = {"localise": bool(self.localise.agents), "explore": self.explore is not None}
        left_out = {mode for mode, asked in there.items() if not asked}
        return self.model_dump(mode="json", exclude=left_out)
