"""Run a plan: keep what is finished, run the rest in threads, say how far it is, and let Ctrl-C end it well."""

import contextlib
import ctypes
import math
import os
import re
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from pathnav.errors import ConfigError, EndpointUnreachable, PluginError, RunStopped
from pathnav.localise.outcome import Outcome
from pathnav.model import refuse_tracing
from pathnav.model.gate import Rates
from pathnav.model.guards import Guard, Limits, Pricing
from pathnav.parallel import Failed, Threads
from pathnav.records import InUse, JsonObject
from pathnav.run.endpoint import ChatClients
from pathnav.run.folder import RunFolder
from pathnav.run.job import Attempt, Job, Workplace
from pathnav.run.open_slides import OpenSlides
from pathnav.run.stopped import is_terminated, stopped_by

MOST_WORKERS = 256
_CONTACT_S = 0.05  # between two looks at whether an endpoint has answered
_GRACE_S = 5.0  # after a stop: most answers under way come within it, and are paid for
_M_ARENA_MAX, _ARENAS = -8, 2  # of glibc's mallopt

Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class Shard:
    """One of several shares of a run of equal size, for schedulers that start the same command many times.

    Args:
        number: Which, from 1.
        count: Of how many.

    Raises:
        ConfigError: If there is no such share.
    """

    number: int = 1
    count: int = 1

    def __post_init__(self) -> None:
        if not 1 <= self.number <= self.count:
            raise ConfigError(f"--shard must be I/N with I from 1 to N, got {self.number}/{self.count}")

    @classmethod
    def of(cls, text: str | None) -> "Shard":
        """Return the share of a text such as `2/8`; the whole where there is none.

        Raises:
            ConfigError: If the text is no share.
        """
        if text is None:
            return cls()
        found = re.fullmatch(r"\s*(\d{1,6})\s*/\s*(\d{1,6})\s*", text)
        if found is None:
            raise ConfigError(f"--shard must be I/N, such as 2/8, got {text!r}")
        return cls(int(found[1]), int(found[2]))

    def share(self, items: Iterable[Item]) -> list[Item]:
        """Return every N-th item from the I-th on: the place in the plan decides, whatever is finished already."""
        return list(items)[self.number - 1 :: self.count]


@dataclass(frozen=True, slots=True)
class RunOptions:
    """How many jobs at a time, how fast, and how far; nothing of it changes a result.

    Args:
        workers: Jobs at a time; Ctrl-C then finishes those that run, a second one stops them. None is one at a time,
            where Ctrl-C stops at once and a job that another process runs is an error.
        shard: The share of the plan that is run.
        limits: What the run may use.
        pricing: What requests cost; needed for a limit of money.
        rates: How an endpoint may be asked; None: 8 requests at a time, or as many as a search wants.
        episode_minutes: After so many minutes a failed request of an episode is not repeated; None for never.
        on_draining: Told, at the first Ctrl-C, how many jobs are being finished.

    Raises:
        ConfigError: If a number is out of range.
    """

    workers: int | None = None
    shard: Shard = field(default_factory=Shard)
    limits: Limits = field(default_factory=Limits)
    pricing: Pricing | None = None
    rates: Rates | None = None
    episode_minutes: float | None = None
    on_draining: Callable[[int], None] = lambda running: None

    def __post_init__(self) -> None:
        if self.workers is not None and not 1 <= self.workers <= MOST_WORKERS:
            raise ConfigError(f"--workers must be a whole number from 1 to {MOST_WORKERS}, got {self.workers}")
        if self.episode_minutes is not None and not self.episode_minutes > 0:
            raise ConfigError(f"--episode-minutes must be a number above 0, got {self.episode_minutes:g}")


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a run is.

    Args:
        planned: Results in all, of this shard: one an episode, one a schedule of a search.
        kept: Results that were finished before this run began, or by other processes meanwhile.
        done: Results that this run has brought to an end, failures included.
        failed: Those of them that ended in `infra_error`.
        interrupted: Jobs that were begun and stopped; they go on next time.
        elsewhere: Results that other processes are at, at the end.
        rois: ROIs looked at in this run.
        seconds: Since this run began.
        model: Name of the first model that will be asked, None where none is.
        latest: The latest result, None before the first.
        calls_now: Requests that this run's searches made, failed ones included.
        tiles: While tiles are scored, which and how many, for the reader; None between.
        stopped: Why it ends before its end, as the beginning of a sentence: a guard, or an endpoint that is down.
        units: What is counted: episodes, searches, or both.
    """

    planned: int
    kept: int
    done: int = 0
    failed: int = 0
    interrupted: int = 0
    elsewhere: int = 0
    rois: int = 0
    seconds: float = 0.0
    model: str | None = None
    latest: JsonObject | None = None
    calls_now: int = 0
    tiles: str | None = None
    stopped: str | None = None
    units: str = "episodes"

    @property
    def left(self) -> int:
        """Results still to come."""
        return self.planned - self.kept - self.done

    @property
    def seconds_left(self) -> float | None:
        """Expected seconds to the end, at the pace so far; None before the first result."""
        return self.seconds / self.done * self.left if self.done else None


OnProgress = Callable[[Progress], None]


def run_plan(
    plan: Sequence[Job],
    folder: RunFolder,
    description: Mapping[str, Any],
    slides: OpenSlides,
    on_progress: OnProgress = lambda progress: None,
    *,
    options: RunOptions | None = None,
) -> Progress:
    """Open a run folder and run every job of a plan that has no result of its own yet.

    Finished ones are kept; those lost to infrastructure and interrupted ones are run again. What another process is
    running in the same folder is left to it.

    Args:
        plan: The jobs; those that ask a model go first.
        folder: Where they are recorded.
        description: What `run.json` says, from `describe_run`.
        slides: The run's slides.
        on_progress: Is told before the first job, after each, and while tiles are scored; by one thread at a time.
        options: How many at a time, how fast and how far; default: one after the other, to the end.

    Returns: How far the run came: to its end, or to where a guard or an endpoint that is down stopped it.

    Raises:
        ConfigError: If a tracing variable of LangSmith is set, the folder is not ours, or, without workers, another
            process is running the same job.
        EndpointUnreachable: If an endpoint that never answered cannot be used as named; the folder is left
            as it was.
        KeyboardInterrupt: After Ctrl-C, once what was running has ended or was recorded as interrupted.
        RecordError: If the record cannot be written.
    """
    refuse_tracing(os.environ)
    options = options or RunOptions()
    guard = Guard(options.limits, options.pricing)
    with ChatClients(options.rates, guard) as clients:
        return _Run(plan, folder, options, clients, guard, slides=slides, on_progress=on_progress).to_the_end(
            description
        )


class _Run:
    """A run of a plan."""

    def __init__(
        self,
        plan: Sequence[Job],
        folder: RunFolder,
        options: RunOptions,
        clients: ChatClients,
        guard: Guard,
        *,
        slides: OpenSlides,
        on_progress: OnProgress,
    ) -> None:
        self.folder, self.options, self.clients, self.guard, self.slides = folder, options, clients, guard, slides
        self.due = sorted((job for job in plan if job.due(folder)), key=lambda job: job.model is None)
        self.elsewhere: list[tuple[Job, int]] = []  # with how many results were due
        self._asking = sum(job.model is not None for job in self.due)
        self.on_progress = on_progress
        self._started, self._lock = time.monotonic(), threading.Lock()
        planned, left = sum(len(job.keys) for job in plan), sum(len(job.due(folder)) for job in self.due)
        units = sorted({job.units for job in plan})
        self.progress = Progress(planned, planned - left, units=" and ".join(units) or "episodes")
        self.at = Workplace(
            folder,
            slides,
            clients,
            episode_minutes=options.episode_minutes,
            on_tiles=lambda told: self._tell(tiles=told),
            on_calls=lambda calls: self._tell(calls=calls),
        )

    def to_the_end(self, description: Mapping[str, Any]) -> Progress:
        """Run what is due."""
        model = self.due[0].model if self.due else None
        self.progress = replace(self.progress, model=model.model if model is not None else None)
        self.folder.open(description)
        self.on_progress(self.progress)
        _share_memory()
        try:
            self._work(self.due)
        except (EndpointUnreachable, PluginError):
            self.folder.undo()  # the run turned out to be impossible before anything was learnt
            raise
        if not self._is_over():  # once more: another process may have been stopped
            again, self.elsewhere = [job for job, _ in self.elsewhere], []
            self._work(again)
        return self._ended()

    def _work(self, due: Sequence[Job]) -> None:
        """Run jobs in threads until none is left."""
        threads = Threads(self._run, map(Attempt, due), self.options.workers or 1)
        until_s, presses = math.inf, 0
        error: BaseException | None = None
        while True:
            try:
                ended = threads.next(until_s)
            except KeyboardInterrupt as pressed:
                threads.stop()
                error, presses = pressed, presses + 1
                if presses == 1 and self.options.workers is not None and not is_terminated():
                    self.options.on_draining(len(threads.under_way))
                elif until_s == math.inf:
                    until_s = self._stop(stopped_by())
                else:
                    break
                continue
            if ended is None:
                break
            if isinstance(ended[1], Failed) and error is None:
                threads.stop()
                error = ended[1].error
                is_pressed = isinstance(error, KeyboardInterrupt)
                until_s = self._stop(stopped_by() if is_pressed else "another job of the run could not be recorded")
        for attempt in threads.under_way:
            attempt.abandon()
        if error is not None:
            self.on_progress(self.progress)
            raise error

    def _stop(self, reason: str) -> float:
        """Let nothing be asked any more; return until when running jobs are waited for, on the monotonic clock."""
        if not isinstance(self.clients.stopped, EndpointUnreachable):  # nothing was learnt then, nor recorded
            self.at.stop.reason = reason
        self.clients.stop(RunStopped(reason))
        return time.monotonic() + _GRACE_S

    def _run(self, attempt: Attempt) -> None:
        """Run a job, unless the run is over or another process is at it.

        One that asks nobody waits until the endpoint has answered the others once: one that is out of reach then ends
        the run before anything was done.
        """
        while attempt.job.model is None and not self._is_over() and self._awaits_contact():
            time.sleep(_CONTACT_S)
        if self._is_over():
            return
        before = len(attempt.job.due(self.folder))
        try:
            with self.slides.kept(attempt.job.source):
                results = attempt.job.run(self.at, attempt)
        except EndpointUnreachable as error:
            self.clients.stop(error)
            raise
        except InUse as error:
            if self.options.workers is None:
                raise ConfigError(
                    f"the output folder {self.folder.path} is in use by another run, which asks the same",
                    remedy="wait for it, or name another --out",
                ) from error
            self.elsewhere.append((attempt.job, before))
            return
        finally:
            self._asking -= attempt.job.model is not None
        with self._lock:
            self.progress = replace(self.progress, kept=self.progress.kept + max(0, before - len(results)))
            for result in results:
                self._count(result)
            self.on_progress(self.progress)

    def _awaits_contact(self) -> bool:
        """Return whether jobs that ask an endpoint, which go first, still wait for its first answer."""
        return self._asking > 0 and not any(self.clients.has_answered(job.model) for job in self.due)

    def _count(self, result: JsonObject) -> None:
        progress = self.progress
        is_whole = result["outcome"] != Outcome.INTERRUPTED
        self.progress = replace(
            progress,
            done=progress.done + is_whole,
            interrupted=progress.interrupted + (not is_whole),
            failed=progress.failed + (result["outcome"] == Outcome.INFRA_ERROR),
            rois=progress.rois + result.get("rois_used", 0),
            seconds=time.monotonic() - self._started,
            latest=result,
        )

    def _tell(self, tiles: str | None = None, calls: int = 0) -> None:
        """Tell how far a search is; its requests are counted when it ends."""
        with self._lock:
            self.progress = replace(self.progress, calls_now=self.progress.calls_now + calls)
            if tiles is not None:
                self.on_progress(replace(self.progress, tiles=tiles, seconds=time.monotonic() - self._started))

    def _is_over(self) -> bool:
        """Return whether nothing more is to be begun."""
        return self.guard.reached is not None or self.clients.stopped is not None

    def _ended(self) -> Progress:
        """Return how far the run came."""
        stopped = self.guard.reached or self.clients.stopped
        elsewhere = sum(len(job.due(self.folder)) for job, _ in self.elsewhere)
        kept = self.progress.kept + sum(before for _, before in self.elsewhere) - elsewhere
        told = None if stopped is None else str(stopped)
        self.progress = replace(self.progress, kept=kept, elsewhere=elsewhere, stopped=told)
        return self.progress


def _share_memory() -> None:
    """Let threads share what others have freed, where the allocator is glibc's.

    With an arena for each of 16 threads a run of 300 episodes grew to 540 MB, with two it stayed at 420 MB.
    """
    with contextlib.suppress(OSError, AttributeError, TypeError):  # another C library, or no such function in it
        ctypes.CDLL(None).mallopt(_M_ARENA_MAX, _ARENAS)
