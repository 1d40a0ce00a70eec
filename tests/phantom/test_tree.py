"""The diagnostic tree of a phantom slide: it keeps the rules, and says what is drawn there."""

import statistics
from pathlib import Path

import pytest
import shapely

from pathnav.cohort.protocol import MAGNIFICATIONS
from pathnav.cohort.tree import Node, TreeSlide, load_tree
from pathnav.geometry import Box, iou
from pathnav.phantom import PhantomFiles
from pathnav.slide import open_slide
from support.phantoms import annotated, phantom

PHANTOMS = [(0, 1024), (0, 2048), (1, 4096), (2, 4096)]


@pytest.fixture(params=PHANTOMS, ids=lambda which: f"seed {which[0]}, {which[1]} px", scope="module")
def files(request: pytest.FixtureRequest, phantom_folder: Path) -> PhantomFiles:
    """Return phantoms of several sides."""
    return phantom(phantom_folder, *request.param)


@pytest.fixture
def entry(files: PhantomFiles) -> TreeSlide:
    """Return the tree of the phantom."""
    return load_tree(files.tree).entry(files.slide)


def search_regions(entry: TreeSlide, plane: Box) -> list[tuple[Box, list[Node]]]:
    """Return each search region with the nodes to be found in it."""
    parents: list[tuple[Box, str | None]] = [(plane, None), *((node.box, node.id) for node in entry.nodes)]
    regions = [(box, [node for node in entry.nodes if node.parent == name]) for box, name in parents]
    return [(box, nodes) for box, nodes in regions if nodes]


def plane_of(files: PhantomFiles) -> Box:
    with open_slide(files.slide) as slide:
        return Box(0, 0, slide.width, slide.height)


def test_every_node_gives_a_query_on_its_slide(files: PhantomFiles, entry: TreeSlide) -> None:
    tree = load_tree(files.tree)
    with open_slide(files.slide) as slide:
        posed = [tree.case(node.id, slide)[0] for node in entry.nodes]
    assert {query.magnification for query in posed} == set(MAGNIFICATIONS)
    assert entry.slide == files.slide.name
    assert (entry.mpp, entry.organ) == (0.25, "phantom")


def test_every_branch_goes_down_to_40x_and_has_a_path(entry: TreeSlide) -> None:
    parents = {node.parent for node in entry.nodes}
    assert sum(node.magnification == 2.5 for node in entry.nodes) >= 2
    assert all(node.id in parents for node in entry.nodes if node.magnification < 40)
    leaves = {node.id for node in entry.nodes if node.magnification == 40}
    assert {path.nodes[-1] for path in entry.paths} == leaves
    assert all(path.summary for path in entry.paths)


def test_words_tell_the_nodes_of_a_search_region_apart(files: PhantomFiles, entry: TreeSlide) -> None:
    for _, nodes in search_regions(entry, plane_of(files)):
        assert len({node.finding for node in nodes}) == len(nodes)


def test_targets_leave_room_to_search(files: PhantomFiles, entry: TreeSlide) -> None:
    for region, nodes in search_regions(entry, plane_of(files)):
        assert all(node.box.area < 0.4 * region.area for node in nodes)
        assert all(min(node.box.width, node.box.height) >= 64 for node in nodes)


def test_the_parents_centre_is_a_hint_and_not_the_answer(files: PhantomFiles, entry: TreeSlide) -> None:
    plane = plane_of(files)
    overlaps = [
        iou(Box.centred(region.centre, node.box.width, node.box.height).shifted_into(plane), node.box)
        for region, nodes in search_regions(entry, plane)
        for node in nodes
    ]
    assert 0.05 < statistics.mean(overlaps) < 0.3
    assert max(overlaps) < 0.85


@pytest.mark.parametrize(
    ("word", "name", "least"),
    [("fat", "fat", 0.08), ("ymph", "lymphoid", 0.08), ("gland", "glands", 0.08), ("umour", "tumor", 0.07)],
)
def test_a_finding_names_only_what_lies_in_its_box(
    word: str, name: str, least: float, files: PhantomFiles, entry: TreeSlide
) -> None:
    region = annotated(files, name)
    for node in entry.nodes:
        said = node.finding.replace("with scattered lymphocytes", "").replace("scattered lymphocytes and", "")
        if word in said.lower():
            box = node.box
            share = region.intersection(shapely.box(box.x, box.y, box.right, box.bottom)).area / box.area
            assert share >= least, f"{node.id} says {node.finding!r}, but {share:.0%} of it is {name}"


def test_a_box_full_of_tumour_is_called_tumour(files: PhantomFiles, entry: TreeSlide) -> None:
    region = annotated(files, "tumor")
    for node in entry.nodes:
        box = node.box
        if region.intersection(shapely.box(box.x, box.y, box.right, box.bottom)).area > 0.15 * box.area:
            assert "tumour" in node.finding.lower() or "pleomorphic" in node.finding, node.finding
