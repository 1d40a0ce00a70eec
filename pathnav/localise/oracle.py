"""The control that is told the answer: it proves that the harness can score 1.0."""

from pathnav.cohort.query import Target
from pathnav.errors import PluginError
from pathnav.localise.environment import Environment


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
