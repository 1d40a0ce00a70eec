"""The list of episodes: every case with every agent, as often as asked."""

import dataclasses
import functools
import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pathnav.errors import ConfigError
from pathnav.localise.agent import Oracle
from pathnav.model.prices import Prices, shipped_prices
from pathnav.run.agent_choice import AgentChoice
from pathnav.run.case import Case
from pathnav.run.key import hashed

if TYPE_CHECKING:
    from pathnav.model import ChatSettings


@dataclass(frozen=True)
class Episode:
    """One case with one agent.

    Args:
        case: What is asked.
        agent: Who is asked.
        seed: Seeds the agent's random numbers together with the query, and is sent to servers that take one.
        repeat: Number of the repetition, from 0; changes the seed, so that repetitions differ where chance has a part.
        prices: What tokens cost; changes no answer, so it is not in the key.

    Raises:
        ConfigError: If the seed is negative, or the oracle is asked what nobody knows.
    """

    case: Case
    agent: AgentChoice
    seed: int = 0
    repeat: int = 0
    prices: Prices = field(default_factory=shipped_prices, compare=False, repr=False)

    def __post_init__(self) -> None:
        if self.seed < 0:
            raise ConfigError(f"the seed must be a whole number of 0 or more, got {self.seed}")
        if self.agent.plugin.cls is Oracle and self.case.target is None:
            raise ConfigError("the oracle needs a query whose target is known", remedy="give --tree and --query")

    @property
    def own_seed(self) -> int:
        """The seed of this very repetition: the run's own for the first, else 31 bits of a hash of both numbers.

        Servers take whole numbers below 2**31. A sum would make the second repetition of seed 7 the first of seed 8.
        """
        if self.repeat == 0:
            return self.seed
        digest = hashlib.sha256(f"seed {self.seed}, repeat {self.repeat}".encode()).digest()
        return int.from_bytes(digest[:4], "big") >> 1

    @property
    def chat_settings(self) -> "ChatSettings | None":
        """The endpoint with the seed that is sent: the model's own where it has one, else the episode's."""
        model = self.agent.model
        if model is None or model.seed is not None:
            return model
        return dataclasses.replace(model, seed=self.own_seed)

    @functools.cached_property
    def key(self) -> str:
        """The episode's name in a run folder: a hash of all that can change its result, and of nothing else."""
        return hashed(
            {**self.case.key_fields(), **self.agent.key_fields, "seed": self.seed, "repeat": self.repeat},
        )


def episodes(
    cases: Iterable[Case],
    agents: Iterable[AgentChoice],
    *,
    seed: int = 0,
    repeats: int = 1,
    prices: Prices | None = None,
) -> list[Episode]:
    """Return the episodes of a run in the order in which they run.

    Agents that ask a model come first: an endpoint that cannot be reached then ends the run before anything else was
    done. Otherwise case by case, so that a slide is opened once. What is the same question to the same agent, as from
    two copies of one slide, is asked once.
    """
    chosen = list(agents)
    known = prices or shipped_prices()
    planned = (
        Episode(case, agent, seed, repeat, known) for case in cases for agent in chosen for repeat in range(repeats)
    )
    once: dict[str, Episode] = {}
    for episode in planned:
        once.setdefault(episode.key, episode)
    return sorted(once.values(), key=lambda episode: episode.agent.model is None)
