"""The kept tiles of a search as QuPath reads them: one annotation a tile, with its score and its parent."""

import json
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pathnav.cohort.annotation_formats import KEPT_FORMAT
from pathnav.geometry import Box
from pathnav.records import write_bytes_atomic

COLOURS = ([255, 200, 0], [255, 120, 0], [200, 0, 0])
"""Outlines at 2.5x, 10x and 40x."""


def kept_tiles(result: Mapping[str, Any], corner: tuple[float, float] = (0.0, 0.0)) -> dict[str, Any]:
    """Return a FeatureCollection of all kept tiles, coarsest first.

    Every feature has an id of its own; `metadata.parent` is the id of the kept tile that holds it. Measurements stand
    in the list form, which every version of QuPath reads.

    Args:
        result: A `pathnav-exploration-1` object.
        corner: Taken from all x and y: (bounds.x, bounds.y) for a program that counts from the scanned area.
    """
    features: list[dict[str, Any]] = []
    above: list[str] = []
    for place in range(len(result["levels"])):
        found = list(_features(result, place, above, corner))
        features += found
        above = [feature["id"] for feature in found]
    return {"format": KEPT_FORMAT, "type": "FeatureCollection", "features": features}


def _features(
    result: Mapping[str, Any], place: int, above: list[str], corner: tuple[float, float]
) -> Iterator[dict[str, Any]]:
    level = result["levels"][place]
    at = f"{level['magnification']:g}x"
    kept = zip(level["kept_boxes"], level["kept_confidences"], level["kept_parents"], strict=True)
    for box, confidence, parent in kept:
        told = {"magnification": at, "scorer": result["scorer"], "schedule": ",".join(map(str, result["schedule"]))}
        if parent is not None:
            told["parent"] = above[parent]
        yield {
            "type": "Feature",
            "id": str(uuid.uuid5(uuid.NAMESPACE_URL, f"{result['key']}/{at}/{box}")),
            "geometry": {"type": "Polygon", "coordinates": [_ring(Box(*box), corner)]},
            "properties": {
                "objectType": "annotation",
                "name": f"{at} {confidence:.3f}",
                "classification": {"name": f"kept {at}", "color": COLOURS[place]},
                "isLocked": True,
                "measurements": [{"name": "confidence", "value": confidence}],
                "metadata": told,
            },
        }


def _ring(box: Box, corner: tuple[float, float]) -> list[list[float]]:
    left, top, right, bottom = box.x - corner[0], box.y - corner[1], box.right - corner[0], box.bottom - corner[1]
    return [[left, top], [right, top], [right, bottom], [left, bottom], [left, top]]


def write_kept_tiles(path: Path, result: Mapping[str, Any], corner: tuple[float, float] = (0.0, 0.0)) -> None:
    """Write the kept tiles to a file, readable by its owner only.

    Raises:
        RecordError: If it cannot be written.
    """
    write_bytes_atomic(path, json.dumps(kept_tiles(result, corner), allow_nan=False).encode())
