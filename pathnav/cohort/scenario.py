"""Scenarios: what to run, as a value (`docs/scenario-format.md`).

`load_scenario` in `scenario_file.py` reads one from a file and fills its slots; `cases` in `case.py` turns it into the
questions to ask (jitter, swapped findings, sample and budgets applied). The runner crosses these with the scenario's
`localise.agents` and `localise.repeats`, and applies `localise.blank_images`, `localise.views`, `model`, `decoding`,
`seed` and `out`. A scenario with sweeps is its own first combination; `Scenario.variants` are all of them.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, PlainSerializer, PrivateAttr, field_validator, model_validator

from pathnav.cohort import protocol
from pathnav.cohort.node import Frozen, Magnification, Text
from pathnav.cohort.scenario_model import DecodingSpec, ModelSpec
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
from pathnav.cohort.sweep import Axis, combinations, with_sweeps, with_values

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
    side: Annotated[int, Field(ge=1024, le=32_768)] = 8192
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


class ViewSpec(Frozen):
    """How images are shown to a model: the options of the `vlm` agent, where it does not give its own."""

    guides: bool = True
    view_px: Annotated[int, Field(ge=protocol.MIN_IMAGE_SIDE_PX)] = protocol.VIEW_LIMIT_PX
    """Limit of the long side."""
    jpeg_quality: Annotated[int, Field(ge=1, le=95)] = protocol.JPEG_QUALITY


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
    prices: Text | None = None
    """File of prices; None: those that come with pathnav."""
    out: Text | None = None
    """Output folder; None leaves it to the command."""
    _axes: tuple[Axis, ...] = PrivateAttr(default=())

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

    @property
    def axes(self) -> tuple[Axis, ...]:
        """What is swept, in the order of the format; this scenario itself holds the first value of each."""
        return self._axes

    def with_axes(self, axes: tuple[Axis, ...]) -> "Scenario":
        """Return the scenario as the first combination of a sweep."""
        swept = self.model_copy()
        swept._axes = axes
        return swept

    def variants(self) -> "tuple[Variant, ...]":
        """Return every combination of the swept values as a whole scenario; the last axis varies fastest.

        Raises:
            ValidationError: If values that are legal alone are not so together.
        """
        if not self._axes:
            return (Variant({}, self),)
        document = self._document()
        return tuple(
            Variant(
                {axis.name: chosen[axis.place] for axis in self._axes},
                Scenario.model_validate({**with_values(document, chosen), "cohort": self.cohort}),
            )
            for chosen in combinations(self._axes)
        )

    def resolved(self) -> dict[str, Any]:
        """Return the whole scenario as plain JSON: defaults written out, paths absolute, sweeps kept, no secrets.

        It is itself a scenario: saved to a file and loaded again it gives an equal one.
        """
        document = {**self._document(), "cohort": self.cohort.model_dump(mode="json")}
        return with_sweeps({name: document[name] for name in type(self).model_fields if name in document}, self._axes)

    def _document(self) -> dict[str, Any]:
        """Return the scenario but for its cohort as plain JSON, without the modes that ask nobody."""
        there = {"localise": bool(self.localise.agents), "explore": self.explore is not None}
        left_out = {mode for mode, asked in there.items() if not asked}
        return self.model_dump(mode="json", exclude={"cohort", *left_out})


@dataclass(frozen=True, slots=True)
class Variant:
    """One combination of a sweep.

    Args:
        settings: The swept values by their dotted place; empty where nothing is swept.
        scenario: The scenario with these values.
    """

    settings: Mapping[str, Any]
    scenario: Scenario
