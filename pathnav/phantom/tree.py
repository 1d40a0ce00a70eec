"""The diagnostic tree of a phantom slide: boxes at 2.5x, 10x and 40x with sentences about what they really show."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pathnav.geometry import Box
from pathnav.phantom.layout import CELL_PX, Tissue
from pathnav.phantom.noise import streams
from pathnav.phantom.scene import Scene
from pathnav.phantom.stamps import STAMPS, Nucleus

MPP_UM = 0.25
_CHILDREN = {2.5: 4, 10: 3, 40: 2}  # wanted per parent
_LEAST = {2.5: 0.08, 10: 0.22, 40: 0.3}  # share of a box that its subject must reach
_OFF_CENTRE = 0.05  # least distance of a child's centre from its parent's, in sides of the parent
_TRIES = 90
_MENTIONED_SHARE = 0.10  # a tissue under a tenth of a box goes unmentioned
_SPRINKLED_PER_MM2 = 1200  # lymphocytes outside aggregates; the even background has about 100
# What is found at a magnification, and what lies beside it; subjects in the order in which they are looked for.
_WORDS = {
    2.5: {
        Tissue.SHEETS: "Cellular tumour that grows in solid dark sheets",
        Tissue.PALE: "Pale tumour of low cellularity with an ill-defined edge",
        Tissue.NESTS: "Infiltrating tumour in irregular nests",
        Tissue.GLANDS: "Field of reactive glands with preserved lumens",
        Tissue.LYMPHOID: "Dense blue lymphoid tissue",
        Tissue.FAT: "Lobules of mature fat",
        Tissue.STROMA: "Fibrous stroma of low cellularity",
    },
    10: {
        Tissue.SHEETS: "Solid sheets of tumour cells with little stroma between them",
        Tissue.PALE: "Sparse pale tumour cells scattered in a loose lilac matrix",
        Tissue.NESTS: "Irregular tumour nests divided by desmoplastic stroma",
        Tissue.GLANDS: "Reactive glands with preserved lumen and evenly spaced basal nuclei",
        Tissue.LYMPHOID: "Lymphoid aggregate of crowded small dark nuclei",
        Tissue.FAT: "Mature fat with thin-walled, empty vacuoles",
        Tissue.STROMA: "Wavy bundles of collagen with slender nuclei",
    },
    40: {
        Tissue.SHEETS: "Dense sheets of enlarged, hyperchromatic, pleomorphic nuclei",
        Tissue.PALE: "Large vesicular tumour nuclei with nucleoli, far apart in pale matrix",
        Tissue.NESTS: "Nest of irregular, crowded tumour nuclei with clumped chromatin",
        Tissue.GLANDS: "Gland lined by a single row of oval basal nuclei around an open lumen",
        Tissue.LYMPHOID: "Small round lymphocytes with dense chromatin, packed closely",
        Tissue.FAT: "Fat cells with optically empty vacuoles and thin membranes",
        Tissue.STROMA: "Collagen fibres with spindle nuclei that follow them",
    },
}
_BESIDE = {
    Tissue.SHEETS: "solid tumour",
    Tissue.PALE: "pale tumour",
    Tissue.NESTS: "tumour nests",
    Tissue.GLANDS: "reactive glands",
    Tissue.LYMPHOID: "a lymphoid aggregate",
    Tissue.FAT: "fat",
    Tissue.STROMA: "fibrous stroma",
    Tissue.GLASS: "the edge of the section",
}


@dataclass(frozen=True, slots=True)
class _Node:
    """One node of a tree."""

    name: str
    magnification: float
    box: Box
    subject: Tissue
    finding: str


@dataclass(frozen=True, slots=True)
class _View:
    """A box that might become a node, and what lies in it."""

    box: Box
    shares: dict[Tissue, float]  # of the box; glands and fat count as stroma where no gland or fat cell is centred
    strengths: dict[Tissue, float]  # how characteristic the box is for each tissue, 0..1
    extras: tuple[str, ...]  # what else there is, in words

    def finding(self, subject: Tissue, magnification: float) -> str:
        """Return the sentence about the box whose subject is a tissue."""
        others = sorted(
            (tissue for tissue, share in self.shares.items() if tissue != subject and share >= _MENTIONED_SHARE),
            key=lambda tissue: (-self.shares[tissue], tissue),
        )
        text = _WORDS[magnification][subject]
        if others:
            text += f", beside {_joined([_BESIDE[tissue] for tissue in others[:3]])}"
        return f"{text}{f', with {_joined(self.extras)}' if self.extras else ''}."


def _joined(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def _view(scene: Scene, box: Box, magnification: float) -> _View:
    """Return what a scene shows in a level-0 box."""
    rows, columns = (
        slice(int(start) // CELL_PX, max(int(start) // CELL_PX + 1, int(end) // CELL_PX))
        for start, end in ((box.y, box.bottom), (box.x, box.right))
    )
    window = scene.layout.raster[rows, columns]
    shares = {tissue: float((window == tissue).mean()) for tissue in Tissue}
    glands = scene.glands[_inside(scene.glands, box), 2].tolist()
    for tissue, is_there in ((Tissue.GLANDS, bool(glands)), (Tissue.FAT, _inside(scene.fat_cells, box).any())):
        if not is_there:
            shares[Tissue.STROMA] += shares[tissue]
            shares[tissue] = 0.0
    in_glands = sum(np.pi * scene.decals[which].radius_px ** 2 for which in glands) / box.area
    in_nests = float(scene.nests[rows, columns].mean())
    strengths = {tissue: min(share, in_nests) if tissue.is_tumour else share for tissue, share in shares.items()}
    strengths[Tissue.GLANDS] *= min(1.0, 2 * in_glands)
    cells = scene.nuclei[_inside(scene.nuclei, box)]
    cells = cells[cells[:, 2] // STAMPS == Nucleus.LYMPHOCYTE]
    loose = int((scene.layout.tissue_at(cells) != Tissue.LYMPHOID).sum())
    extras = ["scattered lymphocytes"] if loose > _SPRINKLED_PER_MM2 * box.area * (MPP_UM / 1000) ** 2 else []
    if vessels := int(_inside(scene.vessels, box).sum()) if magnification > 2.5 else 0:
        extras.append("a small vessel full of red cells" if vessels == 1 else "small vessels full of red cells")
    return _View(box, shares, strengths, tuple(extras))


def _inside(rows: NDArray[np.number], box: Box) -> NDArray[np.bool_]:
    """Return which rows (x, y, ...) lie in a box."""
    x, y = rows[:, 0], rows[:, 1]
    return np.asarray((x >= box.x) & (x < box.right) & (y >= box.y) & (y < box.bottom))


def tree_document(seed: int, scene: Scene, slide_name: str) -> dict[str, Any]:
    """Return the tree of a scene as JSON objects of the format `pathnav-tree-1`, with one path per 40x node."""
    side = scene.layout.side
    branches = _grow(streams(seed, side)("tree"), scene, Box(0, 0, side, side), ())
    rows, paths = [], []
    for branch in branches:
        names, node = [step.name for step in branch], branch[-1]
        parent = names[-2] if len(names) > 1 else None
        row = {"id": node.name, "magnification": node.magnification, "box": node.box.as_list(), "parent": parent}
        rows.append({**row, "finding": node.finding})
        if node.magnification == 40:
            verdict = "Tumour" if node.subject.is_tumour else "No tumour at the end of this path"
            paths.append({"nodes": names, "summary": f"{verdict}. {' Then: '.join(step.finding for step in branch)}"})
    slide = {"slide": slide_name, "mpp": MPP_UM, "organ": "phantom", "nodes": rows, "paths": paths}
    return {"format": "pathnav-tree-1", "slides": [slide]}


def _grow(rng: np.random.Generator, scene: Scene, region: Box, above: tuple[_Node, ...]) -> list[tuple[_Node, ...]]:
    """Return the branches that begin with `above`, each before those that go on from it.

    Every branch reaches 40x in the end, and siblings never share a finding.
    """
    magnification = list(_WORDS)[len(above)]
    views = _views(rng, scene, region, magnification)
    subjects = list(_WORDS[magnification])
    if above:  # first the parent's own, and once more where there is room
        own = above[-1].subject
        subjects = [own, *(subject for subject in subjects if subject is not own), own]
    siblings: list[_Node] = []
    branches: list[tuple[_Node, ...]] = []
    for subject in subjects:
        apart = [
            view
            for view in views
            if view.strengths[subject] >= _LEAST[magnification]
            and all(_overlap(view.box, node.box) < 0.35 for node in siblings)
            and view.finding(subject, magnification) not in {node.finding for node in siblings}
        ]
        if not apart or len(siblings) == _CHILDREN[magnification]:
            continue
        best = max(apart, key=lambda view: view.strengths[subject])
        own_name = ("abcd", "123", ("i", "ii"))[len(above)][len(siblings)]
        name = (above[-1].name if above else "") + own_name
        node = _Node(name, magnification, best.box, subject, best.finding(subject, magnification))
        further = _grow(rng, scene, best.box, (*above, node)) if magnification < 40 else []
        if further or magnification == 40:
            siblings.append(node)
            branches += [(*above, node), *further]
    return branches


def _views(rng: np.random.Generator, scene: Scene, region: Box, magnification: float) -> list[_View]:
    """Return boxes inside the slide whose centres lie in the region, away from its centre."""
    side = scene.layout.side
    plane = Box(0, 0, side, side)
    share = 0.55 if side < 4096 else 0.44  # of the parent's side; on small slides 40x boxes would show next to nothing
    # A view of 1,024 px at the node's magnification, unless the slide is too small for it.
    longest = min(1024 * 40 / magnification, share * min(region.width, region.height))
    views = []
    for _ in range(_TRIES):
        # As annotators do, rather near the parent's centre than at its edge; never just there.
        across, down = rng.triangular(0.06, 0.5, 0.94, 2)
        width, height = longest * rng.uniform(0.82, 1.0, 2)
        box = Box.centred((region.x + across * region.width, region.y + down * region.height), width, height)
        box = Box(*(int(number) for number in box.shifted_into(plane).as_list()))
        x, y = box.centre
        away = max(abs(x - region.centre[0]) / region.width, abs(y - region.centre[1]) / region.height)
        if region.holds_point((x, y)) and away >= _OFF_CENTRE:
            views.append(_view(scene, box, magnification))
    return views


def _overlap(first: Box, second: Box) -> float:
    """Return the share of the smaller box that two boxes have in common."""
    return first.intersection(second).area / min(first.area, second.area)
