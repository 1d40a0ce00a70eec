"""The contract of a Mode A agent."""

from typing import Protocol, runtime_checkable

from pathnav.localise.environment import Environment
from pathnav.localise.outcome import Outcome


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
