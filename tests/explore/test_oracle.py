"""The oracle: told the truth, it reaches the optimum at the first level and never exceeds it."""

import json
from pathlib import Path

import numpy as np
import pytest
import shapely
from shapely.geometry import shape

from pathnav.cohort.protocol import SCHEDULES
from pathnav.errors import PluginError
from pathnav.explore import OracleScorer, Schedule, TileTree, TopK, explore, hit_counts, positives_of
from pathnav.explore.invariants import Row, broken_invariants
from pathnav.geometry import Floats
from pathnav.plugins import Kind, load
from pathnav.slide import open_slide


def overlaps_of(tree: TileTree, tumour: shapely.Geometry, level: int) -> Floats:
    """Return the share of every tile that is tumour, summed over the tumour's separate parts."""
    x, y, width, height = tree.grid(level).boxes().T
    tiles, parts = shapely.box(x, y, x + width, y + height), shapely.get_parts(tumour)
    which, part = shapely.STRtree(parts).query(tiles, predicate="intersects")
    areas = shapely.area(shapely.intersection(parts[part], tiles[which]))
    return np.bincount(which, areas, minlength=tiles.size) / tree.areas(level)


def test_on_the_ovarian_slide_the_oracle_is_at_the_optimum_first_and_never_above(shared: Path) -> None:
    features = json.loads((shared / "slides/virtual-hgsc-groundtruth.geojson").read_text())["features"]
    named = [shape(f["geometry"]) for f in features if f["properties"]["classification"]["name"] == "tumor"]
    tumour = shapely.union_all(named)
    with open_slide(shared / "slides/virtual-hgsc-groundtruth.svs") as slide:
        tree = TileTree(slide, 128)
        overlaps = [overlaps_of(tree, tumour, level) for level in range(3)]
        oracle = load(Kind.SCORER, "oracle").create()
        oracle.accept_truth(overlaps)
        found = explore(tree, oracle, [TopK(Schedule(keep)) for keep in SCHEDULES])
    positives, eligible = [positives_of(level) for level in overlaps], found.table.eligible
    rows = []
    for keep, selection in zip(SCHEDULES, found.selections, strict=True):
        counts = hit_counts(tree.nesting, selection, Schedule(keep), positives, eligible)
        rows.append(Row("oracle", frozenset({tree.fingerprint}), Schedule(keep), counts))
        assert counts[0].kept_positives == counts[0].optimum_positives > 0
        assert all(level.kept_positives == level.kept for level in counts), "it keeps nothing but tumour"
        assert all(0 < level.kept_positives <= level.optimum_positives for level in counts)
    assert broken_invariants(rows) == []


def test_the_oracle_says_yes_above_five_percent_and_orders_by_overlap(tree: TileTree) -> None:
    overlaps = [np.linspace(0, 1, tree.count(level)) for level in range(3)]
    oracle = OracleScorer()
    oracle.accept_truth(overlaps)
    scores = list(oracle.score(tree.images(1, np.arange(tree.count(1)))))
    assert [score.confidence for score in scores] == overlaps[1].tolist()
    assert [score.yes for score in scores] == (overlaps[1] > 0.05).tolist()


def test_a_corrected_annotation_is_not_answered_from_old_scores(tree: TileTree) -> None:
    one, other = OracleScorer(), OracleScorer()
    one.accept_truth([np.zeros(2), np.zeros(8)])
    other.accept_truth([np.zeros(2), np.array([0.0] * 7 + [1e-9])])
    assert one.settings != other.settings
    assert OracleScorer().settings == {"truth": None}


def test_without_an_annotation_the_oracle_says_what_it_needs(tree: TileTree) -> None:
    with pytest.raises(PluginError, match="annotation"):
        explore(tree, OracleScorer(), [TopK(Schedule((1, 1, 1)))])
