"""Sentences about what a box of a phantom slide really shows, as a pathologist would put them."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pathnav.cohort.phantom_layout import Tissue
from pathnav.cohort.phantom_scene import Scene
from pathnav.cohort.phantom_stamps import Nucleus
from pathnav.geometry import Box

MENTIONED_SHARE = 0.10  # a tissue under a tenth of a box goes unmentioned
_MM2_PER_PX = 0.25e-3**2
_SPRINKLED_PER_MM2 = 1200  # lymphocytes outside aggregates; the even background has about 100

_MAIN = {
    2.5: {
        Tissue.STROMA: "Fibrous stroma of low cellularity",
        Tissue.FAT: "Lobules of mature fat",
        Tissue.GLANDS: "Field of reactive glands with preserved lumens",
        Tissue.LYMPHOID: "Dense blue lymphoid tissue",
        Tissue.SHEETS: "Cellular tumour that grows in solid dark sheets",
        Tissue.NESTS: "Infiltrating tumour in irregular nests",
        Tissue.PALE: "Pale tumour of low cellularity with an ill-defined edge",
    },
    10: {
        Tissue.STROMA: "Wavy bundles of collagen with slender nuclei",
        Tissue.FAT: "Mature fat with thin-walled, empty vacuoles",
        Tissue.GLANDS: "Reactive glands with preserved lumen and evenly spaced basal nuclei",
        Tissue.LYMPHOID: "Lymphoid aggregate of crowded small dark nuclei",
        Tissue.SHEETS: "Solid sheets of tumour cells with little stroma between them",
        Tissue.NESTS: "Irregular tumour nests divided by desmoplastic stroma",
        Tissue.PALE: "Sparse pale tumour cells scattered in a loose lilac matrix",
    },
    40: {
        Tissue.STROMA: "Collagen fibres with spindle nuclei that follow them",
        Tissue.FAT: "Fat cells with optically empty vacuoles and thin membranes",
        Tissue.GLANDS: "Gland lined by a single row of oval basal nuclei around an open lumen",
        Tissue.LYMPHOID: "Small round lymphocytes with dense chromatin, packed closely",
        Tissue.SHEETS: "Dense sheets of enlarged, hyperchromatic, pleomorphic nuclei",
        Tissue.NESTS: "Nest of irregular, crowded tumour nuclei with clumped chromatin",
        Tissue.PALE: "Large vesicular tumour nuclei with nucleoli, far apart in pale matrix",
    },
}
_BESIDE = {
    Tissue.GLASS: "the edge of the section",
    Tissue.STROMA: "fibrous stroma",
    Tissue.FAT: "fat",
    Tissue.GLANDS: "reactive glands",
    Tissue.LYMPHOID: "a lymphoid aggregate",
    Tissue.SHEETS: "solid tumour",
    Tissue.NESTS: "tumour nests",
    Tissue.PALE: "pale tumour",
}


@dataclass(frozen=True, slots=True)
class Composition:
    """What lies in a box.

    Args:
        shares: Share of the box that each tissue covers; stroma between glands, or fat cells, counts as theirs if
            one of them has its centre in the box, else as stroma.
        glands: Share of the box that lies inside glands whose centre is in the box.
        nests: Share of the box that is tumour epithelium rather than stroma between nests.
        vessels: Vessels whose centre lies in the box.
        lymphocytes_per_mm2: Lymphocytes outside aggregates.
    """

    shares: dict[Tissue, float]
    glands: float
    nests: float
    vessels: int
    lymphocytes_per_mm2: float

    def strength(self, tissue: Tissue) -> float:
        """Return how characteristic the box is for a tissue, 0..1."""
        if tissue is Tissue.GLANDS:
            return self.shares[tissue] * min(1.0, 2 * self.glands)
        return min(self.shares[tissue], self.nests) if tissue.is_tumour else self.shares[tissue]


def composition(scene: Scene, box: Box) -> Composition:
    """Return what the scene shows in a level-0 box."""
    shares = scene.layout.shares(box)
    stamps = scene.glands.stamp[_inside(scene.glands.xy, box)].tolist()
    if not stamps:
        shares[Tissue.STROMA] += shares[Tissue.GLANDS]
        shares[Tissue.GLANDS] = 0.0
    if not _inside(scene.fat_cells, box).any():
        shares[Tissue.STROMA] += shares[Tissue.FAT]
        shares[Tissue.FAT] = 0.0
    cells = scene.nuclei.xy[_inside(scene.nuclei.xy, box) & (scene.nuclei.kind == Nucleus.LYMPHOCYTE)]
    loose = int((scene.layout.tissue_at(cells) != Tissue.LYMPHOID).sum())
    return Composition(
        shares=shares,
        glands=sum(np.pi * scene.palette.glands[stamp].radius_px ** 2 for stamp in stamps) / box.area,
        nests=float(scene.layout.cut(scene.ground.nests, box).mean()),
        vessels=int(_inside(scene.vessels.xy, box).sum()),
        lymphocytes_per_mm2=loose / (box.area * _MM2_PER_PX),
    )


def _inside(xy: NDArray[np.number], box: Box) -> NDArray[np.bool_]:
    """Return which points lie in a box."""
    x, y = xy[:, 0], xy[:, 1]
    return np.asarray((x >= box.x) & (x < box.right) & (y >= box.y) & (y < box.bottom))


def sentence(main: Tissue, shown: Composition, magnification: float) -> str:
    """Return the finding of a box whose subject is `main`."""
    others = sorted(
        (tissue for tissue, share in shown.shares.items() if tissue != main and share >= MENTIONED_SHARE),
        key=lambda tissue: (-shown.shares[tissue], tissue),
    )
    text = _MAIN[magnification][main]
    if others:
        text += f", beside {_joined([_BESIDE[tissue] for tissue in others[:3]])}"
    extras = []
    if shown.lymphocytes_per_mm2 > _SPRINKLED_PER_MM2:
        extras.append("scattered lymphocytes")
    if shown.vessels and magnification > 2.5:
        extras.append("a small vessel full of red cells" if shown.vessels == 1 else "small vessels full of red cells")
    return f"{text}{f', with {_joined(extras)}' if extras else ''}."


def _joined(words: list[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
