"""Shares of tiles that are tumour, against one intersection for each tile."""

import math
from typing import Any

import numpy as np
import pytest
import shapely
from hypothesis import given
from hypothesis import strategies as st

from pathnav.cohort.annotation_formats import AnnotationFormat
from pathnav.cohort.annotations import Annotation, overlap_fractions
from pathnav.geometry import Box, Floats, Grid


def annotation(region: shapely.Geometry) -> Annotation:
    """Return an annotation of a region."""
    return Annotation("a", AnnotationFormat.GEOJSON, ("tumor",), region, (), (), {})


def one_by_one(region: shapely.Geometry, boxes: Floats) -> Floats:
    """Return the share of each box, by one intersection of the whole region for each."""
    shapes = [shapely.box(x, y, x + width, y + height) for x, y, width, height in boxes]
    return np.array([shapely.intersection(region, shape).area / shape.area for shape in shapes])


def blob(x: float, y: float, radius: float, points: int, waves: int = 5) -> shapely.Geometry:
    """Return a wavy outline around a centre."""
    angles = np.linspace(0, 2 * math.pi, points, endpoint=False)
    distance = radius * (1 + 0.3 * np.sin(waves * angles))
    return shapely.Polygon(np.column_stack([x + distance * np.cos(angles), y + distance * np.sin(angles)]))


# GEOS overflows on coordinates such as 5e-289 and raises the processor's flags, which NumPy makes a warning.
place = st.floats(-150, 150).map(lambda value: round(value, 6))
corner = place.filter(lambda x: -80 <= x <= 40)
ring = st.lists(st.tuples(place, place), min_size=3, max_size=15)
whole_ring = st.lists(st.tuples(st.integers(-9, 9), st.integers(-9, 9)), min_size=3, max_size=15)
areas = st.builds(Box, corner, corner, st.floats(5, 150), st.floats(5, 150))
grids = st.builds(Grid, areas, st.floats(7, 60), st.floats(7, 60))


def region_of(rings: list[Any]) -> shapely.Geometry:
    """Return the union of any rings, made valid."""
    made = shapely.make_valid([shapely.Polygon(points) for points in rings], method="structure", keep_collapsed=False)
    return shapely.union_all(made)


@given(st.lists(ring, max_size=4).map(region_of), grids)
def test_grids_and_boxes_have_the_shares_of_one_intersection_for_each(region: shapely.Geometry, grid: Grid) -> None:
    expected = one_by_one(region, grid.boxes())
    assert overlap_fractions(annotation(region), grid) == pytest.approx(expected, abs=1e-9)
    assert overlap_fractions(annotation(region), grid.boxes()[::2]) == pytest.approx(expected[::2], abs=1e-9)


@given(st.lists(whole_ring, max_size=4).map(region_of))
def test_outlines_on_the_lines_between_tiles_are_shared_exactly(region: shapely.Geometry) -> None:
    grid = Grid(Box(-6, -6, 11, 13), 3, 2)
    assert overlap_fractions(annotation(region), grid) == pytest.approx(one_by_one(region, grid.boxes()), abs=1e-12)


def test_boxes_may_overlap_and_lie_anywhere() -> None:
    rng = np.random.default_rng(7)
    boxes = np.column_stack([rng.uniform(-500, 2500, (200, 2)), rng.uniform(1, 900, (200, 2))])
    region = shapely.union_all([blob(500, 500, 300, 3000, 40), blob(1500, 1200, 500, 200), blob(900, 700, 200, 90)])
    assert overlap_fractions(annotation(region), boxes) == pytest.approx(one_by_one(region, boxes), abs=1e-9)


def test_a_tile_cut_at_the_edge_counts_with_its_part_inside() -> None:
    grid = Grid(Box(10, 20, 150, 130), 100, 100)
    region = shapely.box(-1000, -1000, 135, 2000)
    assert overlap_fractions(annotation(region), grid).tolist() == [1, 0.5, 1, 0.5]


def test_tiles_wholly_inside_or_outside_are_exactly_one_or_zero() -> None:
    region = blob(5000, 5000, 3000, 999).difference(blob(5200, 5100, 900, 777))
    grid = Grid(Box(0.1, 0.3, 9999.7, 9998.3), 102.4, 102.4)
    shares, boxes = overlap_fractions(annotation(region), grid), grid.boxes()
    x, y, width, height = boxes.T
    shapes = shapely.box(x, y, x + width, y + height)
    assert (shares[shapely.contains_properly(region, shapes)] == 1).all()
    assert (shares[shapely.disjoint(region, shapes)] == 0).all()
    assert 0.02 < np.mean((shares > 0) & (shares < 1)) < 0.5


@pytest.mark.parametrize("as_boxes", [False, True], ids=["grid", "boxes"])
def test_exactly_five_percent_of_a_tile_is_not_more_than_that(as_boxes: bool) -> None:
    grid = Grid(Box(0.1, 0.7, 10_240, 10_240), 256, 256)
    strips = [shapely.box(0.1 + 256 * n, 0, 0.1 + 256 * n + 12.8, 10_241) for n in range(40)]
    shares = overlap_fractions(annotation(shapely.union_all(strips)), grid.boxes() if as_boxes else grid)
    assert (shares == 0.05).all()


@pytest.mark.parametrize("as_boxes", [False, True], ids=["grid", "boxes"])
def test_without_tumour_in_the_grid_every_share_is_zero(as_boxes: bool) -> None:
    grid = Grid(Box(0, 0, 300, 300), 100, 100)
    beside = [blob(x, y, 150, 100) for x, y in ((-500, 50), (500, 50), (50, -500), (50, 500), (-500, -500))]
    for region in (shapely.MultiPolygon(), shapely.GeometryCollection(), *beside):
        assert overlap_fractions(annotation(region), grid.boxes() if as_boxes else grid).tolist() == [0] * 9


@pytest.mark.parametrize("boxes", [np.zeros((3, 4)), np.ones((3, 3)), np.ones(4)])
def test_boxes_without_an_area_are_refused(boxes: Floats) -> None:
    with pytest.raises(ValueError, match="boxes must be rows"):
        overlap_fractions(annotation(shapely.box(0, 0, 1, 1)), boxes)


def test_huge_outlines_and_points_on_one_place_are_shared_without_loss() -> None:
    fan = shapely.union_all([shapely.Polygon([(0, 0), (9, y), (9, y + 1)]) for y in range(0, 400, 2)])
    for region in (blob(0, 0, 40_000, 30_000, 500), fan):
        left, top, right, bottom = region.bounds
        whole = np.array([[left, top, right - left, bottom - top]])
        share = overlap_fractions(annotation(region), whole)
        assert share * whole[0, 2] * whole[0, 3] == pytest.approx(region.area, rel=1e-9)
