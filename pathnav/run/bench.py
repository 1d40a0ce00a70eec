"""Runs one episode or search after the other, for several threads, and keeps count."""

import threading
import time
from collections.abc import Sequence
from dataclasses import replace

from pathnav.errors import RunStopped
from pathnav.localise.outcome import Outcome
from pathnav.run.calls import Calls
from pathnav.run.endpoint import ChatClients
from pathnav.run.episode import Attempt, run_episode
from pathnav.run.exploration import Search
from pathnav.run.exploration_result import lost
from pathnav.run.explorer import kept_exploration, run_search
from pathnav.run.folder import RESULT_FILE, RunFolder
from pathnav.run.open_slides import OpenSlides
from pathnav.run.progress import OnProgress, Progress
from pathnav.run.queue import Held
from pathnav.run.record import JsonObject, write_json_atomic
from pathnav.run.shared_trees import SharedTrees
from pathnav.run.stopped import stopped_by
from pathnav.run.unit import chosen_model, due_keys, source_of


class Bench:
    """Where units are run; threads may share it.

    Args:
        folder: An open run folder.
        slides: The run's slides.
        clients: The run's endpoints.
        on_progress: Told after each unit, by one thread at a time.
        progress: How far the run is when it begins.
    """

    def __init__(
        self,
        folder: RunFolder,
        slides: OpenSlides,
        clients: ChatClients,
        on_progress: OnProgress,
        progress: Progress,
    ) -> None:
        self.folder, self.slides, self.clients = folder, slides, clients
        self.on_progress, self.progress = on_progress, progress
        self.episode_minutes: float | None = None
        self._trees = SharedTrees(slides)
        self._started = time.monotonic()
        self._lock = threading.Lock()

    def run(self, held: Held) -> None:
        """Run a unit to its end.

        Raises:
            EndpointUnreachable: If the endpoint is out of reach and has never answered.
            KeyboardInterrupt: After the unit was recorded as interrupted.
            RecordError: If the record cannot be written.
        """
        with self.slides.kept(source_of(held.unit)):
            results = self._search(held, held.unit) if isinstance(held.unit, Search) else [self._episode(held)]
        with self._lock:
            for result in results:
                self._advance(result)
            self.on_progress(self.progress)

    def tell(self, **changes: object) -> None:
        """Change what is known of the run."""
        with self._lock:
            self.progress = replace(self.progress, **changes)  # type: ignore[arg-type]  # fields of Progress

    def _episode(self, held: Held) -> JsonObject:
        """Run an episode."""
        attempt = Attempt(self.episode_minutes, lambda: self._is_ours(held))
        held.abandon = lambda: attempt.abandon()  # which the episode sets once it has begun
        chat = self.clients.get(chosen_model(held.unit))
        return run_episode(held.unit, self.folder, self.slides, chat, attempt=attempt)  # type: ignore[arg-type]

    def _search(self, held: Held, search: Search) -> Sequence[JsonObject]:
        """Run a search and return the results that it made now."""
        before = [key for key in search.keys if kept_exploration(self.folder, key) is not None]
        held.abandon = lambda: self._abandon(search)

        def on_tiles(magnification: float, done: int, total: int) -> None:
            told = f"{search.scorer.name}, {magnification:g}x: {done} of {total} tiles"
            with self._lock:
                self.on_progress(replace(self.progress, tiles=told, seconds=time.monotonic() - self._started))

        def check() -> None:
            if any(lease.lost.is_set() for lease in held.leases):
                raise RunStopped("another process has taken this search over")

        chat, calls = self.clients.get(chosen_model(search), search.scorer.concurrency), Calls()
        try:
            found = run_search(search, self.folder, self._trees, chat, on_tiles=on_tiles, check=check, calls=calls)
        except KeyboardInterrupt:
            self._count(calls)
            self.on_progress(self.progress)
            raise
        self._count(calls)
        return [result for result in found.results if result["key"] not in before]

    def _count(self, calls: Calls) -> None:
        """Add the requests of a search."""
        with self._lock:
            self.progress = replace(self.progress, calls_now=self.progress.calls_now + calls.total)

    def _abandon(self, search: Search) -> None:
        """Record a search as interrupted; its scores so far are in the store."""
        for key in due_keys(search, self.folder):
            schedule = next(one for one in search.schedules if search.key(one) == key)
            result = lost(search, schedule, "interrupted", stopped_by())
            seconds = round(time.monotonic() - self._started, 3)
            write_json_atomic(self.folder.make_episode(key) / RESULT_FILE, {**result, "seconds": seconds})

    def _is_ours(self, held: Held) -> bool:
        """Return whether all leases of a unit still stand."""
        return all(self.folder.leases.holds(lease) for lease in held.leases)

    def _advance(self, result: JsonObject) -> None:
        """Count one more result."""
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
