"""The result of a search with one schedule, `pathnav-exploration-1`: all that tables and QuPath need, without times."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from pathnav import __version__
from pathnav.cohort.protocol import MIN_IMAGE_SIDE_PX
from pathnav.records import JsonObject
from pathnav.run.exploration import Search
from pathnav.run.folder import EXPLORATION_FORMAT
from pathnav.run.ledger import cost_fields

if TYPE_CHECKING:
    from pathnav.explore import Choice, Schedule, ScoreStore, ScoreTable, Selection, TileTree
    from pathnav.explore.hit_rates import ChoiceCounts, HitCounts
    from pathnav.explore.scores import Flags

PRINTED = ("format", "outcome", "scorer", "schedule", "calls", "unparsed", "levels", "tokens", "cost_usd", "seconds")
"""What `explore --json` prints of a result, beside `calls_now` and `out`."""

_COSTS = {"images_sent": "images_sent", "bytes_sent": "bytes_sent", "retries": "retries", "call_seconds": "seconds"}
"""Costs of a result, each with its name in the detail of a scored tile."""

PRINTED_OF_LEVEL = (
    *("magnification", "tiles", "scored", "yes", "kept", "kept_boxes", "positives", "reachable", "kept_positives"),
    *("conditional_hit", "unconditional_hit", "optimum_hit", "tie_rate"),
)


@dataclass(frozen=True, eq=False)
class Found:
    """What a search came to with one schedule.

    Args:
        tree: The slide's tiles.
        table: The scores.
        selection: What was asked and kept.
        schedule: K by level.
        positives: Per level bool, shape (count,): the positive tiles; None without an annotation.
        details: The stored details of every tile that the selection rests on.
        failed_calls: Requests about the slide that failed, earlier processes included; None without a model.
    """

    tree: "TileTree"
    table: "ScoreTable"
    selection: "Selection"
    schedule: "Schedule"
    positives: "Sequence[Flags] | None"
    details: Sequence[Mapping[str, Any] | None]
    failed_calls: int | None = None


def shown_tile_px(tile_px: int) -> int:
    """Return the side of a tile's image as a model is sent it: small ones are enlarged by a whole factor."""
    return tile_px * math.ceil(MIN_IMAGE_SIDE_PX / tile_px)


def asked(search: Search, schedule: "Schedule") -> JsonObject:
    """Return what was planned."""
    slide, scorer = search.slide, search.scorer
    return {
        "format": EXPLORATION_FORMAT,
        "key": search.key(schedule),
        "pathnav": __version__,
        "slide": {
            "path": search.source.place,
            "fingerprint": slide.fingerprint,
            "phantom": slide.phantom,
            "mpp_um": list(slide.mpp_um),
            "objective_power": slide.objective_power,
            "reader": slide.reader,
            "warnings": list(slide.warnings),
        },
        "annotation": search.truth.as_json() if search.truth else None,
        "scorer": scorer.name,
        "version": scorer.version,
        "origin": scorer.plugin.origin,
        "configuration": scorer.configuration,
        "settings": scorer.settings,
        "model": scorer.model.model if scorer.model else None,
        "decoding": scorer.decoding,
        "schedule": list(schedule.keep),
        "fill_to_k": search.tiles.fill_to_k,
        "tile_px": search.tiles.tile_px,
        "min_tissue": search.tiles.min_tissue,
        "seed": search.seed,
        "scores": search.scores_name,
    }


def lost(
    search: Search, schedule: "Schedule", outcome: str, reason: str, failed_calls: int | None = None
) -> JsonObject:
    """Return the result of a search that did not come to its end."""
    nothing = {**dict.fromkeys(("tissue", "calls")), "failed_calls": failed_calls, "unparsed": None}
    return {
        **asked(search, schedule),
        "outcome": outcome,
        "reason": reason,
        **nothing,
        "levels": [],
        **dict.fromkeys(("tokens", *_COSTS, "pixels_sent", "cost_usd")),
        "cost_unknown": "the search did not come to its end" if search.scorer.model else None,
        "prices_date": None,
    }


def finished(search: Search, found: Found) -> JsonObject:
    """Return the result of a search that came to its end; `seconds` are left to the caller."""
    from pathnav.explore.hit_rates import choice_counts, hit_counts

    tree, selection = found.tree, found.selection
    counts = choice_counts(tree.nesting, selection)
    hits = (
        hit_counts(tree.nesting, selection, found.schedule, found.positives, found.table.eligible)
        if found.positives is not None
        else [None] * tree.levels
    )
    levels = [_level(search, found, level, counts[level], hits[level]) for level in range(tree.levels)]
    return {
        **asked(search, found.schedule),
        "outcome": "finished",
        "reason": None,
        "tissue": str(tree.tissue_status) if tree.min_tissue else None,
        "calls": selection.requests,
        "failed_calls": found.failed_calls,
        "unparsed": sum(one.unparsed for one in counts),
        "levels": levels,
        **_costs(search, found.details, selection.requests),
    }


def _level(search: Search, found: Found, level: int, counts: "ChoiceCounts", hits: "HitCounts | None") -> JsonObject:
    magnification = found.tree.magnification(level)
    return {
        "magnification": magnification,
        "upsampled": search.slide.upsampled(magnification),
        "tiles": counts.tiles,
        "scored": counts.scored,
        "yes": counts.yes,
        "unparsed": counts.unparsed,
        "kept": counts.kept,
        "filled": counts.filled,
        "candidates": counts.candidates,
        "tied": counts.tied,
        "calls": counts.requests,
        **_kept(found, level),
        "positives": hits.positives if hits else None,
        "reachable": hits.reachable if hits else None,
        "kept_positives": hits.kept_positives if hits else None,
        "optimum_positives": hits.optimum_positives if hits else None,
        "conditional_hit": hits.conditional_hit if hits else None,
        "unconditional_hit": hits.unconditional_hit if hits else None,
        "optimum_hit": hits.optimum_hit if hits else None,
        "tie_rate": counts.tie_rate if hits else None,
    }


def _kept(found: Found, level: int) -> JsonObject:
    """Return the kept tiles in reading order: boxes, confidences, and each one's parent in the list one level up."""
    choice: Choice = found.selection.levels[level]
    tree, numbers = found.tree, choice.kept
    parents: list[int | None] = [None] * numbers.size
    if level > 0:
        above = found.selection.levels[level - 1].kept
        parents = np.searchsorted(above, tree.nesting.parents(level, numbers)).tolist()
    return {
        "kept_boxes": [tree.box(tree.tile(level, number)).as_list() for number in numbers.tolist()],
        "kept_confidences": [round(float(one), 6) for one in found.table.confidences[level][numbers]],
        "kept_parents": parents,
    }


def details_of(tree: "TileTree", selection: "Selection", store: "ScoreStore") -> list[Mapping[str, Any] | None]:
    """Return the stored details of every tile that a selection rests on."""
    details: list[Mapping[str, Any] | None] = []
    for level, choice in enumerate(selection.levels):
        boxes = [tree.box(tree.tile(level, number)) for number in choice.scored.tolist()]
        details += [score.detail if score else None for score in store.find(tree.magnification(level), boxes)]
    return details


def _costs(search: Search, details: Sequence[Mapping[str, Any] | None], calls: int) -> JsonObject:
    """Return what the calls cost that a result rests on; null where a scorer asks no model or a server does not say."""
    model = search.scorer.model.model if search.scorer.model else None
    if model is None:
        return {**dict.fromkeys(("tokens", *_COSTS, "pixels_sent")), **cost_fields(None, 0, None, search.prices)}
    usages = [usage for detail in details if isinstance(usage := (detail or {}).get("tokens"), Mapping)]
    tokens: dict[str, int] | None = None
    if len(usages) == len(details):
        tokens = {side: sum(usage[side] for usage in usages) for side in ("input", "output")}
    return {
        "tokens": tokens,
        **(costs := {name: _sum(details, of) for name, of in _COSTS.items()}),
        "pixels_sent": _pixels(search, costs["images_sent"]),
        **cost_fields(model, calls, tokens, search.prices),
    }


def _pixels(search: Search, images: int | float | None) -> int | None:
    """Return the pixels of so many images of tiles; None where another's scorer made them."""
    from pathnav.explore.vlm import VlmScorer

    if images is None or not issubclass(search.scorer.plugin.cls, VlmScorer):
        return None
    return int(images) * shown_tile_px(search.tiles.tile_px) ** 2


def _sum(details: Sequence[Mapping[str, Any] | None], name: str) -> int | float | None:
    """Return the sum of a number over details; None without any, and where one lacks it."""
    found = [(detail or {}).get(name) for detail in details]
    known = [number for number in found if isinstance(number, int | float) and not isinstance(number, bool)]
    return round(sum(known), 3) if found and len(known) == len(found) else None


def printed(result: JsonObject, calls_now: int, out: str | None) -> dict[str, Any]:
    """Return the object that `explore --json` prints.

    Args:
        result: A `pathnav-exploration-1` object.
        calls_now: Requests that this process made.
        out: The run folder, None where it is not kept.
    """
    told: dict[str, Any] = {}
    for name in PRINTED:
        told[name] = result[name]
        if name == "calls":
            told["calls_now"] = calls_now
    told["levels"] = [{name: level[name] for name in PRINTED_OF_LEVEL} for level in result["levels"]]
    return {**told, "out": out}
