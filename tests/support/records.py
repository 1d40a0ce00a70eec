"""Synthetic run folders: result records as `pathnav.run.episode` writes them, without running anything."""

import json
from pathlib import Path
from typing import Any


def result(**changes: Any) -> dict[str, Any]:
    """Return one result record (a parent-centre answer at 10x), with the given keys changed.

    Keys of `slide` and `query` are given as `slide__phantom=True`, `query__budget=3`.
    """
    record: dict[str, Any] = {
        "format": "pathnav-result-1",
        "key": "k",
        "slide": {"path": "slides/a.svs", "fingerprint": "a", "phantom": False, "mpp_um": [0.5, 0.5]},
        "query": {
            "id": "n1",
            "magnification": 10,
            "finding": "dense inflammatory infiltrate",
            "region": [0, 0, 4000, 4000],
            "target_size": [1000, 1000],
            "budget": 7,
            "handle": "slide-3fa9c1",
            "organ": None,
        },
        "target": [500, 500, 1000, 1000],  # null: nothing to score against
        "scored_target": [500, 500, 1000, 1000],  # the target moved into the slide
        "agent": "parent-centre",
        "origin": "pathnav 0.1.0",  # package, module, or file of the class
        "version": "0",
        "settings": {},
        "model": None,
        "decoding": None,
        "seed": 7,
        "repeat": 0,
        "outcome": "finished",
        "box": [1500, 1500, 1000, 1000],
        "reported": [1500, 1500, 1000, 1000],  # as the agent said it, before "Final box"
        "iou": 0.2,  # 0 without a valid box, the expectation for draws, null without a target or after infra_error
        "draws": None,
        "hit_share": None,  # only for draws: expected share of boxes with IoU >= 0.3
        "iou_fallback": 0.2,
        "iou_any": 0.2,
        "conclusion": None,
        "confidence": None,
        "rois": [],  # [x, y, w, h] in order
        "rois_used": 0,
        "budget": 7,
        "steps": 1,
        "examined_mm2": 0.0,  # union of ROIs, and of survey reads where unbudgeted
        "pixels_sent": None,
        "tokens": None,
        "cost_usd": None,
        "seconds": 0.1,
        "target_cut": False,
        "unbudgeted": False,
        "controls": {},
    }
    for name, value in changes.items():
        part, _, field = name.partition("__")
        if field:
            record[part] = {**record[part], field: value}
        else:
            record[name] = value
    return record


def write_run(folder: Path, records: list[dict[str, Any]], *, planned: int | None = None, earlier: int = 0) -> Path:
    """Write a run folder with one finished episode a record, and `planned` episodes in all in run.json.

    The first `earlier` records are those of an earlier plan.
    """
    for number, record in enumerate(records):
        episode = folder / "episodes" / f"key{number:03d}"
        episode.mkdir(parents=True)
        (episode / "events.jsonl").write_text("")
        (episode / "result.json").write_text(json.dumps({**record, "key": episode.name}))
    total = len(records) if planned is None else planned
    keys = [f"key{number:03d}" for number in range(total)]
    plan: dict[str, Any] = {"format": "pathnav-run-1", "name": folder.name}
    plan |= {"episodes": keys[earlier:], "earlier_episodes": keys[:earlier]}
    folder.mkdir(exist_ok=True)
    (folder / "run.json").write_text(json.dumps(plan))
    return folder
