"""Diagnostic trees: what the format accepts, and what it says about what it does not."""

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pathnav.cohort.tree import load_tree, misfits
from pathnav.errors import AnnotationError
from pathnav.geometry import Box
from pathnav.slide import Slide, open_slide
from support.trees import SLIDE_HEIGHT, SLIDE_WIDTH, tree_document, write_json, write_slide


@pytest.fixture(scope="module")
def slide(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Slide]:
    """Return a slide of 2000 x 1600 px with an mpp of 0.25."""
    with open_slide(write_slide(tmp_path_factory.mktemp("slide") / "a.tif")) as opened:
        yield opened


def complaints(path: Path, document: Any) -> list[str]:
    """Return the lines with which a document is refused."""
    write_json(path, document)
    with pytest.raises(AnnotationError) as caught:
        load_tree(path)
    return str(caught.value).splitlines()


def test_a_tree_that_keeps_every_rule_loads_as_written(tmp_path: Path) -> None:
    document = tree_document()
    tree = load_tree(write_json(tmp_path / "t.json", document))
    assert tree.model_dump(mode="json") == document
    assert tree.slides[0].node("a1").box == Box(200, 200, 400, 400)


def change(**changes: Any) -> Any:
    """Return what changes keys of one node (`node=2`) of the document."""

    def spoil(document: dict[str, Any]) -> None:
        values = dict(changes)
        document["slides"][0]["nodes"][values.pop("node")].update(values)

    return spoil


def drop(node: int, key: str) -> Any:
    """Return what removes a key of one node."""
    return lambda document: document["slides"][0]["nodes"][node].pop(key)


def route(*nodes: str) -> Any:
    """Return what replaces the first path."""
    return lambda document: document["slides"][0]["paths"][0].update(nodes=list(nodes))


SPOILT = {
    "magnification": (change(node=1, magnification=7), "node 'a1': magnification: must be 2.5, 10 or 40, got 7"),
    "magnification as text": (change(node=1, magnification="10"), "node 'a1': magnification: must be 2.5, 10 or 40"),
    "three numbers": (change(node=0, box=[1, 2, 3]), "node 'a': box: must be four numbers [x, y, w, h], got [1, 2, 3]"),
    "numbers as text": (change(node=0, box=["1", 2, 3, 4]), "node 'a': box: must be four numbers"),
    "not finite": (change(node=5, box=[1, 2, math.nan, 4]), "node 'b': box: must be four finite numbers"),
    "no width": (change(node=4, box=[800, 600, 0, 80]), "node 'a2i': box: must have a positive width and height"),
    "negative height": (
        change(node=4, box=[800, 600, 9, -8]),
        "node 'a2i': box: must have a positive width and height",
    ),
    "empty finding": (change(node=2, finding="  "), "node 'a1i': finding: must not be empty"),
    "no finding": (drop(2, "finding"), "node 'a1i': finding: missing"),
    "unknown key": (
        change(node=2, findings="x"),
        "node 'a1i': findings: unknown key (did you mean slides.nodes",
    ),
    "no id": (drop(2, "id"), "nodes.2.id: missing"),
    "double id": (change(node=4, id="a1i"), "node 'a1i': the id is used more than once in this slide"),
    "root with parent": (change(node=5, parent="a"), "node 'b': a 2.5x node has no parent, got 'a'"),
    "no parent": (change(node=4, parent=None), "node 'a2i': a 40x node needs a parent at 10x"),
    "unknown parent": (change(node=4, parent="z"), "node 'a2i': its parent 'z' is not in this slide"),
    "skipped step": (
        change(node=4, parent="a"),
        "node 'a2i': a 40x node needs a parent at 10x, but 'a' is at 2.5x",
    ),
    "centre outside": (
        change(node=4, box=[100, 100, 120, 80]),
        "node 'a2i': its centre [160.0, 140.0] lies outside the box [700, 500, 400, 400] of its parent 'a2'",
    ),
    "path of strangers": (route("a", "x", "y"), "paths.0: there is no node 'x', 'y' in this slide"),
    "path not from the root": (route("a1", "a1i"), "paths.0: a path starts at a 2.5x node, but 'a1' is at 10x"),
    "path that jumps": (route("a", "a1", "a2i"), "paths.0: 'a1' is not the parent of 'a2i'"),
    "path that stops": (route("a", "a1"), "paths.0: a path ends at a leaf, but 'a1' is the parent of a1i"),
    "empty path": (route(), "paths.0.nodes: must not be empty"),
}


@pytest.mark.parametrize("name", SPOILT)
def test_a_broken_rule_is_told_with_file_slide_node_and_reason(name: str, tmp_path: Path) -> None:
    spoil, expected = SPOILT[name]
    document = tree_document()
    spoil(document)
    lines = complaints(tmp_path / "t.json", document)
    assert [line for line in lines if line.startswith(f"{tmp_path}/t.json: slide 'a.tif'") and expected in line], lines


def test_all_broken_rules_are_told_at_once_in_the_order_of_the_file(tmp_path: Path) -> None:
    document = tree_document()
    for spoil in (change(node=0, box=[0, 0, 0, 5]), change(node=3, finding=""), drop(4, "magnification")):
        spoil(document)
    lines = complaints(tmp_path / "t.json", document)
    assert [line.split("node ")[1].split(":")[0] for line in lines] == ["'a'", "'a2'", "'a2i'"]


def test_all_broken_links_are_told_at_once_in_the_order_of_the_file(tmp_path: Path) -> None:
    document = tree_document()
    for spoil in (change(node=1, parent="z"), change(node=4, parent="a"), route("a1", "a1i")):
        spoil(document)
    lines = complaints(tmp_path / "t.json", document)
    assert ["a1" in lines[0], "a2i" in lines[1], "paths.0" in lines[-1]] == [True, True, True]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (None, "cannot be read: No such file"),
        ("", "is not JSON"),
        ("[1]", "expected an object"),
        ('{"format": "pathnav-tree-2", "slides": 3}', "format must be 'pathnav-tree-1', got \"pathnav-tree-2\""),
        ('{"format": "pathnav-tree-1"}', "slides: missing"),
        ('{"format": "pathnav-tree-1", "slides": []}', "slides: must not be empty"),
        (
            '{"format": "pathnav-tree-1", "slides": [{"slide": "a", "nodes": []}]}',
            "'a': nodes: must not be empty",
        ),
        ('{"format": "pathnav-tree-1", "slides": [5]}', "slides.0: must be"),
    ],
)
def test_a_file_that_is_no_tree_is_refused_in_one_line(text: str | None, expected: str, tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    if text is not None:
        path.write_text(text)
    with pytest.raises(AnnotationError) as caught:
        load_tree(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert expected in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "box", [[-1, 0, 9, 9], [0, -0.5, 9, 9], [SLIDE_WIDTH - 8, 0, 9, 9], [0, SLIDE_HEIGHT - 8, 9, 9]]
)
def test_a_box_that_leaves_the_slide_is_a_fault_on_that_slide(box: list[float], slide: Slide, tmp_path: Path) -> None:
    document = tree_document()
    change(node=5, box=box)(document)
    tree = load_tree(write_json(tmp_path / "t.json", document))
    with pytest.raises(
        AnnotationError, match=r"t\.json: slide 'a\.tif', node 'b': its box .* leaves the slide of 2000 x 1600 px"
    ):
        tree.case("a", slide)


def test_a_centre_off_the_scanned_area_is_a_fault(shared: Path, tmp_path: Path) -> None:
    document = tree_document(mpp=None)
    document["slides"][0] |= {"nodes": document["slides"][0]["nodes"][:1], "paths": []}
    change(node=0, box=[0, 0, 2000, 1600])(document)
    tree = load_tree(write_json(tmp_path / "t.json", document))
    with open_slide(shared / "slides" / "mirax-sparse-bounds.mrxs") as slide:
        faults = misfits(tree.slides[0], slide)
    expected = "its centre [1000.0, 800.0] lies outside the scanned area [2304, 1792, 2048, 2816]"
    assert faults == [f"slide 'a.tif', node 'a': {expected}"]


@pytest.mark.parametrize(("mpp", "faults"), [(0.25, 0), (0.26, 0), (None, 0), (0.5, 1), (0.125, 1)])
def test_a_tree_drawn_on_a_scan_of_another_scale_is_a_fault(
    mpp: float | None, faults: int, slide: Slide, tmp_path: Path
) -> None:
    tree = load_tree(write_json(tmp_path / "t.json", tree_document(mpp=mpp)))
    assert len(misfits(tree.slides[0], slide)) == faults


def several(*names: str) -> dict[str, Any]:
    """Return a file with a tree for each name."""
    slides = [tree_document(name)["slides"][0] for name in names]
    return {"format": "pathnav-tree-1", "slides": slides}


def test_the_only_tree_of_a_file_belongs_to_any_slide_and_among_several_the_stem_decides(tmp_path: Path) -> None:
    assert load_tree(write_json(tmp_path / "t.json", several("x.svs"))).entry("/data/y.tif").slide == "x.svs"
    tree = load_tree(write_json(tmp_path / "t.json", several("x.svs", "slides/y.svs")))
    assert tree.entry("/elsewhere/y.tiff").slide == "slides/y.svs"
    with pytest.raises(AnnotationError, match=r"a slide named 'z', found 0 among x\.svs, slides/y\.svs"):
        tree.entry("z.svs")
    (line,) = complaints(tmp_path / "t.json", several("x.svs", "other/x.tif"))
    assert line.startswith(f"{tmp_path}/t.json: slide 'other/x.tif': a second entry for 'x'")


def test_an_unknown_node_is_refused_with_the_nearest_ids(slide: Slide, tmp_path: Path) -> None:
    tree = load_tree(write_json(tmp_path / "t.json", tree_document()))
    with pytest.raises(AnnotationError, match=r"has no node 'a1j'; it has a1, a1i"):
        tree.case("a1j", slide)


def test_json_beyond_the_standard_is_refused_by_its_value_not_by_a_crash(tmp_path: Path) -> None:
    text = json.dumps(tree_document()).replace("0.25", "Infinity")
    (tmp_path / "t.json").write_text(text)
    with pytest.raises(AnnotationError, match=r"slide 'a\.tif': mpp: must be"):
        load_tree(tmp_path / "t.json")
