"""Scores of Mode A per agent, configuration, controls, budget and magnification (docs/protocol.md, section 2, Scores).

A query's value is the mean over its repeats, so that the unit of n is the query; a score is the mean over queries.
Infrastructure failures are counted and never scored.
"""

import json
import statistics
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from pathnav.cohort.protocol import MIN_SLIDES_FOR_INTERVAL
from pathnav.localise.outcome import Outcome
from pathnav.report.load import EpisodeResult, QueryKey
from pathnav.report.statistics import Interval, cluster_bootstrap

JITTERED_PARENT = "jittered-parent"
"""What `parent-centre` is called on jittered search regions (docs/protocol.md, section 2, Controls)."""


@dataclass(frozen=True, slots=True)
class Metric:
    """One column.

    Args:
        name: Its name in JSON and CSV.
        label: Its heading.
        of: The value of one episode; None is unknown.
        counts: Whether an episode counts in the mean at all.
        digits: Decimals in print.
        unit: What is divided by in print, as the heading says; JSON and CSV keep the value.
    """

    name: str
    label: str
    of: Callable[[EpisodeResult], float | None]
    counts: Callable[[EpisodeResult], bool] = lambda episode: True
    digits: int = 3
    unit: float = 1


def _is_scored(episode: EpisodeResult) -> bool:
    return episode.is_scored


def _asks_a_model(episode: EpisodeResult) -> bool:
    return episode.model is not None


SCORES = (
    Metric("miou", "mIoU", lambda e: e.iou, _is_scored),
    Metric("iou_at_0.3", "IoU >= 0.3", lambda e: e.hit, _is_scored),
    Metric("valid_box_rate", "valid box", lambda e: float(e.has_valid_box)),
    Metric("miou_valid", "mIoU, valid", lambda e: e.iou, lambda e: e.is_scored and e.has_valid_box),
    Metric("miou_fallback", "mIoU, fallback", lambda e: e.iou_fallback, _is_scored),
    Metric("iou_any", "IoU, any", lambda e: e.iou_any, _is_scored),
)
EFFORT = (
    Metric("rois_used", "ROIs", lambda e: e.rois_used, digits=1),
    Metric("steps", "steps", lambda e: e.steps, digits=1),
    Metric("examined_mm2", "mm2 read", lambda e: e.examined_mm2, digits=2),
    Metric("pixels_sent", "Mpx sent", lambda e: e.pixels_sent, _asks_a_model, digits=2, unit=1e6),
    Metric("tokens_input", "tokens in", lambda e: e.tokens.input if e.tokens else None, _asks_a_model, digits=0),
    Metric("tokens_output", "tokens out", lambda e: e.tokens.output if e.tokens else None, _asks_a_model, digits=0),
    Metric("cost_usd", "USD", lambda e: e.cost_usd, _asks_a_model, digits=4),
    Metric("seconds", "seconds", lambda e: e.seconds, digits=1),
)
METRICS = SCORES + EFFORT


@dataclass(frozen=True, slots=True)
class Cell:
    """One score with what it rests on.

    Args:
        value: Mean over queries; None where every value is unknown or none counts.
        interval: 95 % cluster-bootstrap interval; None where it is not defined, as for one slide.
        n_slides: Slides with a value.
        n_queries: Queries with a value.
        n_unknown: Queries that should have a value, which nobody knows; they are not in the mean.
        sd_repeats: Standard deviation over repeats of the mean over queries; None without repeats.
    """

    value: float | None
    interval: Interval | None
    n_slides: int
    n_queries: int
    n_unknown: int
    sd_repeats: float | None = None

    @property
    def is_thin(self) -> bool:
        """Whether fewer slides than docs/protocol.md asks for stand behind the interval."""
        return self.n_slides < MIN_SLIDES_FOR_INTERVAL


@dataclass(frozen=True, slots=True)
class Group:
    """What the episodes of one row have in common.

    Args:
        magnification: 2.5, 10 or 40.
        agent: Its name; that of the protocol's row where the search regions were jittered.
        is_shipped: Whether it is pathnav's own, so that its name means what the protocol says.
        model: The model it asked; None for an agent that asks none.
        budget: ROIs.
        configuration: Hash of code, version, settings, views, prompts, tools, model and decoding.
        controls: The controls, as one JSON text: rows under different controls were asked different things.
        seed: Of the run: a sweep may have several.
    """

    magnification: float
    agent: str
    is_shipped: bool
    model: str | None
    budget: int
    configuration: str
    controls: str
    seed: int = 0

    @classmethod
    def of(cls, episode: EpisodeResult) -> "Group":
        """Return the group of an episode."""
        asked, shipped = episode.query, episode.is_shipped
        is_jittered_parent = shipped and episode.agent == "parent-centre" and bool(episode.controls.get("jitter"))
        name = JITTERED_PARENT if is_jittered_parent else episode.agent
        controls = json.dumps({name: value for name, value in episode.controls.items() if value}, sort_keys=True)
        experiment = episode.experiment
        named = asked.magnification, name, shipped, episode.model
        return cls(*named, asked.budget, experiment, controls, episode.seed)

    def is_own(self, name: str) -> bool:
        """Return whether this is pathnav's own agent of that name."""
        return self.is_shipped and self.agent == name

    @property
    def sort_key(self) -> tuple[float, str, bool, str, int, str, str, int]:
        """A full order, in which pathnav's own come first and no model before any."""
        named = self.magnification, self.agent, not self.is_shipped, self.model or ""
        return *named, self.budget, self.configuration, self.controls, self.seed


@dataclass(frozen=True, slots=True)
class Row:
    """All scores of one group.

    Args:
        group: Agent, model, configuration, controls, budget and magnification.
        variant: Version, settings and decoding, each under its name.
        origin: Where the agent's class came from: package, module or file; None where the record does not say.
        cells: By the metric's name.
        episodes: The answered episodes.
        n_slides: Slides with an answered query.
        n_queries: Answered queries.
        n_infra: Episodes lost to infrastructure.
        repeats: Most repeats of a query.
    """

    group: Group
    variant: dict[str, Any]
    origin: str | None
    cells: dict[str, Cell]
    episodes: tuple[EpisodeResult, ...]
    n_slides: int
    n_queries: int
    n_infra: int
    repeats: int

    @property
    def controls(self) -> dict[str, Any]:
        """The controls that were on, by name."""
        return dict(json.loads(self.group.controls))

    @property
    def n_phantoms(self) -> int:
        """How many of the slides are phantoms that pathnav made."""
        return len({episode.slide.fingerprint for episode in self.episodes if episode.slide.phantom})

    @property
    def unbudgeted(self) -> bool:
        """Whether the agent surveyed the region beyond any budget."""
        return any(episode.unbudgeted for episode in self.episodes)


def score_rows(results: Iterable[EpisodeResult]) -> list[Row]:
    """Return one row a group, sorted by magnification, agent, model, budget and configuration."""
    groups: dict[Group, list[EpisodeResult]] = defaultdict(list)
    for episode in results:
        groups[Group.of(episode)].append(episode)
    return [_row(group, groups[group]) for group in sorted(groups, key=lambda group: group.sort_key)]


def _row(group: Group, episodes: Sequence[EpisodeResult]) -> Row:
    answered = tuple(episode for episode in episodes if episode.outcome.is_agents)
    by_query = _by_query(answered)
    return Row(
        group,
        episodes[0].variant,
        episodes[0].origin,
        {metric.name: cell_of(metric, answered) for metric in METRICS},
        answered,
        len({key[0] for key in by_query}),
        len(by_query),
        sum(episode.outcome == Outcome.INFRA_ERROR for episode in episodes),
        max((len({episode.repeat for episode in asked}) for asked in by_query.values()), default=0),
    )


def _by_query(episodes: Iterable[EpisodeResult]) -> dict[QueryKey, list[EpisodeResult]]:
    found: dict[QueryKey, list[EpisodeResult]] = defaultdict(list)
    for episode in episodes:
        found[episode.query_key].append(episode)
    return dict(sorted(found.items()))


def query_values(metric: Metric, episodes: Iterable[EpisodeResult]) -> dict[QueryKey, tuple[float, float]]:
    """Return each query's mean over its repeats, and its weight: the share of its episodes that have a value.

    Queries without any value are left out.
    """
    values: dict[QueryKey, tuple[float, float]] = {}
    for key, repeats in _by_query(episodes).items():
        known = [v for e in repeats if metric.counts(e) and (v := metric.of(e)) is not None]
        if known:
            values[key] = statistics.fmean(known), len(known) / len(repeats)
    return values


def cell_of(metric: Metric, episodes: Sequence[EpisodeResult]) -> Cell:
    """Return one score over answered episodes of one group."""
    values = query_values(metric, episodes)
    due = {episode.query_key for episode in episodes if metric.counts(episode)}
    unknown = {e.query_key for e in episodes if metric.counts(e) and metric.of(e) is None}
    if not values:
        return Cell(None, None, 0, 0, len(due))
    slides = {key[0] for key in values}
    everywhere = sorted({episode.query_key for episode in episodes})
    pairs = [values.get(key, (0.0, 0.0)) for key in everywhere]
    mean = sum(value * weight for value, weight in pairs) / sum(weight for _, weight in pairs)
    interval = cluster_bootstrap(
        [value for value, _ in pairs], [key[0] for key in everywhere], weights=[weight for _, weight in pairs]
    )
    return Cell(mean, interval, len(slides), len(values), len(unknown), _sd_over_repeats(metric, episodes))


def _sd_over_repeats(metric: Metric, episodes: Iterable[EpisodeResult]) -> float | None:
    """Return the standard deviation (n - 1) of the score over repeats, None with fewer than two.

    Only queries that have a value in every repeat count: otherwise the repeats would differ in what was asked.
    """
    values: dict[QueryKey, dict[int, float]] = defaultdict(dict)
    repeats = set()
    for episode in episodes:
        repeats.add(episode.repeat)
        if metric.counts(episode) and (value := metric.of(episode)) is not None:
            values[episode.query_key][episode.repeat] = value
    complete = [by_repeat for by_repeat in values.values() if by_repeat.keys() == repeats]
    if not complete or len(repeats) < 2:
        return None
    return statistics.stdev(statistics.fmean(of[repeat] for of in complete) for repeat in sorted(repeats))
