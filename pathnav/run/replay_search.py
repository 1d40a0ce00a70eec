"""Run the schedule of a recorded search again over its stored scores, and tell what differs; no scorer is asked."""

import contextlib
import dataclasses
import json
import sqlite3
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pathnav.errors import AnnotationError, RecordError
from pathnav.run.folder import SCORES_FILE
from pathnav.run.key import hashed
from pathnav.run.pixels_of import without_pixels
from pathnav.run.record import JsonObject
from pathnav.run.replay_compare import Replayed, compared_fields
from pathnav.run.replay_record import EpisodeRecord
from pathnav.run.truth import TruthSource
from pathnav.settings import canonical_text

if TYPE_CHECKING:
    from pathnav.explore import Exploration, ScorerConfiguration, ScoreStore, TileTree
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
        copy = stack.enter_context(_copied(record.run / SCORES_FILE))
        tree = TileTree(slide, record.field("tile_px"), record.field("min_tissue"))
        store = stack.enter_context(ScoreStore(copy))
        positives = _positives(record, slide, tree, not_compared)
        # More than one only for the control that is told the truth, whose annotation was changed between two runs.
        lines = min((_again(record, tree, store, named, positives) for named in _named(record, copy)), key=len)
    levels = len(record.field("levels"))
    return Replayed(record.field("key"), "schedule", tuple(lines), levels, not_compared=tuple(not_compared))


def _again(
    record: EpisodeRecord,
    tree: "TileTree",
    store: "ScoreStore",
    named: "ScorerConfiguration",
    positives: "list[Flags] | None",
) -> list[str]:
    """Return what differs with the scores of one configuration."""
    from pathnav.explore import Schedule, TopK, replay

    schedule = Schedule(tuple(record.field("schedule")))
    policy = TopK(schedule, record.field("fill_to_k"))
    try:
        found = replay(tree, named, [policy], store=store, seed=record.field("seed"))
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


def _named(record: EpisodeRecord, store: Path) -> "list[ScorerConfiguration]":
    """Return what names the scores of a search in the store.

    Raises:
        RecordError: If the store holds no scores of that scorer.
    """
    from pathnav.explore import ScorerConfiguration

    with contextlib.closing(sqlite3.connect(store)) as connection:
        rows = connection.execute("SELECT configuration FROM scorers ORDER BY id").fetchall()
    stored = [ScorerConfiguration(**json.loads(text)) for (text,) in rows]
    tile_px = record.field("tile_px")
    slide = record.field("slide")
    readers, scales = (None, slide.get("reader")), (None, slide["mpp_um"])
    plain = [(named, *without_pixels(named)) for named in stored if named.tile_px == tile_px]
    found = [
        named
        for named, own, reader, scale in plain
        if reader in readers and scale in scales and _is_scorer(record.result, own)
    ]
    if not found:
        raise RecordError(f"{record.run / SCORES_FILE} holds no scores of the scorer {record.field('scorer')!r}")
    return found


def _is_scorer(result: JsonObject, named: "ScorerConfiguration") -> bool:
    """Return whether scores are those of a result's scorer.

    The code by the hash of all that names it, the settings by themselves; what a scorer learns only in a run, such as
    its model, is null in a result's settings.
    """
    asked = {**result["settings"], **{name: result[name] for name in ("model", "decoding") if name in named.settings}}
    known = {name: value for name, value in asked.items() if value is not None}
    stored = {name: value for name, value in named.settings.items() if name in known}
    if canonical_text(known) != canonical_text(stored) or set(named.settings) != set(result["settings"]):
        return False
    fields = {name: result[name] for name in ("scorer", "version", "settings", "model", "decoding")}
    return bool(hashed({**fields, "code": named.code}) == result["configuration"])


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
