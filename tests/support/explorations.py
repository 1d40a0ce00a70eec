"""Synthetic records of Mode B: `pathnav-exploration-1` results made of counts, without searching anything."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pathnav.report.summary import Report, make_report
from support.records import write_run

Counts = tuple[int, int, int, int, int]
"""Positives, reachable, kept, kept positives, optimum of one level."""

COUNTS: tuple[Counts, ...] = ((10, 10, 6, 4, 6), (40, 20, 12, 6, 16), (200, 40, 20, 8, 30))
SMALLER: tuple[Counts, ...] = ((10, 10, 3, 2, 3), (40, 12, 9, 4, 9), (200, 30, 20, 6, 25))
"""What a search with smaller K keeps of the same slide."""
NO_TUMOUR: tuple[Counts, ...] = ((0, 0, 6, 0, 0), (0, 0, 12, 0, 0), (0, 0, 20, 0, 0))
TILES = (20, 320, 5120)
SCORED = (18, 90, 150)
LOST = {"outcome": "infra_error", "reason": "no server", "levels": [], "calls": None, "unparsed": None}


def level(place: int, counts: Counts | None, **changes: Any) -> dict[str, Any]:
    """Return one level's record; without counts it has no annotation."""
    positives, reachable, kept, kept_positives, optimum = counts or (None, None, 6, None, None)
    record: dict[str, Any] = {
        "magnification": (2.5, 10.0, 40.0)[place],
        "upsampled": None,
        "tiles": TILES[place],
        "scored": SCORED[place],
        "yes": SCORED[place] // 2,
        "unparsed": 0,
        "kept": kept,
        "filled": 0,
        "candidates": SCORED[place] // 2,
        "tied": 3,
        "calls": SCORED[place],
        "kept_boxes": [],
        "kept_confidences": [],
        "kept_parents": [],
        "positives": positives,
        "reachable": reachable,
        "kept_positives": kept_positives,
        "optimum_positives": optimum,
    }
    return record | changes


def exploration(slide: str = "a", counts: Sequence[Counts] | None = COUNTS, **changes: Any) -> dict[str, Any]:
    """Return one record of a finished search of a slide, with the given fields changed.

    Args:
        slide: Its fingerprint; its file is `slides/SLIDE.svs`.
        counts: Of the three levels; None for a slide without annotation.
        changes: Fields of the record; `phantom` is the slide's.
    """
    phantom = changes.pop("phantom", False)
    levels = [level(place, counts[place] if counts else None) for place in range(3)]
    record: dict[str, Any] = {
        "format": "pathnav-exploration-1",
        "key": "k",
        "pathnav": "0.1.0",
        "slide": {"path": f"slides/{slide}.svs", "fingerprint": slide, "phantom": phantom, "mpp_um": [0.25, 0.25]},
        "annotation": {"path": f"{slide}.geojson", "classes": ["tumor"], "area_px2": 1e6} if counts else None,
        "outcome": "finished",
        "reason": None,
        "scorer": "vlm",
        "version": "1",
        "origin": "pathnav 0.1.0",
        "configuration": "c" * 20,
        "settings": {},
        "model": None,
        "decoding": None,
        "schedule": [6, 3, 2],
        "fill_to_k": False,
        "tile_px": 1024,
        "min_tissue": 0.01,
        "seed": 7,
        "calls": sum(SCORED),
        "unparsed": 0,
        "levels": levels,
        "tokens": None,
        "cost_usd": None,
        "images_sent": None,
        "bytes_sent": None,
        "retries": 0,
        "seconds": 2.0,
    }
    return record | changes


def over(slides: str, counts: tuple[Counts, ...] = COUNTS, **changes: Any) -> list[dict[str, Any]]:
    """Return one record a slide; each letter is a slide."""
    return [exploration(slide, counts, **changes) for slide in slides]


def sweep(slides: str) -> list[dict[str, Any]]:
    """Return random and a model over the same slides, each at two schedules."""
    records = []
    for scorer, model in (("random", None), ("vlm", "qwen")):
        asked = {"scorer": scorer, "model": model, "configuration": scorer}
        records += over(slides, **asked) + over(slides, SMALLER, schedule=[3, 3, 2], **asked)
    return records


def report_of(folder: Path, *records: dict[str, Any], planned: int | None = None) -> Report:
    """Return the report of a run folder with these records."""
    return make_report(write_run(folder / "run", list(records), planned=planned))
