"""Queries and targets: what an agent may know, what it may not, and how a node or a user's words become one."""

from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from pathnav.cohort import protocol
from pathnav.cohort.query import Query, Target, query_of_user, slide_handle
from pathnav.cohort.tree import Node, TreeSlide, load_tree
from pathnav.errors import ConfigError, SlideError
from pathnav.geometry import Box
from pathnav.slide import Slide, open_slide
from support.blot_slide import write_blot_slide
from support.trees import tree_document, write_json, write_slide


def test_a_query_has_no_field_of_a_target() -> None:
    assert not {field.name for field in fields(Query)} & {field.name for field in fields(Target)}
    assert not issubclass(Target, Query) and not issubclass(Query, Target)


def test_a_handle_tells_slides_apart_and_nothing_else() -> None:
    assert slide_handle("abc") == slide_handle("abc") != slide_handle("abd")
    assert slide_handle("malignant.svs").removeprefix("slide-").isalnum()
    assert len(slide_handle("abc")) == len("slide-3fa9c1")


@pytest.fixture(scope="module")
def slide(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Slide]:
    """Return a slide of 2000 x 1600 px with an mpp of 0.25."""
    with open_slide(write_slide(tmp_path_factory.mktemp("slide") / "a.tif")) as opened:
        yield opened


@pytest.fixture
def entry(tmp_path: Path) -> TreeSlide:
    """Return the tree of that slide."""
    return load_tree(write_json(tmp_path / "t.json", tree_document())).slides[0]


def test_a_node_at_2_5x_is_looked_for_in_the_whole_slide_others_in_their_parents_box(
    entry: TreeSlide, slide: Slide
) -> None:
    regions = {node.id: entry.pose(node, slide, 5)[0].region for node in entry.nodes}
    assert regions["a"] == regions["b"] == slide.bounds == Box(0, 0, 2000, 1600)
    assert regions["a1"] == regions["a2"] == Box(100, 100, 1200, 1000)
    assert regions["a1i"] == Box(200, 200, 400, 400)


def test_a_parents_box_is_cut_to_the_scanned_area(shared: Path) -> None:
    root = Node(id="a", magnification=2.5, box=Box(2000, 1500, 2000, 2000), parent=None, finding="f")
    child = Node(id="b", magnification=10, box=Box(2400, 2000, 400, 400), parent="a", finding="f")
    with open_slide(shared / "slides" / "mirax-sparse-bounds.mrxs") as slide:
        query, _ = TreeSlide(slide="s", nodes=(root, child)).pose(child, slide, 5)
    assert query.region == Box(2304, 1792, 1696, 1708)


def test_a_query_tells_the_finding_and_the_targets_size_but_not_the_file(entry: TreeSlide, slide: Slide) -> None:
    query, target = entry.pose(entry.node("a2i"), slide, 5)
    assert query.handle == slide_handle(slide.fingerprint)
    assert (query.finding, query.magnification, query.organ, query.budget) == ("Necrosis.", 40, "breast", 5)
    assert (query.target_width, query.target_height) == (120, 80)
    assert target.box == Box(800, 600, 120, 80)
    assert not target.cut


@pytest.mark.parametrize(("width", "height", "cut"), [(2000, 1600, False), (2400, 800, True), (800, 1601, True)])
def test_a_target_larger_than_the_slide_is_cut_per_side(width: int, height: int, cut: bool, slide: Slide) -> None:
    node = Node(id="a", magnification=2.5, box=Box.centred((1000, 800), width, height), parent=None, finding="f")
    query, target = TreeSlide(slide="s", nodes=(node,)).pose(node, slide, 5)
    assert (query.target_width, query.target_height) == (min(width, 2000), min(height, 1600))
    assert target.cut is cut
    assert (target.box.width, target.box.height) == (width, height)


def test_nodes_of_the_search_region_with_the_same_words_are_equivalent(entry: TreeSlide, slide: Slide) -> None:
    first, second = Box(200, 200, 400, 400), Box(700, 500, 400, 400)
    assert entry.pose(entry.node("a1"), slide, 5)[1].equivalents == (first, second)
    assert entry.pose(entry.node("a2"), slide, 5)[1].equivalents == (second, first)
    assert entry.pose(entry.node("a"), slide, 5)[1].equivalents == (Box(100, 100, 1200, 1000),)


def test_equivalents_off_the_search_region_do_not_count(slide: Slide) -> None:
    document = tree_document()
    nodes = document["slides"][0]["nodes"]
    nodes.append({**nodes[3], "id": "b1", "parent": "b", "box": [1400, 1150, 200, 200]})
    entry = TreeSlide.model_validate(document["slides"][0])
    assert len(entry.pose(entry.node("b1"), slide, 5)[1].equivalents) == 1
    assert len(entry.pose(entry.node("a1"), slide, 5)[1].equivalents) == 2


def test_a_users_query_has_the_protocols_defaults(slide: Slide) -> None:
    query, cut = query_of_user(slide, "fat", 40)
    assert (query.region, query.budget, cut) == (slide.bounds, 5, False)
    assert (query.target_width, query.target_height) == pytest.approx((1024, 1024), rel=1e-3)
    query, cut = query_of_user(slide, "fat", 10)
    assert (query.target_width, query.target_height, query.budget, cut) == (2000, 1600, 7, True)


def test_a_users_region_is_cut_to_the_slide(slide: Slide) -> None:
    query, _ = query_of_user(slide, "fat", 10, region=[1900, -50, 500, 100], target_size=[64, 32], budget=3)
    assert query.region == Box(1900, 0, 100, 50)
    assert (query.target_width, query.target_height, query.budget) == (64, 32, 3)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"magnification": 7}, "magnification must be 2.5, 10 or 40, got 7"),
        ({"region": [1, 2, 3]}, "region must be four numbers x,y,w,h in level-0 pixels, got 3"),
        ({"region": [0, 0, 0, 9]}, "region must be at least 1 px wide and high, got 0 x 9"),
        ({"region": [float("nan"), 0, 9, 9]}, "region must be four finite numbers"),
        (
            {"region": [2000, 0, 9, 9]},
            r"region \[2000, 0, 9, 9\] lies outside the slide, whose area is \[0, 0, 2000, 1600\]",
        ),
        (
            {"region": [1999.25, 0, 9, 9]},
            r"the part of region \[1999.25, 0, 9, 9\] that lies on the slide must be at least 1 px wide and high, got",
        ),
        ({"target_size": [float("nan"), 9]}, "target size must be at least 1 px wide and high, got nan x 9"),
        ({"budget": 100_001}, "budget must be at most 100,000 ROIs, got 100001"),
        ({"target_size": [0, 9]}, "target size must be at least 1 px wide and high, got 0 x 9"),
        ({"target_size": [9]}, "target size must be two numbers w,h in level-0 pixels, got 1"),
        ({"budget": 0}, "budget must be at least 1 ROI, got 0"),
        ({"finding": " "}, "finding must say what to look for"),
    ],
)
def test_a_users_query_that_cannot_be_asked_is_refused(arguments: dict[str, Any], sentence: str, slide: Slide) -> None:
    with pytest.raises(ConfigError, match=sentence):
        query_of_user(slide, **{"finding": "fat", "magnification": 10, **arguments})


def test_a_slide_without_a_scale_needs_a_target_size(tmp_path: Path) -> None:
    with open_slide(write_blot_slide(tmp_path / "blot.tif", 512, 512, [])) as slide:
        with pytest.raises(SlideError, match="--mpp"):
            query_of_user(slide, "fat", 10)
        query, _ = query_of_user(slide, "fat", 10, target_size=[100, 100])
    assert query.target_width == 100


def test_the_protocols_budgets_and_step_limit() -> None:
    assert dict(protocol.BUDGETS) == {"tight": (5, 3, 2), "base": (10, 7, 5), "loose": (20, 15, 10)}
    assert [protocol.budget_for(m) for m in protocol.MAGNIFICATIONS] == [10, 7, 5]
    assert protocol.max_steps(5) == 21
