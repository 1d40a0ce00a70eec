"""What exploring a slide of 60,000 px holds in memory; printed, and failed above 600 MB.

Run with `pytest -o addopts= -s --import-mode=importlib tests/bench/test_exploration_memory.py`.
"""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pathnav.phantom import make_phantom
from support.mosaic import write_mosaic
from support.peak_memory import PEAK_MB

SIDE_PX = 60_000
LIMIT_MB = 600
POLYGONS = 2_000

# In a process of its own: a peak once reached hides all later ones. Nothing but what `pathnav explore` needs is
# imported, and the peak counts all of it: interpreter, libraries, caches.
EXPLORE = (
    PEAK_MB
    + """
import json, sys, time
from pathlib import Path
from pathnav.cohort.annotations import load_annotation, overlap_fractions
from pathnav.explore import Schedule, ScorerConfiguration, ScoreStore, TileTree, TopK, explore
from pathnav.slide import open_slide
from pathnav_baselines.nuclear_density_scorer import NuclearDensityScorer
path, tile_px, store, annotation = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4]
start = time.process_time()
at_start_mb = peak_mb()
with open_slide(path) as slide:
    scorer, tree = NuclearDensityScorer(), TileTree(slide, tile_px)
    with ScoreStore(store, ScorerConfiguration.of(scorer, tile_px), tree.fingerprint) as scores:
        found = explore(tree, scorer, [TopK(Schedule((6, 3, 2)))], store=scores)
    explored_mb = peak_mb()
    positives = 0
    if annotation:
        drawn = load_annotation(Path(annotation), classes=[])
        positives = sum(int((overlap_fractions(drawn, tree.grid(level)) > 0.05).sum()) for level in range(tree.levels))
    print(json.dumps({"start_mb": at_start_mb, "explored_mb": explored_mb, "peak_mb": peak_mb(),
                      "tiles": found.tiles_now, "of": [tree.count(level) for level in range(tree.levels)],
                      "positives": positives, "cpu_s": time.process_time() - start}))
"""
)


def write_annotation(path: Path) -> Path:
    """Write rough outlines of 200 points each that cover and overlap much of the slide, as GeoJSON."""
    rng = np.random.default_rng(0)
    angles = np.linspace(0, 2 * np.pi, 200, endpoint=False)
    features: list[dict[str, Any]] = []
    for _ in range(POLYGONS):
        reach = rng.uniform(200, 1500) * (1 + 0.2 * np.sin(5 * angles) + 0.05 * rng.normal(size=angles.size))
        points = rng.uniform(0, SIDE_PX, 2) + np.column_stack([np.cos(angles), np.sin(angles)]) * reach[:, None]
        geometry = {"type": "Polygon", "coordinates": [points.round(1).tolist()]}
        features.append({"type": "Feature", "geometry": geometry, "properties": {"name": "tumor"}})
    path.write_text(json.dumps(features), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def slide_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bench")
    make_phantom(folder / "phantom.tiff", side=4096)
    return write_mosaic(folder / "slide.tiff", folder / "phantom.tiff", SIDE_PX, 0.25)


@pytest.mark.parametrize("tile_px", [256, 1024])
@pytest.mark.parametrize("is_annotated", [False, True], ids=["plain", "annotated"])
def test_exploring_a_large_slide_stays_small(
    slide_path: Path, tmp_path: Path, tile_px: int, is_annotated: bool
) -> None:
    annotation = str(write_annotation(tmp_path / "a.geojson")) if is_annotated else ""
    command = [sys.executable, "-c", EXPLORE, str(slide_path), str(tile_px), str(tmp_path / "scores"), annotation]
    found = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
    polygons = f", {POLYGONS:,} polygons on all grids: {found['peak_mb']:.0f} MB" if is_annotated else ""
    sys.stdout.write(
        f"\n{SIDE_PX:,} px, tiles of {tile_px} px, {found['tiles']} scored of {sum(found['of']):,}: peak "
        f"{found['explored_mb']:.0f} MB ({found['start_mb']:.0f} MB before opening){polygons}; limit {LIMIT_MB} MB; "
        f"CPU {found['cpu_s']:.1f} s\n"
    )
    assert found["tiles"] >= 6 and (found["positives"] > 0) == is_annotated
    assert found["peak_mb"] <= LIMIT_MB
