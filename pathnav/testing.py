"""Conformance checks that authors run on their own agent or scorer: `check_agent("my_agent.py:MyAgent")`.

They need no test framework. An agent runs a few episodes on a phantom slide in an environment that takes note of what
is asked of it, a scorer scores a phantom's tiles; the first rule that is broken is named in a `ConformanceError`.
"""

import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from pathnav.cohort.query import Query, slide_handle
from pathnav.errors import BudgetExhausted, PathnavError, RoiError, SlideError
from pathnav.explore.conformance import ScorerRule, ScorerTrial
from pathnav.geometry import Box, Floats
from pathnav.localise.environment import Environment
from pathnav.localise.survey import Survey
from pathnav.localise.views import View
from pathnav.model import ChatClient
from pathnav.phantom import PhantomFiles, make_phantom, phantom_files
from pathnav.plugins import Kind, Plugin, load
from pathnav.run.agent_choice import loaded
from pathnav.run.plugin_identity import plugin_of
from pathnav.slide import Slide, open_slide

_SLIDE_NAME = "phantom.tiff"
_SIDE_PX = 1024
_PHANTOM_SEED = 11


class Rule(StrEnum):
    """What an agent promises."""

    BUDGET = "respects the budget"
    BOUNDS = "stays in bounds"
    REPORT = "reports once"
    QUERY = "does not mutate the query"
    OPEN = "closes nothing"
    SEED = "is deterministic under a seed"
    TARGET = "never sees the target"


class ConformanceError(PathnavError, AssertionError):
    """Raised when an agent or a scorer breaks a rule of its contract; `rule` is the rule."""

    def __init__(self, name: str, rule: Rule | ScorerRule, reason: str, kind: Kind = Kind.AGENT) -> None:
        super().__init__(f"{kind} {name!r} breaks the rule {rule.value!r}: {reason}")
        self.rule = rule


@dataclass(frozen=True, slots=True)
class Conformance:
    """What a check that found no fault has seen.

    Args:
        agent: Name of the agent.
        unbudgeted: Whether it declares that it surveys.
        episodes: How many episodes were run.
        looks: How many ROIs it looked at in them.
        rules: The rules it keeps.
    """

    agent: str
    unbudgeted: bool
    episodes: int
    looks: int
    rules: tuple[Rule, ...]

    def __str__(self) -> str:
        """Return the finding in one line."""
        return f"{self.agent}: {len(self.rules)} rules kept in {self.episodes} episodes with {self.looks} looks"


def check_agent(
    agent: str | type,
    *,
    options: Mapping[str, Any] | None = None,
    finding: str = "solid nests of tumour cells",
    seed: int = 0,
    chat: ChatClient | None = None,
) -> Conformance:
    """Run an agent on a phantom slide and check that it keeps the contract.

    Args:
        agent: A class, or what `--agent` takes: an installed name, `file.py:Class`, `package.module:Class`.
        options: Keyword arguments of the class.
        finding: What the agent is asked to find.
        seed: Seed of the episodes.
        chat: A chat endpoint, for an agent that uses one.

    Returns: What was checked.

    Raises:
        ConformanceError: If a rule is broken; names the first one.
        PluginError: If the agent cannot be loaded or made.
    """
    plugin = loaded(agent)
    with _phantom_at_hand() as files, open_slide(files.slide) as slide:
        trial = _Trial(plugin, options or {}, slide, seed=seed, chat=chat)
        _check_rounds(trial, _queries(slide, finding), (files.tree, files.annotation))
    return Conformance(plugin.name, trial.unbudgeted, trial.episodes, trial.looks, tuple(Rule))


def check_scorer(scorer: str | type, *, options: Mapping[str, Any] | None = None) -> tuple[ScorerRule, ...]:
    """Have a scorer score tiles of a phantom slide and check that it keeps the contract.

    Args:
        scorer: A class, or what `--scorer` takes: an installed name, `file.py:Class`, `package.module:Class`.
        options: Keyword arguments of the class.

    Returns: The rules that it keeps: all of them.

    Raises:
        ConformanceError: If a rule is broken; names the first one.
        PluginError: If the scorer cannot be loaded or made.
    """
    plugin = load(Kind.SCORER, scorer) if isinstance(scorer, str) else plugin_of(Kind.SCORER, scorer)
    with _phantom_at_hand() as files, open_slide(files.slide) as slide:
        trial = ScorerTrial(lambda: plugin.create(options), slide)
        broken = trial.run()
        if broken is None:
            for truth in (files.tree, files.annotation):
                truth.unlink()
            broken = trial.blind()
    if broken is not None:
        raise ConformanceError(plugin.name, broken.rule, broken.reason, Kind.SCORER)
    return tuple(ScorerRule)


@contextmanager
def _phantom_at_hand() -> Iterator[PhantomFiles]:
    """Lay a phantom's files into a folder that is removed afterwards."""
    with tempfile.TemporaryDirectory(prefix="pathnav-check-") as folder:
        for name, content in _phantom().items():
            (Path(folder) / name).write_bytes(content)
        yield phantom_files(Path(folder) / _SLIDE_NAME)


@cache
def _phantom() -> dict[str, bytes]:
    """Return the files of the phantom by name; drawing it takes seconds, so once a process."""
    with tempfile.TemporaryDirectory(prefix="pathnav-check-") as folder:
        files = make_phantom(Path(folder) / _SLIDE_NAME, seed=_PHANTOM_SEED, side=_SIDE_PX)
        return {file.name: file.read_bytes() for file in (files.slide, files.annotation, files.tree)}


def _check_rounds(trial: "_Trial", queries: Sequence[Query], truths: Iterable[Path]) -> None:
    """Ask the same questions twice, and once more when the files that hold the truth are gone."""
    first = [trial.run(query) for query in queries]
    if [trial.run(query) for query in queries] != first:
        raise trial.fault(Rule.SEED, "it acted differently when asked the same again: draw from environment.rng")
    for truth in truths:
        truth.unlink()
    try:
        blind = [trial.run(query) for query in queries]
    except OSError as error:
        raise trial.fault(Rule.TARGET, f"it needs a file beside the slide: {error}") from error
    if blind != first:
        raise trial.fault(Rule.TARGET, "it acted differently when the truth no longer lay beside the slide")


def _queries(slide: Slide, finding: str) -> list[Query]:
    """Return three questions: the whole slide, the inside, and a corner with one look and a target as wide as it."""
    whole, handle = slide.bounds, slide_handle(slide.fingerprint)
    side = whole.width / 4
    corner = Box(whole.right - side, whole.bottom - side, side, side)
    return [
        Query(handle, 2.5, finding, whole, side, side, budget=4),
        Query(handle, 10.0, finding, Box.centred(whole.centre, 2 * side, 2 * side), side / 2, side / 4, budget=3),
        Query(handle, 40.0, finding, corner, side, side / 8, budget=1),
    ]


Act = tuple[Any, ...]


class _Watched(Environment):
    """An environment that takes note of every request, also of those that it refuses."""

    def __init__(self, slide: Slide, query: Query, **settings: Any) -> None:
        super().__init__(slide, query, **settings)
        self.granted = query.budget
        self.looks = 0
        self.reports = 0
        self.acts: list[Act] = []
        self.faults: list[tuple[Rule, str]] = []

    @property
    def survey(self) -> Survey:
        with self._noting():
            return super().survey

    def extract_roi(self, box: Box, reason: str = "") -> View:
        self.acts.append(("look", *box.as_list()))
        with self._noting():
            view = super().extract_roi(box, reason)
        self.looks += 1
        if self.looks > self.granted:
            self.faults.append((Rule.BUDGET, f"it had {self.looks} looks with a budget of {self.granted}"))
        return view

    def report(self, box: Box, conclusion: str = "", confidence: float | None = None) -> None:
        self.acts.append(("report", *box.as_list(), conclusion, confidence))
        with self._noting():
            super().report(box, conclusion, confidence)
        self.reports += 1

    def report_draws(self, draws: Floats, weights: Floats | None = None, conclusion: str = "") -> None:
        self.acts.append(("draws", np.asarray(draws).tobytes(), np.asarray(weights).tobytes(), conclusion))
        with self._noting():
            super().report_draws(draws, weights, conclusion)
        self.reports += 1

    @contextmanager
    def _noting(self) -> Iterator[None]:
        """Note a refusal as the fault it is, and let it pass on to the agent."""
        try:
            yield
        except BudgetExhausted as error:
            self.faults.append((Rule.BUDGET, str(error)))
            raise
        except RoiError as error:
            self.faults.append((Rule.REPORT if self.reports else Rule.BOUNDS, str(error)))
            raise


class _Trial:
    """Episodes of one agent, each with a fresh instance and a fresh environment."""

    def __init__(self, plugin: Plugin, options: Mapping[str, Any], slide: Slide, **settings: Any) -> None:
        self.plugin, self.options, self.slide, self.settings = plugin, options, slide, settings
        self.unbudgeted = bool(getattr(plugin.create(options), "unbudgeted", False))
        self.episodes = 0
        self.looks = 0

    def fault(self, rule: Rule, reason: str) -> ConformanceError:
        """Return the error that names a broken rule."""
        return ConformanceError(self.plugin.name, rule, reason)

    def run(self, query: Query) -> list[Act]:
        """Run an episode, check all that one episode can show, and return what the agent did."""
        agent = self.plugin.create(self.options)
        views = getattr(agent, "views", None)
        given = replace(query)
        environment = _Watched(self.slide, given, unbudgeted=self.unbudgeted, views=views, **self.settings)
        try:
            agent.run(environment)
        except BudgetExhausted as error:
            environment.faults.append((Rule.BUDGET, str(error)))
        except RoiError as error:
            environment.faults.append((Rule.BOUNDS, str(error)))
        for rule, reason in environment.faults:
            raise self.fault(rule, reason)
        self._check_end(environment, query)
        if environment.query is not given or given != query:
            raise self.fault(Rule.QUERY, f"the query was {query} and is {environment.query}")
        self.episodes += 1
        self.looks += environment.looks
        return environment.acts

    def _check_end(self, environment: _Watched, query: Query) -> None:
        if environment.reports != 1:
            raise self.fault(Rule.REPORT, f"it made {environment.reports} reports: call environment.report(box) once")
        try:
            self.slide.read(query.region, max_side_px=64)
        except (SlideError, ValueError, OSError) as error:
            raise self.fault(Rule.OPEN, f"the slide cannot be read after the episode: {error}") from error
