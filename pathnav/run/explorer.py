"""Run one search and write down how it ended, whatever happens; a search that was stopped goes on from its scores."""

import contextlib
import logging
import threading
import time
import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pathnav.cohort.protocol import MAGNIFICATIONS
from pathnav.errors import EndpointUnreachable, PluginError, RecordError, RunStopped, SlideError
from pathnav.localise.outcome import Outcome
from pathnav.model.terms import Terms
from pathnav.parallel import caught
from pathnav.records import JsonObject, locked, redacted, write_json_atomic
from pathnav.run.case import SlideSource
from pathnav.run.exploration import Search
from pathnav.run.exploration_result import Found, details_of, finished, lost
from pathnav.run.folder import EXPLORATION_FORMAT, RESULT_FILE, RunFolder
from pathnav.run.job import Attempt, Workplace, sentence
from pathnav.run.stopped import stopped_by

if TYPE_CHECKING:
    from pathnav.explore import Schedule, ScoreStore, TileTree
    from pathnav.model import ChatSettings

logger = logging.getLogger(__name__)

MOST_TREES = 8
"""Searches of one slide come one after the other; a tree of 163,000 tiles takes 3 MB."""


def kept_exploration(folder: RunFolder, key: str) -> JsonObject | None:
    """Return the result of a search that needs no further run.

    Raises:
        RecordError: If the file is damaged.
    """
    result = folder.result(key, EXPLORATION_FORMAT)
    return result if result is not None and result["outcome"] == "finished" else None


@dataclass(frozen=True)
class SearchJob:
    """A search as the runner runs it; schedules that are finished already are kept as they are.

    The scores of a slide that was stopped half way are in the folder's store: they are not asked for again. Whatever
    goes wrong is no answer of the scorer: the outcome is `infra_error`, and the next run goes on. So it is where the
    scorer breaks its contract: no score of that batch is stored, the reason names the scorer and its file; where it is
    a user's, all that was asked for, and nothing is scored yet, the PluginError is raised instead.

    Args:
        search: What to run.
    """

    search: Search
    units = "searches"

    @property
    def source(self) -> SlideSource:
        """How its slide is opened."""
        return self.search.source

    @property
    def model(self) -> "ChatSettings | None":
        """The endpoint that its scorer asks."""
        return self.search.scorer.model

    @property
    def keys(self) -> Sequence[str]:
        """The names of its results in a run folder, one a schedule."""
        return self.search.keys

    def due(self, folder: RunFolder) -> Sequence[str]:
        """Return the keys of the schedules that are not finished."""
        return [key for key in self.keys if kept_exploration(folder, key) is None]

    def run(self, at: Workplace, attempt: Attempt) -> Sequence[JsonObject]:
        """Score what is not scored yet, write a result for each schedule, and return those."""
        scores = at.folder.scores(self.search.scores_name)
        mine = at.sharing.setdefault(self.search.scores_name, threading.Lock())
        with mine, locked(scores.with_suffix(".lock")):
            keys = set(self.due(at.folder))
            due = [schedule for schedule in self.search.schedules if self.search.key(schedule) in keys]
            return _Run(self.search, due, at, attempt).to_the_end(scores) if due else ()


class _Run:
    """One attempt at a search."""

    def __init__(self, search: Search, due: "Sequence[Schedule]", at: Workplace, attempt: Attempt) -> None:
        self.search, self.due, self.at, self.attempt = search, due, at, attempt
        self.secret = search.scorer.secret
        self.started = time.monotonic()
        self._lock = threading.Lock()
        self._store: ScoreStore | None = None
        self._failed_calls: int | None = None
        self._embeddings: JsonObject | None = None
        self._answered = self._failed = 0
        self._scored = False
        self._latest: tuple[float, int] | None = None

    def to_the_end(self, scores: Path) -> Sequence[JsonObject]:
        """Run, write the results, and return them."""
        self.attempt.abandon = self.abandon
        ended = caught(lambda: self._drive(scores))
        self.attempt.abandon = _nothing
        self.at.on_calls(self._answered + self._failed)
        with self.attempt.ending:
            if self.attempt.has_ended:  # another thread has recorded it as interrupted
                return ()
            if isinstance(ended, EndpointUnreachable) and not self.at.clients.has_answered(self.search.scorer.model):
                raise ended
            if isinstance(ended, PluginError) and self._is_unusable:
                raise PluginError(redacted(str(ended), self.secret), remedy=ended.remedy) from ended
            results = self._write(self._lost(ended) if isinstance(ended, BaseException) else ended)
        if isinstance(ended, KeyboardInterrupt):
            raise ended
        return results

    def abandon(self) -> None:
        """Record the search as interrupted, from another thread; its scores so far are in the store."""
        self.at.on_calls(self._answered + self._failed)
        with self.attempt.ending:
            if not self.attempt.has_ended:
                self._write(self._lost(RunStopped(self.at.stop.reason or stopped_by())))

    @property
    def _is_unusable(self) -> bool:
        """Whether a broken contract of the scorer leaves nothing to record."""
        return self.search.is_alone and not self.search.scorer.is_pathnavs and not self._scored

    def _drive(self, scores: Path) -> list[JsonObject]:
        """Score what is not scored yet and return the results."""
        from pathnav.explore import ScoreStore, TopK, explore
        from pathnav.explore.hit_rates import positives_of

        search, tree = self.search, self._tree()
        overlaps = search.truth.overlaps(tree) if search.truth else None
        positives = [positives_of(level) for level in overlaps] if overlaps else None
        chat = self.at.clients.get(search.scorer.model, search.scorer.concurrency)
        asked = chat.under(Terms(check=self.at.stop.check, on_failed=self._note_failed)) if chat is not None else None
        scorer = search.scorer.create(asked, self.at.folder.embeddings(search.slide.reader, search.slide.mpp_um))
        if search.scorer.is_oracle and overlaps is not None:
            scorer.accept_truth(overlaps)  # type: ignore[attr-defined]  # the oracle's very class
        configuration = search.scorer.configured(scorer, tree.tile_px)
        with ScoreStore(scores, configuration, tree.fingerprint, secret=self.secret) as store:
            if search.scorer.model is not None:
                self._store, self._failed_calls = store, store.failed()
            policies = [TopK(schedule, search.tiles.fill_to_k) for schedule in self.due]
            found = explore(tree, scorer, policies, store=store, seed=search.seed, progress=self._tell)
            self._embeddings = getattr(scorer, "embedding_costs", None)
            results = []
            for schedule, selection in zip(self.due, found.selections, strict=True):
                details = details_of(tree, selection, store)
                whole = Found(tree, found.table, selection, schedule, positives, details, self._failed_calls)
                results.append(finished(search, whole))
            return results

    def _tree(self) -> "TileTree":
        """Return the tile tree of the slide, made once for all searches of it that run one after the other.

        Raises:
            SlideError: If the slide cannot be opened, or is no longer the one that was planned with.
        """
        from pathnav.explore import TileTree

        search, tiles = self.search, self.search.tiles
        slide = self.at.slides.get(search.source)
        if slide.fingerprint != search.slide.fingerprint:
            raise SlideError(f"{slide.path} was changed since the run was planned; run the command again")
        name, trees = (id(slide), tiles.tile_px, tiles.min_tissue), self.at.trees  # a tree keeps its slide's id taken
        while len(trees) >= MOST_TREES:
            trees.pop(next(iter(trees)), None)
        return trees.setdefault(name, TileTree(slide, tiles.tile_px, tiles.min_tissue))

    def _note_failed(self, seconds: float, sentence: str, sent: int) -> None:
        """Count a request that failed with all its tries; any thread may call it, also when all is over."""
        with self._lock, contextlib.suppress(RecordError):
            self._failed += 1
            if self._store is not None:
                self._failed_calls = self._store.add_failed()

    def _tell(self, level: int, done: int, total: int, calls: int) -> None:
        if self.search.scorer.model is None:  # a scorer that asks one is stopped where it asks: answers come meanwhile
            self.at.stop.check()
        self._answered = calls
        before, self._latest = self._latest, (level, done)
        self._scored |= before is not None and before[0] == level and before[1] < done
        magnification = MAGNIFICATIONS[level]
        self.at.on_tiles(f"{self.search.scorer.name}, {magnification:g}x: {done} of {total} tiles")

    def _lost(self, error: BaseException) -> list[JsonObject]:
        """Return the results of a search that was stopped."""
        if isinstance(error, KeyboardInterrupt | RunStopped):
            reason = stopped_by() if isinstance(error, KeyboardInterrupt) else sentence(error)
            outcome = Outcome.INTERRUPTED
        else:
            reason, outcome = sentence(error), Outcome.INFRA_ERROR
            lines = redacted("".join(traceback.format_exception(error)), self.secret)
            logger.debug("search of %s: %s", self.search.source.path, lines)
        return [lost(self.search, schedule, str(outcome), reason, self._failed_calls) for schedule in self.due]

    def _write(self, results: Sequence[JsonObject]) -> Sequence[JsonObject]:
        """Write the results and return them; `seconds` are the whole search's, whose scores all schedules share."""
        self.attempt.has_ended = True
        costs: JsonObject = {"seconds": round(time.monotonic() - self.started, 3)}
        if self._embeddings is not None:
            costs["embeddings"] = self._embeddings
        whole = [redacted({**result, **costs}, self.secret) for result in results]
        for result in whole:
            write_json_atomic(self.at.folder.make_episode(result["key"]) / RESULT_FILE, result)
        return whole


def _nothing() -> None:
    """Do what is left to do for a search that has ended."""
