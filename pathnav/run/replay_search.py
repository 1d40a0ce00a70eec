"""Run the schedule of a recorded search again over its stored scores, and tell what differs; no scorer is asked."""

import contextlib
import dataclasses
import sqlite3
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pathnav.errors import AnnotationError, RecordError
from pathnav.records import JsonObject
from pathnav.run.folder import SCORES
from pathnav.run.replay_compare import Replayed, compared_fields
from pathnav.run.replay_record import EpisodeRecord
from pathnav.run.truth import TruthSource

if TYPE_CHECKING:
    from pathnav.explore import Exploration, ScoreStore, TileTree
    from pathnav.explore.schedule import Schedule
    from pathnav.explore.scores import Flags
    from pathnav.slide import Slide

_CHOICE = ("tiles", "scored", "yes", "unparsed", "kept", "filled", "candidates", "tied")
_HITS = ("positives", "reachable", "kept_positives", "optimum_positives")
_RATES = ("conditional_hit", "unconditional_hit", "optimum_hit")


def replay_search(record: EpisodeRecord, moved: str | None = None) -> Replayed:
    """Return what differs between a recorded search and its schedule over the stored scores.

    Args:
        record: The search.
        moved: Where the slide lies now; default: where the record says.

    Raises:
        RecordError: If the search is not finished, or its scores are not there.
        SlideError: If the slide is not there, or is another one.
    """
    from pathnav.explore import ScoreStore, TileTree

    if record.field("outcome") != "finished":
        raise RecordError(f"{record.folder} ended as {record.field('outcome')}: continue its run first")
    not_compared: list[str] = []
    with contextlib.ExitStack() as stack:
        slide = stack.enter_context(contextlib.closing(record.open_slide(moved)))
        copy = stack.enter_context(_copied(record.run / SCORES / f"{record.field('scores')}.sqlite"))
        tree = TileTree(slide, record.field("tile_px"), record.field("min_tissue"))
        store = stack.enter_context(ScoreStore.existing(copy))
        lines = _again(record, tree, store, _positives(record, slide, tree, not_compared))
    levels = len(record.field("levels"))
    return Replayed(record.field("key"), "schedule", tuple(lines), levels, not_compared=tuple(not_compared))


def _again(
    record: EpisodeRecord,
    tree: "TileTree",
    store: "ScoreStore",
    positives: "list[Flags] | None",
) -> list[str]:
    """Return what differs."""
    from pathnav.explore import Schedule, TopK, replay

    schedule = Schedule(tuple(record.field("schedule")))
    policy = TopK(schedule, record.field("fill_to_k"))
    try:
        found = replay(tree, [policy], store=store, seed=record.field("seed"))
    except RecordError as error:
        return [f"search: {error}"]
    now = _levels(tree, found, schedule, positives)
    pairs = zip(record.field("levels"), now, strict=True)
    return [line for then, made in pairs for line in _compared(then, made)]


@contextlib.contextmanager
def _copied(path: Path) -> Iterator[Path]:
    """Give a copy of a store of scores: to open one writes beside it, and a replay leaves a run folder as it is.

    Raises:
        RecordError: If there is none, or it cannot be read.
    """
    if not path.exists():
        raise RecordError(f"{path} is not there: without the scores a search cannot be replayed")
    in_use = path.with_name(f"{path.name}-wal").exists()
    uri = f"{path.absolute().as_uri()}?{'mode=ro' if in_use else 'mode=ro&immutable=1'}"
    with tempfile.TemporaryDirectory(prefix="pathnav-") as folder:
        copy = Path(folder) / path.name
        try:
            with (
                contextlib.closing(sqlite3.connect(uri, uri=True)) as source,
                contextlib.closing(sqlite3.connect(copy)) as target,
            ):
                source.backup(target)
        except sqlite3.Error as error:
            raise RecordError(f"{path} cannot be used as a store of scores: {error}") from error
        yield copy


def _positives(
    record: EpisodeRecord, slide: "Slide", tree: "TileTree", not_compared: list[str]
) -> "list[Flags] | None":
    """Return the positive tiles by level; None without an annotation, or where it is not the recorded one any more."""
    from pathnav.explore.hit_rates import positives_of

    then = record.field("annotation")
    if then is None:
        return None
    path = then["path"]
    offset = bool(then.get("relative_to_bounds"))
    source = TruthSource(path, tuple(then["classes"]), offset, tumour_free=path is None)
    try:
        truth = source.read(slide)
    except AnnotationError as error:
        not_compared.append(f"hits: {error}")
        return None
    if truth is None or truth.sha256 != then.get("sha256"):
        not_compared.append(f"hits: the annotation {path} was changed since")
        return None
    return [positives_of(level) for level in truth.overlaps(tree)]


def _levels(
    tree: "TileTree", found: "Exploration", schedule: "Schedule", positives: "list[Flags] | None"
) -> list[JsonObject]:
    """Return what a record says of each level, as the replay has it."""
    from pathnav.explore.hit_rates import choice_counts, hit_counts

    (selection,) = found.selections
    counts = choice_counts(tree.nesting, selection)
    hits = hit_counts(tree.nesting, selection, schedule, positives, found.table.eligible) if positives else None
    levels = []
    for level, choice in enumerate(selection.levels):
        numbers = choice.kept
        made: dict[str, Any] = {"magnification": tree.magnification(level), "calls": counts[level].requests}
        made |= {name: value for name, value in dataclasses.asdict(counts[level]).items() if name in _CHOICE}
        made["kept_boxes"] = [tree.box(tree.tile(level, number)).as_list() for number in numbers.tolist()]
        made["kept_confidences"] = [round(float(one), 6) for one in found.table.confidences[level][numbers]]
        if hits is not None:
            made |= {name: getattr(hits[level], name) for name in (*_HITS, *_RATES)}
        levels.append(made)
    return levels


def _compared(then: JsonObject, now: JsonObject) -> list[str]:
    known = {name: value for name, value in then.items() if name in now}
    return compared_fields(f"{then['magnification']:g}x", known, now)
