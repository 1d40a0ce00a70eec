"""Run a plan: keep what is finished, run the rest, say how far it is."""

import contextlib
import logging
import os
from collections.abc import Mapping, Sequence
from typing import Any

from pathnav.errors import ConfigError, EndpointUnreachable, PluginError
from pathnav.model import refuse_tracing
from pathnav.model.guards import Guard
from pathnav.run.bench import Bench
from pathnav.run.crew import Crew
from pathnav.run.endpoint import ChatClients
from pathnav.run.exploration import Search
from pathnav.run.folder import RunFolder
from pathnav.run.manner import Manner
from pathnav.run.open_slides import OpenSlides
from pathnav.run.progress import OnProgress, Progress
from pathnav.run.queue import Held, Queue
from pathnav.run.record import LogInUse
from pathnav.run.unit import Unit, asks_model, chosen_model, due_keys, size, units_of

__all__ = ["Manner", "OnProgress", "Progress", "Unit", "chosen_model", "run_plan"]

logger = logging.getLogger(__name__)


def run_plan(
    plan: Sequence[Unit],
    folder: RunFolder,
    description: Mapping[str, Any],
    slides: OpenSlides,
    on_progress: OnProgress = lambda progress: None,
    *,
    manner: Manner | None = None,
) -> Progress:
    """Open a run folder and run every episode and search of a plan that has no result of its own yet.

    Finished ones are kept; those lost to infrastructure and interrupted ones are run again. What another process is
    running in the same folder is left to it.

    Args:
        plan: The episodes and searches; those that ask a model go first, so that an endpoint out of reach ends the
            run before anything else was done.
        folder: Where they are recorded.
        description: What `run.json` says, from `describe_run`.
        slides: The run's slides.
        on_progress: Is told before the first episode, after each, and while tiles are scored; by one thread at a time.
        manner: How many at a time, how fast and how far; default: one after the other, to the end.

    Returns: How far the run came: to its end, or to where a guard or an endpoint that is down stopped it.

    Raises:
        ConfigError: If a tracing variable of LangSmith is set, the folder is not ours, or, without workers, another
            process is running the same episode; of a search both share the tiles.
        EndpointUnreachable: If the first question to the endpoint does not reach it; what this run made is removed.
        KeyboardInterrupt: After Ctrl-C, once the episodes that were running have ended or were recorded as interrupted.
        RecordError: If the record cannot be written.
    """
    refuse_tracing(os.environ)
    manner = manner or Manner()
    with contextlib.closing(folder):
        folder.open(description)
        guard = Guard(manner.limits, manner.pricing)
        with ChatClients(manner.rates, guard) as clients:
            return _Run(plan, folder, manner, clients, guard).to_the_end(slides, on_progress)


class _Run:
    """A run of a plan."""

    def __init__(
        self, plan: Sequence[Unit], folder: RunFolder, manner: Manner, clients: ChatClients, guard: Guard
    ) -> None:
        self.folder, self.manner, self.clients, self.guard = folder, manner, clients, guard
        left = [(unit, count) for unit in plan if (count := len(due_keys(unit, folder)))]
        due = sorted((unit for unit, _ in left), key=lambda unit: not asks_model(unit))
        self.first_model = next((chosen_model(unit) for unit in due if asks_model(unit)), None)
        name = self.first_model.model if self.first_model else None
        planned = sum(map(size, plan))
        self.begin = Progress(planned, planned - sum(count for _, count in left), model=name, units=units_of(plan))
        self.queue = Queue(due, folder, lambda: clients.has_answered(self.first_model), self._is_over)
        self.crew: Crew | None = None
        self._has_left = False

    def to_the_end(self, slides: OpenSlides, on_progress: OnProgress) -> Progress:
        """Run what is due."""
        bench = Bench(self.folder, slides, self.clients, on_progress, self.begin)
        bench.episode_minutes = self.manner.episode_minutes
        on_progress(bench.progress)
        try:
            self._work(bench)
            if self.manner.workers is None:
                self._share(bench)
        except (EndpointUnreachable, PluginError):
            if not bench.progress.done:
                self.folder.undo()
            raise
        stopped = self.guard.reached or self.clients.stopped
        elsewhere = self.queue.elsewhere
        kept = bench.progress.kept + self.queue.kept
        bench.tell(kept=kept, elsewhere=elsewhere, stopped=None if stopped is None else str(stopped))
        if elsewhere and self.manner.workers is None:
            raise ConfigError(
                f"the output folder {self.folder.path} is in use by another run, which asks the same; wait for it, "
                "or name another --out"
            )
        return bench.progress

    def _work(self, bench: Bench) -> None:
        """Run units until none is left, here or in threads."""

        def run(held: Held) -> None:
            try:
                bench.run(held)
            except EndpointUnreachable as error:
                self.clients.stop(error)
                raise
            except LogInUse as error:
                if self.manner.workers is None:
                    raise
                self._leave(held, error)
                return
            self.queue.done(held)

        if self.manner.workers is None:
            while (held := self.queue.next()) is not None:
                run(held)
            return
        self.crew = Crew(self.queue, run, self.clients.stop)
        self.crew.work(self.manner.workers, self.manner.on_draining)

    def _share(self, bench: Bench) -> None:
        """Take part in a search that another process asked for as well: what one of them is scoring the other leaves.

        An episode of Mode A is one process's alone.
        """
        for unit in self.queue.with_others:
            if isinstance(unit, Search) and not self._is_over():
                logger.warning("another process asks the same of %s: they share its tiles", self.folder.path)
                bench.run(Held(unit, []))

    def _leave(self, held: Held, error: LogInUse) -> None:
        """Leave an episode to a process that has lost its lease, but not its hold on the record."""
        level = logging.DEBUG if self._has_left else logging.WARNING
        self._has_left = True
        logger.log(level, "%s: left to it for now; the rest goes on", error)
        self.queue.leave(held)

    def _is_over(self) -> bool:
        """Return whether nothing more is to be begun."""
        is_stopped = self.guard.reached is not None or self.clients.stopped is not None
        return is_stopped or (self.crew is not None and self.crew.is_over)
