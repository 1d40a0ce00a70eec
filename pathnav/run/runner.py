"""Run a plan: keep what is finished, run the rest, say how far it is."""

import contextlib
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pathnav.errors import EndpointUnreachable
from pathnav.localise.outcome import Outcome
from pathnav.model import refuse_tracing
from pathnav.run.endpoint import CONNECTIONS, ChatClients
from pathnav.run.episode import kept_result, run_episode
from pathnav.run.exploration import Search
from pathnav.run.explorer import Trees, kept_exploration, run_search
from pathnav.run.folder import RunFolder
from pathnav.run.open_slides import OpenSlides
from pathnav.run.plan import Episode
from pathnav.run.record import JsonObject

if TYPE_CHECKING:
    from pathnav.model import ChatClient, ChatSettings


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a run is.

    Args:
        planned: Episodes in all; a search is one for each of its schedules.
        kept: Episodes that were finished before this run began.
        done: Episodes that this run has brought to an end, failures included.
        failed: Those of them that ended in `infra_error`.
        rois: ROIs looked at in this run.
        seconds: Since this run began.
        model: Name of the first model that will be asked, None where none is.
        latest: Result of the latest episode, None before the first.
        calls_now: Requests that this run's searches made.
        tiles: While tiles are scored, which and how many, for the reader; None between.
    """

    planned: int
    kept: int
    done: int = 0
    failed: int = 0
    rois: int = 0
    seconds: float = 0.0
    model: str | None = None
    latest: JsonObject | None = None
    calls_now: int = 0
    tiles: str | None = None

    @property
    def left(self) -> int:
        """Episodes still to run."""
        return self.planned - self.kept - self.done

    @property
    def seconds_left(self) -> float | None:
        """Expected seconds to the end, at the pace so far; None before the first episode."""
        return self.seconds / self.done * self.left if self.done else None


OnProgress = Callable[[Progress], None]
Unit = Episode | Search


def run_plan(
    plan: Sequence[Unit],
    folder: RunFolder,
    description: Mapping[str, Any],
    slides: OpenSlides,
    on_progress: OnProgress = lambda progress: None,
) -> Progress:
    """Open a run folder and run every episode and search of a plan that has no result of its own yet.

    Finished ones are kept; those lost to infrastructure and interrupted ones are run again.

    Args:
        plan: The episodes and searches; those that ask a model go first, so that an endpoint out of reach ends the
            run before anything else was done.
        folder: Where they are recorded.
        description: What `run.json` says, from `describe_run`.
        slides: The run's slides.
        on_progress: Is told before the first episode, after each, and while tiles are scored.

    Returns: How far the run came: to its end.

    Raises:
        ConfigError: If a tracing variable of LangSmith is set, the folder is not ours, or another run uses it.
        EndpointUnreachable: If the first question to the endpoint does not reach it; what this run made is removed.
        KeyboardInterrupt: After the episode that was running was recorded as interrupted.
        RecordError: If the record cannot be written.
    """
    refuse_tracing(os.environ)
    with contextlib.closing(folder):
        folder.open(description)
        due = sorted((unit for unit in plan if _left(unit, folder)), key=lambda unit: chosen_model(unit) is None)
        planned, left = sum(map(_size, plan)), sum(_left(unit, folder) for unit in due)
        bench = _Bench(folder, slides, on_progress, Progress(planned, planned - left, model=_first_model(due)))
        on_progress(bench.progress)
        with ChatClients() as clients:
            for unit in due:
                bench.run(unit, clients)
    return bench.progress


def chosen_model(unit: Unit) -> "ChatSettings | None":
    """Return the endpoint that an episode or a search asks, with the seed that is sent; None where it asks none."""
    return unit.chat_settings if isinstance(unit, Episode) else unit.scorer.model


def _size(unit: Unit) -> int:
    return 1 if isinstance(unit, Episode) else len(unit.schedules)


def _left(unit: Unit, folder: RunFolder) -> int:
    """Return how many results of an episode or a search are still to come."""
    if isinstance(unit, Episode):
        return int(kept_result(folder, unit.key) is None)
    return sum(kept_exploration(folder, key) is None for key in unit.keys)


def _first_model(due: Sequence[Unit]) -> str | None:
    return next((model.model for unit in due if (model := chosen_model(unit))), None)


class _Bench:
    """Runs one unit after the other and keeps count."""

    def __init__(self, folder: RunFolder, slides: OpenSlides, on_progress: OnProgress, progress: Progress) -> None:
        self.folder, self.slides, self.on_progress, self.progress = folder, slides, on_progress, progress
        self._trees = Trees(slides)
        self._answered: set[str] = set()
        self._started = time.monotonic()

    def run(self, unit: Unit, clients: ChatClients) -> None:
        """Run a unit to its end."""
        settings = chosen_model(unit)
        address = settings.endpoint if settings else ""
        connections = unit.scorer.concurrency if isinstance(unit, Search) else CONNECTIONS
        answered = address in self._answered
        try:
            chat = clients.get(settings, connections)
            if isinstance(unit, Episode):
                results: Sequence[JsonObject] = [run_episode(unit, self.folder, self.slides, chat, answered=answered)]
            else:
                results = self._search(unit, chat, answered)
        except EndpointUnreachable:
            self.folder.undo()
            raise
        self._answered.add(address)
        for result in results:
            self._advance(result)
        self.on_progress(self.progress)

    def _search(self, search: Search, chat: "ChatClient | None", answered: bool) -> Sequence[JsonObject]:
        """Run a search and return the results that it made now."""
        before = [key for key in search.keys if kept_exploration(self.folder, key) is not None]

        def on_tiles(magnification: float, done: int, total: int) -> None:
            told = f"{search.scorer.name}, {magnification:g}x: {done} of {total} tiles"
            self.on_progress(replace(self.progress, tiles=told, seconds=time.monotonic() - self._started))

        found = run_search(search, self.folder, self._trees, chat, answered=answered, on_tiles=on_tiles)
        self.progress = replace(self.progress, calls_now=self.progress.calls_now + found.calls_now)
        return [result for result in found.results if result["key"] not in before]

    def _advance(self, result: JsonObject) -> None:
        """Count one more result."""
        progress = self.progress
        self.progress = replace(
            progress,
            done=progress.done + 1,
            failed=progress.failed + (result["outcome"] == Outcome.INFRA_ERROR),
            rois=progress.rois + result.get("rois_used", 0),
            seconds=time.monotonic() - self._started,
            latest=result,
        )
