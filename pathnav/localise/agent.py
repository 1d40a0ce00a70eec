"""The contract of a Mode A agent, the oracle, and the windows that one agent proposes to another."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from pathnav.cohort.query import Target
from pathnav.errors import ConfigError, PluginError
from pathnav.geometry import Box
from pathnav.localise.conversation import Event
from pathnav.localise.environment import Environment
from pathnav.localise.outcome import Outcome
from pathnav.plugins import Kind, load

HINT_COUNT = 3
MOST_HINTS = 10
ALIASES = {"clip": "clip-retrieval"}


@runtime_checkable
class Agent(Protocol):
    """Anything with `run(environment)`.

    Optional class attributes:

    - `name` (str): what records call it; default: the name it was loaded by.
    - `version` (str): enters the episode's key; raise it when the agent's answers change; default `"0"`.
    - `settings` (mapping, JSON, a property of the class): all else that can change an answer; enters the episode's key
      in place of the options, for options such as a path or a device, of which only the content matters.
    - `unbudgeted` (bool): it needs `environment.survey`; its rows are marked; default False. May depend on its options.
    - `uses_model` (bool): it needs `environment.chat`; default False.
    - `views` (ViewSettings): how images are shown to it; default: guides on, 1,024 px.
    """

    def run(self, environment: Environment) -> Outcome | None:
        """Look with the environment, then report once.

        Returns: None, where the report (or its absence) says it all; otherwise the outcome, one of the agent's own.
        """


class Oracle:
    """Report the target. Only the runner hands it over, and only to this very class."""

    name = "oracle"
    version = "1"
    unbudgeted = True

    def __init__(self) -> None:
        self._target: Target | None = None

    def accept_target(self, target: Target) -> None:
        """Take the target of the next episode."""
        self._target = target

    def run(self, environment: Environment) -> None:
        """Report the target's box.

        Raises:
            PluginError: If no target was handed over.
        """
        if self._target is None:
            raise PluginError("the oracle needs a query with a known target", remedy="give --tree and --query")
        environment.report(self._target.box, conclusion="the annotated box", confidence=1.0)


@dataclass(frozen=True, slots=True)
class Proposal:
    """A window in level-0 pixels, inside the search region, and how well it fits: the higher the better."""

    box: Box
    score: float


@runtime_checkable
class Proposer(Protocol):
    """An agent that can also propose windows."""

    def propose(self, environment: Environment, count: int) -> Sequence[Proposal]:
        """Return at most `count` windows, best first; may survey the region, looks at no ROI and reports nothing."""


class Hints:
    """Who proposes windows to a model, and how many.

    Args:
        chosen: An agent's name or `file.py:Class`, or `{name: options}`; `clip` stands for `clip-retrieval`.
        count: How many windows, 1 to 10.

    Raises:
        ConfigError: If it is none of these, or the agent proposes nothing.
        PluginError: If there is no such agent, or it does not take the options.
    """

    def __init__(self, chosen: str | Mapping[str, Any], count: int = HINT_COUNT) -> None:
        if isinstance(count, bool) or not isinstance(count, int) or not 1 <= count <= MOST_HINTS:
            raise ConfigError(f"hint_count must be a whole number from 1 to {MOST_HINTS}, got {count!r}")
        name, options = _parts(chosen)
        plugin = load(Kind.AGENT, ALIASES.get(name, name))
        self.name, self.count = plugin.name, count
        self._proposer = plugin.create(options)
        if not isinstance(self._proposer, Proposer):
            raise ConfigError(f"agent {plugin.name!r} gives no hints: it has no method propose(environment, count)")
        self._options, self._code, self._version = options, plugin.digest, str(getattr(plugin.cls, "version", "0"))

    @property
    def settings(self) -> dict[str, Any]:
        """All that can change the hints, as JSON: what the agent declares of itself, else its options."""
        own = dict(getattr(self._proposer, "settings", self._options))
        return {"agent": self.name, "version": self._version, "code": self._code, "settings": own, "count": self.count}

    def given(self, environment: Environment) -> list[Proposal]:
        """Return the hints of an episode: those on record, else fresh ones, which are then on record."""
        known = environment.recorder.recall("hints")
        if known is not None:
            return recalled(environment, known)
        found = list(self._proposer.propose(environment, self.count))[: self.count]
        environment.recorder.event(
            "hints",
            "hints",
            agent=self.name,
            hints=[{"box": one.box.as_list(), "score": one.score} for one in found],
            surveyed=[box.as_list() for box in environment.survey.boxes],
        )
        return found


def recalled(environment: Environment, event: Event) -> list[Proposal]:
    """Return the hints of an event on record; what was surveyed for them counts as surveyed."""
    environment.survey.boxes.extend(Box.from_list(box) for box in event["surveyed"])
    return [Proposal(Box.from_list(one["box"]), one["score"]) for one in event["hints"]]


def _parts(chosen: Any) -> tuple[str, dict[str, Any]]:
    """Return the name and the options of an agent."""
    if isinstance(chosen, str) and chosen:
        return chosen, {}
    if isinstance(chosen, Mapping) and len(chosen) == 1:
        ((name, options),) = chosen.items()
        if isinstance(name, str) and isinstance(options, Mapping | None):
            return name, dict(options or {})
    raise ConfigError(f"hints must be an agent's name or {{name: options}}, got {chosen!r}")
