"""Scenarios: what to run, as a value (`docs/scenario-format.md`). Read one with `load_scenario`.

`cases` in `case.py` turns it into the questions to ask; the runner crosses these with its agents and repeats. A
scenario with sweeps is its own first combination; `Scenario.variants` are all of them.
"""

import math
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self, TypeVar
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    PlainSerializer,
    PrivateAttr,
    field_validator,
    model_validator,
)

from pathnav.cohort import protocol
from pathnav.cohort.sample import SampleSpec
from pathnav.cohort.sweep import Axis, is_sweep, with_values
from pathnav.cohort.tree import Magnification
from pathnav.errors import ConfigError
from pathnav.settings import Frozen, Text, shown

if TYPE_CHECKING:
    from pathnav.slide import Slide

SCENARIO_FORMAT = "pathnav-scenario-1"
T = TypeVar("T")


def _doubles(names: Iterable[str]) -> list[str]:
    return sorted(name for name, uses in Counter(names).items() if uses > 1)


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
        """Return the open slide."""
        from pathnav.slide import open_slide

        return open_slide(self.path, mpp=self.mpp, objective_power=self.objective_power, reader=self.reader)


class PhantomsSpec(Frozen):
    """Phantom slides, made on first use and kept in the user's cache folder."""

    count: Annotated[int, Field(ge=1)] = 3
    side: Annotated[int, Field(ge=1024, le=32_768)] = 8192
    """Width and height in level-0 pixels of 0.25 um; the maps in memory take 0.5 GB for the largest."""
    seed: Annotated[int, Field(ge=0)] = 1
    """Of the first phantom; the next ones count up."""


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
        if double := _doubles(slide.path for slide in self.slides or ()):
            raise ValueError(f"slides must not be named twice: {', '.join(double)}")
        return self


class ModelSpec(Frozen):
    """A chat endpoint. Of it only the name, and of its profile what can change an answer, enter an episode's key."""

    name: Text
    base_url: Text | None = None
    api_key_env: Text | None = None
    """Name of the environment variable that holds the key; the key itself never stands in a scenario."""
    api_key_file: Text | None = None
    """File that holds the key, and nothing else."""
    profile: Text | None = None
    """A shipped server profile, or a file of one."""
    allow_hosts: Annotated[tuple[str, ...], Field(strict=False)] = ()
    """Hosts outside this machine and its private networks that pixels may be sent to."""
    timeout_s: Annotated[float, Field(gt=0)] = 120.0
    concurrency: Annotated[int, Field(ge=1, le=protocol.MAX_CONCURRENCY)] = 8
    """Requests that may be in flight."""
    requests_per_minute: Annotated[float, Field(gt=0)] | None = None
    """Rate limit; None: as fast as answers come."""

    @field_validator("base_url")
    @classmethod
    def _no_password(cls, url: str | None) -> str | None:
        parts = urlsplit(url or "http://none")
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"must be an http(s) address such as http://127.0.0.1:8000/v1, got {url!r}")
        if parts.username or parts.password:
            raise ValueError("must not hold a user name or password; name an environment variable in api_key_env")
        return url

    @model_validator(mode="after")
    def _one_key(self) -> Self:
        if self.api_key_env is not None and self.api_key_file is not None:
            raise ValueError("api_key_env and api_key_file both say where the key is: give one of them")
        return self

    def api_key(self) -> str | None:
        """Return the key that the environment or a file holds, None where the scenario names neither."""
        if self.api_key_file is not None:
            return key_in_file(self.api_key_file)
        if self.api_key_env is None:
            return None
        key = os.environ.get(self.api_key_env)
        if not key:
            raise ConfigError(f"model.api_key_env: the environment variable {self.api_key_env} is not set")
        return key


def key_in_file(path: str, named: str = "model.api_key_file") -> str:
    """Return the API key that a file holds; blanks around it do not count, and no message tells its content.

    Args:
        path: The file.
        named: What a message calls the setting.

    Raises:
        ConfigError: If the file cannot be read, or holds none or more than one line.
    """
    try:
        key = Path(path).read_text(encoding="utf-8").strip()
    except UnicodeDecodeError:
        raise ConfigError(f"{named}: {path} is not a text file") from None
    except (OSError, ValueError) as error:  # ValueError: a name with a null byte
        reason = error.strerror if isinstance(error, OSError) else error
        raise ConfigError(f"{named}: {path} cannot be read: {reason}") from error
    if not key or len(key.split()) > 1:
        raise ConfigError(f"{named}: {path} must hold the key and nothing else")
    return key


class DecodingSpec(Frozen):
    """How a model's answers are decoded."""

    temperature: Annotated[float, Field(ge=0, le=2)] = protocol.TEMPERATURE
    top_p: Annotated[float, Field(gt=0, le=1)] = protocol.TOP_P
    max_tokens: Annotated[int, Field(ge=1)] = protocol.MAX_TOKENS
    seed: int | None = None
    """None sends the seed of the case, so that repeats differ where the server heeds it."""
    image_detail: Literal["low", "high", "auto"] = "high"


@dataclass(frozen=True, slots=True)
class Agent:
    """Who is asked: an agent, or a scorer."""

    spec: str
    """What `pathnav.plugins.load(kind, spec)` takes: a name, `file.py:Class` or `package.module:Class`."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Keyword arguments of the class."""

    @property
    def label(self) -> str:
        """What tells this agent from the scenario's others, e.g. `vlm(guides=false)`."""
        given = ", ".join(f"{key}={shown(value)}" for key, value in sorted(self.options.items()))
        return f"{self.spec}({given})" if given else self.spec


def _agent(item: Any) -> Agent:
    """Return the agent of a name or `{name: options}`."""
    spec, options = next(iter(item.items())) if isinstance(item, Mapping) and len(item) == 1 else (item, None)
    if isinstance(spec, str) and spec.strip() and isinstance(options, Mapping | None):
        return Agent(spec, dict(options or {}))
    raise ValueError(f"must be a name or {{name: options}}, got {shown(item)}")


def _each_once(agents: tuple[Agent, ...]) -> tuple[Agent, ...]:
    if double := _doubles(agent.label for agent in agents):
        raise ValueError(f"must not name one twice: {', '.join(double)}")
    return agents


def _written(agent: Agent) -> Any:
    return {agent.spec: dict(agent.options)} if agent.options else agent.spec


Agents = Annotated[
    tuple[Annotated[Agent, BeforeValidator(_agent), PlainSerializer(_written)], ...],
    Field(min_length=1, strict=False),
    AfterValidator(_each_once),
]
Rois = tuple[int, int, int]
"""One number a magnification: 2.5x, 10x and 40x."""


@dataclass(frozen=True, slots=True)
class Budget:
    """ROIs that may be looked at."""

    name: str
    """`tight`, `base`, `loose`, or the numbers, e.g. `4-3-2`."""
    rois: Rois

    @classmethod
    def of(cls, value: Any) -> "Budget":
        """Return the budget of a name or of three numbers."""
        if isinstance(value, str) and value in protocol.BUDGETS:
            return cls(value, protocol.BUDGETS[value])
        rois = _three(value, protocol.MAX_BUDGET, f"{', '.join(protocol.BUDGETS)} or ")
        names = (name for name, numbers in protocol.BUDGETS.items() if numbers == rois)
        return cls(next(names, "-".join(map(str, rois))), rois)

    def at(self, magnification: float) -> int:
        """Return the ROIs granted at a magnification."""
        return protocol.budget_for(magnification, self.rois)


def _three(value: Any, most: float = math.inf, otherwise: str = "") -> Rois:
    if not isinstance(value, list | tuple) or len(value) != 3 or not all(type(n) is int and n >= 1 for n in value):
        raise ValueError(f"must be {otherwise}three whole numbers of at least 1, got {shown(value)}")
    if max(value) > most:
        raise ValueError(f"must be at most {most:,}, got {max(value)}")
    return value[0], value[1], value[2]


def _one_or_more(value: Any, one: Callable[[Any], T]) -> tuple[T, ...]:
    """Return the values of one, or of `{sweep: [...]}` of them, each once."""
    found = tuple(one(item) for item in (value["sweep"] if is_sweep(value) else [value]))
    if not found or len(set(found)) < len(found):
        raise ValueError(f"must be a sweep of values that differ, got {shown(value)}")
    return found


def _as_written(values: Sequence[list[int]]) -> Any:
    return values[0] if len(values) == 1 else {"sweep": list(values)}


Budgets = Annotated[
    tuple[Budget, ...],
    BeforeValidator(lambda value: _one_or_more(value, Budget.of)),
    PlainSerializer(lambda budgets: _as_written([list(budget.rois) for budget in budgets])),
]
Schedules = Annotated[
    tuple[Rois, ...],
    BeforeValidator(lambda value: _one_or_more(value, _three)),
    PlainSerializer(lambda schedules: _as_written([list(keep) for keep in schedules])),
]


class ViewSpec(Frozen):
    """How images are shown to a model: the options of the `vlm` agent, where it does not give its own."""

    guides: bool = True
    view_px: Annotated[int, Field(ge=protocol.MIN_IMAGE_SIDE_PX)] = protocol.VIEW_LIMIT_PX
    """Limit of the long side."""
    jpeg_quality: Annotated[int, Field(ge=1, le=95)] = protocol.JPEG_QUALITY


class LocaliseSpec(Frozen):
    """Mode A: who is asked, with which budgets, under which controls."""

    agents: Agents
    budget: Budgets = (Budget.of("base"),)
    """One or more; every case is asked with each."""
    magnifications: Annotated[
        tuple[Magnification, ...],
        Field(min_length=1, strict=False),
        AfterValidator(lambda magnifications: tuple(sorted(set(magnifications)))),
    ] = protocol.MAGNIFICATIONS
    repeats: Annotated[int, Field(ge=1, le=10_000)] = 1
    jitter: Annotated[float, Field(ge=0, le=0.5)] = 0.0
    """Control: largest shift of a search region as a share of its side."""
    swapped_findings: bool = False
    """Control: every query gets the finding of another."""
    blank_images: bool = False
    """Control: white instead of pixels."""
    views: ViewSpec = ViewSpec()


class ExploreSpec(Frozen):
    """Mode B: who scores tiles, with which schedules, over which tiles."""

    scorers: Agents
    schedule: Schedules = (protocol.SCHEDULE,)
    """K at 2.5x, 10x and 40x; one or more, which share all scores."""
    tile_px: Annotated[int, Field(ge=1, le=protocol.MAX_TILE_PX)] = protocol.TILE_PX
    """Side of a tile's image at its magnification."""
    min_tissue: Annotated[float, Field(ge=0, le=1)] = protocol.MIN_TISSUE
    fill_to_k: bool = False
    """Where fewer than K say Yes, fill with the best No."""


def _folder_name(name: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", name):
        raise ValueError(f"must be made of letters, digits, '.', '_' and '-', got {name!r}")
    return name


class Scenario(Frozen):
    """All that a run is made of. Read one with `load_scenario`."""

    format: Literal["pathnav-scenario-1"]
    name: Annotated[str, AfterValidator(_folder_name)]
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
    _variants: "tuple[Variant, ...]" = PrivateAttr(default=())

    @model_validator(mode="after")
    def _some_mode(self) -> Self:
        if not self.localise.agents and self.explore is None:
            raise ValueError("needs localise (Mode A: agents), explore (Mode B: scorers), or both")
        return self

    @property
    def axes(self) -> tuple[Axis, ...]:
        """What is swept, in the order of the format; this scenario itself holds the first value of each."""
        return self._axes

    def variants(self) -> "tuple[Variant, ...]":
        """Return every combination of the swept values as a whole scenario; the last axis varies fastest."""
        return self._variants or (Variant({}, self),)

    def swept(self, axes: tuple[Axis, ...], variants: "tuple[Variant, ...]") -> "Scenario":
        """Return the scenario as the first combination of a sweep."""
        swept = self.model_copy()
        swept._axes, swept._variants = axes, variants
        return swept

    def written(self) -> dict[str, Any]:
        """Return this combination as plain JSON, defaults written out, without the modes that ask nobody."""
        there = {"localise": bool(self.localise.agents), "explore": self.explore is not None}
        return self.model_dump(mode="json", exclude={mode for mode, asked in there.items() if not asked})

    def resolved(self) -> dict[str, Any]:
        """Return the whole scenario as plain JSON: defaults written out, paths absolute, sweeps kept, no secrets.

        It is itself a scenario: saved to a file and loaded again it gives an equal one.
        """
        return with_values(self.written(), {axis.place: {"sweep": list(axis.values)} for axis in self._axes})


@dataclass(frozen=True, slots=True)
class Variant:
    """One combination of a sweep."""

    settings: Mapping[str, Any]
    """The swept values by their dotted place; empty where nothing is swept."""
    scenario: Scenario
