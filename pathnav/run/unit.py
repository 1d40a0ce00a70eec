"""What a run is made of: episodes of Mode A and searches of Mode B."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from pathnav.run.case import SlideSource
from pathnav.run.episode import kept_result
from pathnav.run.exploration import Search
from pathnav.run.explorer import kept_exploration
from pathnav.run.folder import RunFolder
from pathnav.run.plan import Episode

if TYPE_CHECKING:
    from pathnav.model import ChatSettings

Unit = Episode | Search


def chosen_model(unit: Unit) -> "ChatSettings | None":
    """Return the endpoint that an episode or a search asks, with the seed that is sent; None where it asks none."""
    return unit.chat_settings if isinstance(unit, Episode) else unit.scorer.model


def asks_model(unit: Unit) -> bool:
    """Return whether an episode or a search asks an endpoint."""
    return (unit.agent.model if isinstance(unit, Episode) else unit.scorer.model) is not None


def source_of(unit: Unit) -> SlideSource:
    """Return how the slide of an episode or a search is opened."""
    return unit.case.source if isinstance(unit, Episode) else unit.source


def size(unit: Unit) -> int:
    """Return how many results an episode or a search makes."""
    return 1 if isinstance(unit, Episode) else len(unit.schedules)


def due_keys(unit: Unit, folder: RunFolder) -> list[str]:
    """Return the keys of the results of an episode or a search that are still to come.

    Raises:
        RecordError: If a file is damaged.
    """
    if isinstance(unit, Episode):
        return [unit.key] if kept_result(folder, unit.key) is None else []
    return [key for key in unit.keys if kept_exploration(folder, key) is None]


def units_of(plan: Iterable[Unit]) -> str:
    """Return what the results of a plan are called: `episodes`, `searches`, or both."""
    kinds = {isinstance(unit, Search) for unit in plan}
    return "episodes and searches" if len(kinds) > 1 else "searches" if kinds == {True} else "episodes"
