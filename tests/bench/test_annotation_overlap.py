"""What the overlap of every tile of a large slide with a large annotation costs, beside the naive loop; CPU time.

Run with `pytest -o addopts= -s --import-mode=importlib tests/bench`.
"""

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import shapely

from pathnav.cohort.annotations import Annotation, load_annotation, overlap_fractions
from pathnav.geometry import Box, Floats, Grid

GOAL_S = 5
"""CPU time, loading included: the clock on the wall also counts the neighbours, and nothing here uses two cores."""
SIDE_PX = 100_000
GRID = Grid(Box(0, 0, SIDE_PX, SIDE_PX), 256, 256)
NAIVE_TILES = 20


def outline(rng: np.random.Generator, centre: Floats, radius: float, points: int) -> list[list[float]]:
    """Return a rough outline; at times it crosses itself, as outlines drawn by hand do."""
    angles = np.sort(rng.uniform(0, 2 * np.pi, points))
    distance = radius * (1 + 0.2 * np.sin(5 * angles) + 0.05 * rng.normal(size=points))
    around = np.column_stack([np.cos(angles), np.sin(angles)]) * distance[:, None]
    return [[round(float(x), 1), round(float(y), 1)] for x, y in centre + around]


def many(rng: np.random.Generator) -> list[list[list[float]]]:
    """Return 1,000 outlines of 100 points that cover and overlap most of the slide."""
    return [outline(rng, rng.uniform(0, SIDE_PX, 2), rng.uniform(1000, 3000), 100) for _ in range(1000)]


def one(_: np.random.Generator) -> list[list[list[float]]]:
    """Return one outline of 100,000 points."""
    angles = np.linspace(0, 2 * np.pi, 100_000, endpoint=False)
    distance = 40_000 * (1 + 0.1 * np.sin(50 * angles) + 0.02 * np.sin(3000 * angles))
    return [(np.column_stack([np.cos(angles), np.sin(angles)]) * distance[:, None] + SIDE_PX / 2).tolist()]


def written(path: Path, outlines: list[list[list[float]]]) -> Path:
    """Write outlines as GeoJSON."""
    features: list[dict[str, Any]] = [
        {"type": "Feature", "geometry": {"type": "Polygon", "coordinates": [points]}, "properties": {"name": "tumor"}}
        for points in outlines
    ]
    path.write_text(json.dumps(features), encoding="utf-8")
    return path


def naive_s(drawn: Annotation, shares: Floats) -> float:
    """Return the CPU seconds for each tile of one intersection of the whole tumour, on some tiles that it crosses."""
    crossed = np.flatnonzero((shares > 0) & (shares < 1))
    some = np.random.default_rng(1).choice(crossed, NAIVE_TILES, replace=False)
    start = time.process_time()
    found = []
    for x, y, width, height in GRID.boxes()[some]:
        tile = shapely.box(x, y, x + width, y + height)
        found.append(shapely.intersection(drawn.region, tile).area / tile.area)
    seconds = (time.process_time() - start) / NAIVE_TILES
    assert shares[some] == pytest.approx(np.array(found), abs=1e-9)
    return seconds


@pytest.mark.parametrize("make", [many, one])
def test_the_overlap_of_every_tile_is_quick(
    make: Callable[[np.random.Generator], list[list[list[float]]]], tmp_path: Path
) -> None:
    path = written(tmp_path / "a.geojson", make(np.random.default_rng(0)))
    start = time.process_time()
    drawn = load_annotation(path, classes=[])
    loaded = time.process_time()
    shares = overlap_fractions(drawn, GRID)
    done = time.process_time()
    as_boxes = overlap_fractions(drawn, GRID.boxes())
    boxes_done = time.process_time()
    naive = naive_s(drawn, shares) * GRID.count
    sys.stdout.write(
        f"\n{make.__name__}: loading {loaded - start:.2f} s, {GRID.count:,} tiles as a grid {done - loaded:.3f} s "
        f"(goal {GOAL_S} s; 1/{naive / (done - loaded):,.0f} of the naive loop's {naive:,.0f} s), as boxes "
        f"{boxes_done - done:.2f} s (1/{naive / (boxes_done - done):,.0f}); greatest difference "
        f"{np.abs(shares - as_boxes).max():.1e}\n"
    )
    assert done - start <= GOAL_S
    assert shares == pytest.approx(as_boxes, abs=1e-9)
