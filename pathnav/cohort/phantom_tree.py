"""The diagnostic tree of a phantom slide: boxes at 2.5x, 10x and 40x with findings, in the form `pathnav-tree-1`."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pathnav.cohort.phantom_findings import Composition, composition, sentence
from pathnav.cohort.phantom_layout import Tissue
from pathnav.cohort.phantom_scene import Scene
from pathnav.geometry import Box

MAGNIFICATIONS = (2.5, 10, 40)
FULL_SIDE_PX = {2.5: 16_384, 10: 4096, 40: 1024}  # a view of 1,024 px at that magnification, at 0.25 um
_SHARE_OF_PARENT = 0.44  # of the parent's side, on slides too small for a full view
_SHARE_OF_SMALL_PARENT = 0.55  # on slides under `_SMALL_PX`, whose 40x boxes would show next to nothing
_SMALL_PX = 4096
_CHILDREN = {2.5: 4, 10: 3, 40: 2}  # wanted per parent
_LEAST = {2.5: 0.08, 10: 0.22, 40: 0.3}  # share of a box that its subject must reach
_OFF_CENTRE = 0.05  # least distance of a child's centre from its parent's, in sides of the parent
_TRIES = 90
# The subjects in the order in which they are looked for.
_SUBJECTS = (
    Tissue.SHEETS,
    Tissue.PALE,
    Tissue.NESTS,
    Tissue.GLANDS,
    Tissue.LYMPHOID,
    Tissue.FAT,
    Tissue.STROMA,
)


@dataclass
class Node:
    """One node while the tree grows."""

    name: str
    magnification: float
    box: Box
    subject: Tissue
    finding: str
    children: list["Node"] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A box that might become a node."""

    box: Box
    shown: Composition


def grow_tree(rng: np.random.Generator, scene: Scene) -> list[Node]:
    """Return the 2.5x nodes of a scene with their children; siblings never share a finding."""
    plane = Box(0, 0, scene.layout.side, scene.layout.side)
    return _grow(rng, scene, plane, None, 0)


def _grow(rng: np.random.Generator, scene: Scene, region: Box, parent: Node | None, depth: int) -> list[Node]:
    """Return the nodes of a search region; nodes without children above 40x are dropped."""
    if depth == len(MAGNIFICATIONS):
        return []
    magnification = MAGNIFICATIONS[depth]
    candidates = _candidates(rng, scene, region, magnification)
    nodes: list[Node] = []
    for subject in _subject_order(parent):
        if len(nodes) == _CHILDREN[magnification]:
            break
        found = _best(candidates, subject, magnification, nodes)
        if found is None:
            continue
        name = _name(parent, depth, len(nodes))
        node = Node(name, magnification, found.box, subject, sentence(subject, found.shown, magnification))
        node.children = _grow(rng, scene, found.box, node, depth + 1)
        if node.children or depth == len(MAGNIFICATIONS) - 1:
            nodes.append(node)
    return nodes


def _subject_order(parent: Node | None) -> Sequence[Tissue]:
    """Return the subjects to look for: first the parent's own, twice where there is room."""
    if parent is None:
        return _SUBJECTS
    rest = [subject for subject in _SUBJECTS if subject is not parent.subject]
    return [parent.subject, *rest, parent.subject]


def _candidates(rng: np.random.Generator, scene: Scene, region: Box, magnification: float) -> list[_Candidate]:
    """Return boxes inside the slide whose centres lie in the region, away from its centre."""
    side = scene.layout.side
    plane = Box(0, 0, side, side)
    across, down = region.centre
    share = _SHARE_OF_SMALL_PARENT if side < _SMALL_PX else _SHARE_OF_PARENT
    found = []
    for _ in range(_TRIES):
        # As annotators do, rather near the parent's centre than at its edge; never just there.
        x, y = region.x + _place(rng) * region.width, region.y + _place(rng) * region.height
        longest = min(FULL_SIDE_PX[magnification], share * min(region.width, region.height))
        width, height = longest * rng.uniform(0.82, 1.0), longest * rng.uniform(0.82, 1.0)
        box = _whole(Box.centred((x, y), width, height).shifted_into(plane))
        x, y = box.centre
        away = max(abs(x - across) / region.width, abs(y - down) / region.height)
        if region.holds_point((x, y)) and away >= _OFF_CENTRE:
            found.append(_Candidate(box, composition(scene, box)))
    return found


def _place(rng: np.random.Generator) -> float:
    """Return a relative place along a side of the parent."""
    return float(rng.triangular(0.06, 0.5, 0.94))


def _whole(box: Box) -> Box:
    """Return the box on whole pixels, never beyond the old one's right and lower edge."""
    return Box(int(box.x), int(box.y), int(box.width), int(box.height))


def _best(candidates: list[_Candidate], subject: Tissue, magnification: float, taken: list[Node]) -> _Candidate | None:
    """Return the box that shows a subject best, lies apart from its siblings and is told apart from them by words."""
    apart = [
        candidate
        for candidate in candidates
        if candidate.shown.strength(subject) >= _LEAST[magnification]
        and all(_far(candidate.box, node.box) for node in taken)
        and sentence(subject, candidate.shown, magnification) not in {node.finding for node in taken}
    ]
    return max(apart, key=lambda candidate: candidate.shown.strength(subject), default=None)


def _far(first: Box, second: Box) -> bool:
    """Return whether two boxes overlap by less than about half of a side."""
    common = first.intersection(second).area
    return common < 0.35 * min(first.area, second.area)


def _name(parent: Node | None, depth: int, index: int) -> str:
    """Return an id: a, a1, a1i."""
    own = ("abcdefgh"[index], str(index + 1), ("i", "ii", "iii", "iv")[index % 4])[depth]
    return own if parent is None else f"{parent.name}{own}"


def tree_document(nodes: list[Node], slide_name: str, mpp_um: float) -> dict[str, Any]:
    """Return the tree as JSON objects of the format `pathnav-tree-1`."""
    rows = [
        {
            "id": node.name,
            "magnification": node.magnification,
            "box": node.box.as_list(),
            "parent": None if parent is None else parent.name,
            "finding": node.finding,
        }
        for parent, node in _walk(nodes, None)
    ]
    slide = {"slide": slide_name, "mpp": mpp_um, "organ": "phantom", "nodes": rows, "paths": _paths(nodes)}
    return {"format": "pathnav-tree-1", "slides": [slide]}


def _walk(nodes: list[Node], parent: Node | None) -> Iterator[tuple[Node | None, Node]]:
    """Yield each node after its parent."""
    for node in nodes:
        yield parent, node
        yield from _walk(node.children, node)


def _paths(nodes: list[Node]) -> list[dict[str, Any]]:
    """Return one path per 40x node."""
    paths = []
    for top in nodes:
        for middle in top.children:
            for leaf in middle.children:
                verdict = "Tumour" if leaf.subject.is_tumour else "No tumour at the end of this path"
                steps = " Then: ".join([top.finding, middle.finding, leaf.finding])
                names = [top.name, middle.name, leaf.name]
                paths.append({"nodes": names, "summary": f"{verdict}. {steps}"})
    return paths
