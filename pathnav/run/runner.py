"""Run a plan: keep what is finished, run the rest, say how far it is."""

import contextlib
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pathnav.errors import EndpointUnreachable
from pathnav.localise.outcome import Outcome
from pathnav.model import refuse_tracing
from pathnav.run.endpoint import ChatClients
from pathnav.run.episode import kept_result, run_episode
from pathnav.run.folder import RunFolder
from pathnav.run.open_slides import OpenSlides
from pathnav.run.plan import Episode
from pathnav.run.record import JsonObject


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a run is.

    Args:
        planned: Episodes in all.
        kept: Episodes that were finished before this run began.
        done: Episodes that this run has brought to an end, failures included.
        failed: Those of them that ended in `infra_error`.
        rois: ROIs looked at in this run.
        seconds: Since this run began.
        model: Name of the first model that will be asked, None where none is.
        latest: Result of the latest episode, None before the first.
    """

    planned: int
    kept: int
    done: int = 0
    failed: int = 0
    rois: int = 0
    seconds: float = 0.0
    model: str | None = None
    latest: JsonObject | None = None

    @property
    def left(self) -> int:
        """Episodes still to run."""
        return self.planned - self.kept - self.done

    @property
    def seconds_left(self) -> float | None:
        """Expected seconds to the end, at the pace so far; None before the first episode."""
        return self.seconds / self.done * self.left if self.done else None


OnProgress = Callable[[Progress], None]


def run_plan(
    plan: Sequence[Episode],
    folder: RunFolder,
    description: Mapping[str, Any],
    slides: OpenSlides,
    on_progress: OnProgress = lambda progress: None,
) -> Progress:
    """Open a run folder and run every episode of a plan that has no result of its own yet.

    Finished episodes are kept; those lost to infrastructure and interrupted ones are run again.

    Args:
        plan: The episodes in their order.
        folder: Where they are recorded.
        description: What `run.json` says, from `describe_run`.
        slides: The run's slides.
        on_progress: Is told before the first episode and after each.

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
        due = [episode for episode in plan if kept_result(folder, episode.key) is None]
        progress = Progress(planned=len(plan), kept=len(plan) - len(due), model=_first_model(due))
        on_progress(progress)
        for result, seconds in _results(due, folder, slides):
            progress = _advanced(progress, result, seconds)
            on_progress(progress)
    return progress


def _results(due: Sequence[Episode], folder: RunFolder, slides: OpenSlides) -> Iterator[tuple[JsonObject, float]]:
    """Run one episode after the other; give each one's result and the seconds since the first began."""
    answered: set[str] = set()
    started = time.monotonic()
    with ChatClients() as clients:
        for episode in due:
            settings = episode.chat_settings
            address = settings.endpoint if settings else ""
            try:
                result = run_episode(episode, folder, slides, clients.get(settings), answered=address in answered)
            except EndpointUnreachable:
                folder.undo()
                raise
            answered.add(address)
            yield result, time.monotonic() - started


def _first_model(due: Sequence[Episode]) -> str | None:
    return next((episode.agent.model.model for episode in due if episode.agent.model), None)


def _advanced(progress: Progress, result: JsonObject, seconds: float) -> Progress:
    """Return the progress after one more episode."""
    return replace(
        progress,
        done=progress.done + 1,
        failed=progress.failed + (result["outcome"] == Outcome.INFRA_ERROR),
        rois=progress.rois + result["rois_used"],
        seconds=seconds,
        latest=result,
    )
