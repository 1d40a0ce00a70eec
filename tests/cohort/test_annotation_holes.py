"""A hole is cut out of its outline, wherever it lies: outline less holes, never the even-odd of all rings."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from support.annotations import (
    asap,
    asap_annotation,
    feature,
    imagescope,
    imagescope_layer,
    imagescope_region,
    square,
    tumour,
)

Points = list[list[float]]
SIDE = 12


def geojson(outline: Points, holes: list[Points]) -> str:
    return json.dumps(feature("T", outline, *holes))


def multi(outline: Points, holes: list[Points]) -> str:
    return json.dumps(feature("T", [[outline, *holes]], kind="MultiPolygon"))  # type: ignore[list-item]


def dsa(outline: Points, holes: list[Points]) -> str:
    element = {"type": "polyline", "closed": True, "group": "T", "points": outline, "holes": holes}
    return json.dumps({"annotation": {"name": "a", "elements": [element]}})


def aperio(outline: Points, holes: list[Points]) -> str:
    negative = [imagescope_region(hole, negative=True) for hole in holes]
    return imagescope(imagescope_layer(1, imagescope_region(outline), *negative, name="T"))


def camelyon(outline: Points, holes: list[Points]) -> str:
    return asap(asap_annotation("T", outline), *(asap_annotation("_2", hole) for hole in holes))


def ncrf(outline: Points, holes: list[Points]) -> str:
    lists = {"positive": [outline], "negative": holes}
    return json.dumps({key: [{"name": "a", "vertices": ring} for ring in rings] for key, rings in lists.items()})


WRITERS: dict[str, Callable[[Points, list[Points]], str]] = {
    "geojson": geojson,
    "geojson MultiPolygon": multi,
    "dsa-json": dsa,
    "imagescope-xml": aperio,
    "asap-xml": camelyon,
    "ncrf-json": ncrf,
}

OUTLINE = square(10, 10, 30)
HOLES: dict[str, tuple[list[Points], float]] = {
    "outside": ([square(100, 100, 30)], 900),
    "one inside and one outside": ([square(15, 15, 5), square(100, 100, 90)], 875),
    "overlapping each other": ([square(15, 15, 10), square(20, 15, 10)], 750),
    "the same twice": ([square(15, 15, 10)] * 2, 800),
    "one within another": ([square(15, 15, 10), square(17, 17, 2)], 800),
    "half outside": ([square(30, 10, 20)], 700),
    "at the edge": ([square(10, 10, 10)], 800),
    "equal to the outline": ([OUTLINE], 0),
    "larger than the outline": ([square(0, 0, 100)], 0),
    "crossing itself": ([[[15, 15], [25, 25], [25, 15], [15, 25]]], 850),
    "crossing itself outside": ([[[115, 15], [125, 25], [125, 15], [115, 25]]], 900),
    "without an area": ([[[15, 15], [20, 20], [25, 25]]], 900),
}


@pytest.mark.parametrize("kind", WRITERS)
@pytest.mark.parametrize("name", HOLES)
def test_a_hole_takes_away_what_of_its_outline_it_covers(name: str, kind: str, tmp_path: Path) -> None:
    holes, area_px2 = HOLES[name]
    beside = square(500, 500, 1)  # so that the class has an area where the hole takes all of the outline
    found = tumour(tmp_path, _with(kind, WRITERS[kind](OUTLINE, holes), beside))
    assert found.area_px2 == pytest.approx(area_px2 + 1)
    assert found.region.is_valid


def _with(kind: str, text: str, more: Points) -> str:
    """Return a file with one more outline of the same class."""
    if kind.startswith("geojson"):
        return json.dumps([json.loads(text), feature("T", more)])
    if kind == "dsa-json":
        return json.dumps([json.loads(text), json.loads(dsa(more, []))])
    if kind == "ncrf-json":
        document = json.loads(text)
        document["positive"].append({"name": "b", "vertices": more})
        return json.dumps(document)
    end, extra = ("</Annotations><", asap_annotation("T", more)) if kind == "asap-xml" else ("</Regions>", "")
    return text.replace(end, (extra or imagescope_region(more)) + end, 1)


def test_the_hole_of_one_polygon_takes_nothing_from_another(tmp_path: Path) -> None:
    parts: Any = [[OUTLINE, square(100, 100, 50)], [square(100, 100, 20)]]
    assert tumour(tmp_path, json.dumps(feature("T", parts, kind="MultiPolygon"))).area_px2 == 900 + 400


def test_a_hole_outside_its_outline_is_counted_as_repaired_and_a_flat_one_as_dropped(tmp_path: Path) -> None:
    stray = tumour(tmp_path, geojson(OUTLINE, [square(100, 100, 30)]))
    assert (stray.repaired, stray.dropped, stray.classes[0].count) == (1, 0, 1)
    flat = tumour(tmp_path, geojson(OUTLINE, [[[15, 15], [20, 20], [25, 25]]]))
    assert (flat.area_px2, flat.dropped, flat.classes[0].count) == (900, 1, 1)
    gone = tumour(tmp_path, json.dumps([feature("T", OUTLINE, OUTLINE), feature("T", square(500, 500, 1))]))
    assert (gone.area_px2, gone.dropped, gone.classes[0].count) == (1, 1, 1)


corners, extents = st.integers(0, SIDE - 2), st.integers(1, SIDE)
boxes = st.tuples(corners, corners, extents, extents)


def _ring(box: tuple[int, int, int, int]) -> Points:
    x, y, width, height = box
    right, bottom = min(x + width, SIDE), min(y + height, SIDE)
    return [[x, y], [right, y], [right, bottom], [x, bottom]]


def _cells(rings: list[Points]) -> Any:
    covered = np.zeros((SIDE, SIDE), bool)
    for (left, top), _, (right, bottom), _ in rings:
        covered[int(top) : int(bottom), int(left) : int(right)] = True
    return covered


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(outline=boxes, holes=st.lists(boxes, max_size=4), kind=st.sampled_from(sorted(WRITERS)))
def test_every_format_agrees_with_counted_pixels(outline: Any, holes: Any, kind: str, tmp_path: Path) -> None:
    ring, cut = _ring(outline), [_ring(hole) for hole in holes]
    beside = [[x + 50.0, y] for x, y in _ring((0, 0, 1, 1))]
    found = tumour(tmp_path, _with(kind, WRITERS[kind](ring, cut), beside))
    assert found.area_px2 == pytest.approx((_cells([ring]) & ~_cells(cut)).sum() + 1)
