"""Run one search and write down how it ended, whatever happens; a search that was stopped goes on from its scores."""

import contextlib
import functools
import logging
import threading
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pathnav.errors import EndpointUnreachable, PluginError, RecordError, RunStopped, SlideError
from pathnav.model.terms import Terms
from pathnav.run.calls import Calls
from pathnav.run.caught import Failed, caught
from pathnav.run.ending import sentence
from pathnav.run.exploration import Search
from pathnav.run.exploration_result import Found, details_of, finished, lost
from pathnav.run.folder import EXPLORATION_FORMAT, RESULT_FILE, RunFolder
from pathnav.run.open_slides import OpenSlides
from pathnav.run.pixels_of import named_by_pixels
from pathnav.run.record import JsonObject, write_json_atomic
from pathnav.run.redact import redacted
from pathnav.run.stopped import stopped_by

if TYPE_CHECKING:
    from pathnav.explore import Exploration, ScorerConfiguration, ScoreStore, TileTree
    from pathnav.explore.schedule import Schedule
    from pathnav.explore.scores import Flags
    from pathnav.model import ChatClient

logger = logging.getLogger(__name__)

OnTiles = Callable[[float, int, int], None]
"""Called with the magnification, how many tiles of it have scores, and how many are asked for."""


@dataclass(frozen=True, slots=True)
class Explored:
    """What a search came to.

    Args:
        results: A `pathnav-exploration-1` object per schedule, in their order.
        calls: Requests that this process made for them.
    """

    results: list[JsonObject]
    calls: Calls

    @property
    def calls_now(self) -> int:
        """Requests that this process made, failed ones included."""
        return self.calls.total


class Trees:
    """The tile tree of the slide at hand: its tissue mask takes seconds, and all scorers of a slide share it."""

    def __init__(self, slides: OpenSlides) -> None:
        self._slides = slides
        self._name: object = None
        self._tree: TileTree | None = None

    def get(self, search: Search) -> "TileTree":
        """Return the tile tree of a search's slide, open.

        Raises:
            SlideError: If the slide cannot be opened, or is no longer the one that was planned with.
        """
        from pathnav.explore import TileTree

        slide = self._slides.get(search.source)
        if slide.fingerprint != search.slide.fingerprint:
            raise SlideError(f"{slide.path} was changed since the run was planned; run the command again")
        name = (search.source, search.tiles.tile_px, search.tiles.min_tissue, id(slide))
        if self._tree is None or self._name != name:
            self._name, self._tree = name, TileTree(slide, search.tiles.tile_px, search.tiles.min_tissue)
        return self._tree


def kept_exploration(folder: RunFolder, key: str) -> JsonObject | None:
    """Return the result of a search that needs no further run.

    Raises:
        RecordError: If the file is damaged.
    """
    result = folder.result(key, EXPLORATION_FORMAT)
    return result if result is not None and result["outcome"] == "finished" else None


def run_search(
    search: Search,
    folder: RunFolder,
    trees: Trees,
    chat: "ChatClient | None" = None,
    *,
    answered: bool = False,
    on_tiles: OnTiles | None = None,
    check: Callable[[], None] = lambda: None,
    calls: Calls | None = None,
) -> Explored:
    """Run a search to its end and return its results; schedules that are finished already are kept as they are.

    The scores of a slide that was stopped half way are in the folder's store: they are not asked for again. Whatever
    goes wrong is no answer of the scorer: the outcome is `infra_error`, and the next run goes on. So it is where the
    scorer breaks its contract: no score of that batch is stored, the reason names the scorer and its file.

    Args:
        search: What to run.
        folder: An open run folder.
        trees: Where the slide's tiles come from.
        chat: The client of the scorer's endpoint.
        answered: Whether the endpoint has answered before in this run.
        on_tiles: Is told how far the scoring is.
        check: Called before each request; raises `RunStopped` where the search must not go on.
        calls: Where requests are counted: for a caller that wants to know of them whatever is raised.

    Raises:
        EndpointUnreachable: If the endpoint cannot be reached and never answered; no result is written.
        PluginError: If a user's scorer breaks its contract before it has scored a tile, and nothing else was asked for;
            no result is written.
        KeyboardInterrupt: After the outcome `interrupted` was written.
        RecordError: If the record cannot be written.
    """
    kept = {schedule: kept_exploration(folder, search.key(schedule)) for schedule in search.schedules}
    due = [schedule for schedule, result in kept.items() if result is None]
    desk = _Desk(search, folder, on_tiles, calls or Calls())
    asked = chat.under(Terms(check=check, on_failed=desk.note_failed)) if chat is not None else None
    made = desk.to_the_end(due, trees, asked, answered) if due else {}
    return Explored([kept[schedule] or made[schedule] for schedule in search.schedules], desk.calls)


class _Desk:
    """One attempt at a search."""

    def __init__(self, search: Search, folder: RunFolder, on_tiles: OnTiles | None, calls: Calls) -> None:
        self.search, self.folder, self.on_tiles, self.calls = search, folder, on_tiles, calls
        self._lock = threading.Lock()
        self._counted: Callable[[], int] | None = None
        self._failed_calls: int | None = None
        self._embeddings: JsonObject | None = None
        self._scored = False
        self._latest: tuple[float, int] | None = None

    def to_the_end(
        self, due: "list[Schedule]", trees: Trees, chat: "ChatClient | None", answered: bool
    ) -> "dict[Schedule, JsonObject]":
        """Run, write a result per schedule, and return them."""
        started = time.monotonic()
        ended = caught(lambda: self._drive(due, trees, chat))
        if isinstance(ended, Failed):
            error = ended.error
            if isinstance(error, EndpointUnreachable) and not answered:
                raise error
            if isinstance(error, PluginError) and self._is_unusable:
                raise PluginError(redacted(str(error), self.search.scorer.secret)) from error
            ended = self._lost(due, error)
            if isinstance(error, KeyboardInterrupt):
                self._write(ended, started)
                raise error
        return self._write(ended, started)

    def note_failed(self, seconds: float, sentence: str, sent: int) -> None:
        """Count a request that failed with all its tries; any thread may call it, also when all is over."""
        with self._lock, contextlib.suppress(RecordError):
            self.calls.failed += 1
            if self._counted is not None:
                self._failed_calls = self._counted()

    @property
    def _is_unusable(self) -> bool:
        """Whether a broken contract of the scorer leaves nothing to record."""
        return self.search.is_alone and not self.search.scorer.is_pathnavs and not self._scored

    def _drive(self, due: "list[Schedule]", trees: Trees, chat: "ChatClient | None") -> "dict[Schedule, JsonObject]":
        """Score what is not scored yet and return the results."""
        from pathnav.explore import ScoreStore, TopK, explore
        from pathnav.explore.hit_rates import positives_of

        search = self.search
        tree = trees.get(search)
        overlaps = search.truth.overlaps(tree) if search.truth else None
        scorer = search.scorer.create(chat, self.folder.embeddings(search.slide.reader, search.slide.mpp_um))
        if search.scorer.is_oracle and overlaps is not None:
            scorer.accept_truth(overlaps)  # type: ignore[attr-defined]  # the oracle's very class
        configuration = named_by_pixels(
            search.scorer.configured(scorer, tree.tile_px), search.source, search.slide.mpp_um
        )
        positives = [positives_of(level) for level in overlaps] if overlaps else None
        clean = functools.partial(redacted, secret=search.scorer.secret)
        with ScoreStore(self.folder.scores(), clean=clean) as store:
            if search.scorer.model is not None:
                self._counted = functools.partial(store.add_failed, configuration, tree.fingerprint)
                self._failed_calls = store.failed(configuration, tree.fingerprint)
            found = explore(
                tree,
                scorer,
                [TopK(schedule, search.tiles.fill_to_k) for schedule in due],
                store=store,
                configuration=configuration,
                seed=search.seed,
                progress=lambda level, done, total, calls: self._tell(tree.magnification(level), done, total, calls),
            )
            self._embeddings = getattr(scorer, "embedding_costs", None)
            return self._results(due, tree, found, positives, (configuration, store))

    def _results(
        self,
        due: "list[Schedule]",
        tree: "TileTree",
        found: "Exploration",
        positives: "list[Flags] | None",
        stored: "tuple[ScorerConfiguration, ScoreStore]",
    ) -> "dict[Schedule, JsonObject]":
        results = {}
        for schedule, selection in zip(due, found.selections, strict=True):
            details = details_of(tree, selection, *stored)
            whole = Found(tree, found.table, selection, schedule, positives, details, self._failed_calls)
            results[schedule] = finished(self.search, whole)
        return results

    def _tell(self, magnification: float, done: int, total: int, calls: int) -> None:
        self.calls.answered = calls
        before, self._latest = self._latest, (magnification, done)
        self._scored |= before is not None and before[0] == magnification and before[1] < done
        if self.on_tiles is not None:
            self.on_tiles(magnification, done, total)

    def _lost(self, due: "list[Schedule]", error: BaseException) -> "dict[Schedule, JsonObject]":
        """Return the results of a search that was stopped."""
        if isinstance(error, KeyboardInterrupt):
            outcome, reason = "interrupted", stopped_by()
        elif isinstance(error, RunStopped):
            outcome, reason = "interrupted", sentence(error)
        else:
            outcome, reason = "infra_error", sentence(error)
            lines = redacted("".join(traceback.format_exception(error)), self.search.scorer.secret)
            logger.debug("search of %s: %s", self.search.source.path, lines)
        return {schedule: lost(self.search, schedule, outcome, reason, self._failed_calls) for schedule in due}

    def _write(self, results: "dict[Schedule, JsonObject]", started: float) -> "dict[Schedule, JsonObject]":
        """Write the results; `seconds` are the whole search's, whose scores all schedules share."""
        costs: JsonObject = {"seconds": round(time.monotonic() - started, 3)}
        if self._embeddings is not None:
            costs["embeddings"] = self._embeddings
        whole = {}
        for schedule, result in results.items():
            if (kept := kept_exploration(self.folder, result["key"])) is not None:  # another process shared the tiles
                whole[schedule] = kept
                continue
            timed: JsonObject = redacted({**result, **costs}, self.search.scorer.secret)
            write_json_atomic(self.folder.make_episode(result["key"]) / RESULT_FILE, timed)
            whole[schedule] = timed
        return whole
