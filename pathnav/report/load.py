"""A run folder as it is read: results checked against their format, and how many episodes are still to come."""

import contextlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, TypeAdapter, ValidationError

from pathnav.cohort.protocol import IOU_THRESHOLD
from pathnav.errors import RecordError
from pathnav.localise.outcome import Outcome
from pathnav.records import JsonObject, read_json
from pathnav.report.exploration_record import ExplorationResult, PlannedSearch
from pathnav.report.record_parts import BoxList, Record, SlideRecord, Tokens, is_pathnavs
from pathnav.run.description import is_of_requests
from pathnav.run.folder import EXPLORATION_FORMAT, RESULT_FILE, RESULT_FORMAT, RunFolder
from pathnav.run.key import hashed

QueryKey = tuple[str, float, BoxList, tuple[float, ...], str]
"""Slide fingerprint, magnification, search region, target box, finding; the slide comes first."""

SHIPPED_AGENTS = frozenset(
    ("random", "grid-centroid", "tissue-density", "tissue-weighted", "parent-centre", "clip-retrieval", "oracle", "vlm")
)

_WRITERS = "`pathnav run`, or `locate` or `explore` with --out,"


class QueryRecord(Record):
    """What an episode asked."""

    id: str | None = None
    handle: str = ""
    magnification: float
    finding: str
    region: BoxList
    target_size: tuple[float, float]
    budget: int
    """ROIs."""


class EpisodeResult(Record):
    """One `result.json`; None is unknown or not applicable, never 0."""

    format: Literal["pathnav-result-1"]
    key: str
    slide: SlideRecord
    query: QueryRecord
    agent: str
    origin: str | None = None
    """Where the agent's class came from: an installed package (`pathnav 0.1.0`), a module, or a file's path."""
    configuration: str | None = None
    """Hash of the agent's code, version, settings, views, prompts, tools, model and decoding."""
    version: str = "0"
    settings: dict[str, Any] = Field(default_factory=dict)
    controls: dict[str, Any] = Field(default_factory=dict)
    model: str | None = None
    decoding: dict[str, Any] | None = None
    seed: int = 0
    repeat: int = 0
    outcome: Outcome
    box: BoxList | None = None
    """The box that is scored; of declared draws the first."""
    draws: int | None = None
    """How many boxes were declared as a distribution; None for a single box."""
    reported: BoxList | None = None
    target: BoxList | None = None
    """The annotated box."""
    scored_target: BoxList | None = None
    """The box that `iou` was computed with: the target moved into the slide."""
    iou: float | None = None
    """0 without a valid box; the expectation for declared draws; None where no target is known."""
    hit_share: float | None = None
    """Expected share of draws with IoU >= 0.3; None for a single box."""
    iou_fallback: float | None = None
    iou_any: float | None = None
    rois: tuple[BoxList, ...] = ()
    rois_used: int
    steps: int
    examined_mm2: float | None = None
    pixels_sent: int | None = None
    tokens: Tokens | None = None
    cost_usd: float | None = None
    seconds: float | None = None
    unbudgeted: bool = False

    @property
    def is_scored(self) -> bool:
        """Whether the answer is the agent's own and a target is known."""
        return self.outcome.is_agents and self.iou is not None

    @property
    def has_valid_box(self) -> bool:
        """Whether a valid box, or valid draws, were reported."""
        return self.outcome in (Outcome.FINISHED, Outcome.FORCED)

    @property
    def hit(self) -> float | None:
        """Whether IoU is at least 0.3, as a share; None where no target is known."""
        if self.iou is None:
            return None
        return float(self.iou >= IOU_THRESHOLD) if self.hit_share is None else self.hit_share

    @property
    def is_shipped(self) -> bool:
        """Whether the agent is one of pathnav's own; a record that says nothing of its origin is judged by the name."""
        if "origin" not in self.model_fields_set:
            return self.agent in SHIPPED_AGENTS
        return self.agent in SHIPPED_AGENTS and is_pathnavs(self.origin)

    @property
    def variant(self) -> dict[str, Any]:
        """What was chosen for the agent, as recorded: each part under its own name, so that none hides another."""
        return {"version": self.version, "settings": self.settings, "decoding": self.decoding or {}}

    @property
    def experiment(self) -> str:
        """The hash of what answered: episodes that differ in it are never averaged."""
        return self.configuration or hashed({"model": self.model, **self.variant})

    @property
    def query_key(self) -> QueryKey:
        """The query's identity: agents with the same one were asked the same, against the same truth."""
        asked = self.query
        truth = self.target or asked.target_size
        return self.slide.fingerprint, asked.magnification, asked.region, truth, asked.finding


@dataclass(frozen=True, slots=True)
class RunRecord:
    """What a run folder holds.

    Args:
        folder: The folder.
        name: What the run is called.
        results: One record a finished episode of the latest plan, in its order; of single requests, all that were made
            into the folder.
        unfinished: Keys of planned episodes without a result, and of interrupted ones.
        n_earlier: Results of earlier plans in the folder, which the latest plan does not list.
        explorations: One record an exploration of the latest plan that is finished or lost, in its order.
        interrupted: Explorations that were broken off; their keys are among the unfinished.
        searches: The searches that the latest plan lists, each of one slide with all its schedules.
        is_of_requests: Whether the folder holds single requests alone, which are all shown; no scenario planned them.
    """

    folder: Path
    name: str
    results: tuple[EpisodeResult, ...]
    unfinished: tuple[str, ...]
    n_earlier: int = 0
    explorations: tuple[ExplorationResult, ...] = ()
    interrupted: tuple[ExplorationResult, ...] = ()
    searches: tuple[PlannedSearch, ...] = ()
    is_of_requests: bool = False

    @property
    def planned(self) -> int:
        """How many episodes of both modes the run has in all."""
        return len(self.results) + len(self.explorations) + len(self.unfinished)


def load_run(folder: str | Path) -> RunRecord:
    """Return the record of a run's latest plan, which may still be going on; of single requests that of all of them.

    Raises:
        RecordError: If the folder is not a run's, or one of its files is damaged, foreign, or of another format.
    """
    path = Path(folder)
    if not path.is_dir():
        raise RecordError(f"{path} is not a folder; expected one that {_WRITERS} wrote")
    home = RunFolder(path)
    _refuse_empty(home)
    description = home.description()
    keys, earlier = _keys(home, description, "episodes"), _keys(home, description, "earlier_episodes")
    _refuse_foreign(home, {*keys, *earlier})
    if of_requests := is_of_requests(description):
        keys, earlier = sorted({*keys, *earlier}), []  # whatever was asked last
    found = {key: load_result(home, key) for key in keys}
    missing = [key for key, result in found.items() if result is None or result.outcome == Outcome.INTERRUPTED]
    done = [found[key] for key in keys if key not in set(missing)]
    name = str(description.get("name") or path.name)
    n_earlier = sum((home.episode(key) / RESULT_FILE).exists() for key in set(earlier) - set(keys))
    explored = [result for result in found.values() if isinstance(result, ExplorationResult)]
    return RunRecord(
        path,
        name,
        tuple(result for result in done if isinstance(result, EpisodeResult)),
        tuple(missing),
        n_earlier,
        explorations=tuple(result for result in explored if not result.is_interrupted),
        interrupted=tuple(result for result in explored if result.is_interrupted),
        searches=_searches(home, description),
        is_of_requests=of_requests,
    )


def _refuse_empty(home: RunFolder) -> None:
    """Raise RecordError for a folder that no run has written anything into."""
    if home.run_json.exists():
        return
    what = "holds no run.json, so that it is no run folder" if any(home.path.iterdir()) else "is empty"
    raise RecordError(f"{home.path} {what}; expected one that {_WRITERS} wrote")


def _keys(home: RunFolder, description: JsonObject, field: str) -> list[str]:
    """Return the keys of episodes that a run lists; earlier ones only where it was run into again."""
    keys = description.get(field, [] if field == "earlier_episodes" else None)
    if not isinstance(keys, list) or not all(isinstance(key, str) for key in keys):
        raise RecordError(f"{home.run_json} should list the keys of its episodes under {field!r}")
    return keys


def _searches(home: RunFolder, description: JsonObject) -> tuple[PlannedSearch, ...]:
    """Return the searches of Mode B that a run lists; none where it was written before there were any."""
    try:
        return TypeAdapter(tuple[PlannedSearch, ...]).validate_python(description.get("explorations", []))
    except ValidationError as error:
        raise RecordError(f"{home.run_json} is damaged: explorations{_first(error)}") from error


def _first(error: ValidationError) -> str:
    """Return what a record has wrong first, after the name of the field: `.0.slide: Field required`."""
    first = error.errors(include_url=False)[0]
    return "".join(f".{part}" for part in first["loc"]) + f": {first['msg']}"


def load_result(home: RunFolder, key: str) -> EpisodeResult | ExplorationResult | None:
    """Return the result of one episode of either mode, None where it has none yet.

    Raises:
        RecordError: If the file is damaged, of another format, or another episode's.
    """
    path = home.episode(key) / RESULT_FILE
    if not path.exists():
        return None
    document = _document(path)
    is_exploration = document["format"] == EXPLORATION_FORMAT
    try:
        result = (ExplorationResult if is_exploration else EpisodeResult).model_validate(document)
    except ValidationError as error:
        raise RecordError(f"{path} is damaged: {_first(error).lstrip('.: ')}") from error
    if result.key != key:
        raise RecordError(f"{path} belongs to the episode {result.key!r}, not to {key!r}")
    return result


def _document(path: Path) -> JsonObject:
    """Return a result of either mode; what is neither is refused as no result of Mode A."""
    with contextlib.suppress(RecordError):
        return read_json(path, EXPLORATION_FORMAT)
    return read_json(path, RESULT_FORMAT)


def _refuse_foreign(home: RunFolder, keys: set[str]) -> None:
    """Raise RecordError for a result that the run does not list."""
    for path in sorted((home.path / "episodes").glob(f"*/{RESULT_FILE}")):
        if path.parent.name not in keys:
            raise RecordError(f"{path} is not an episode of this run: {home.run_json} does not list it")
