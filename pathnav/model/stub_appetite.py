"""What kind of tissue a finding's words ask for, and how much of it a window holds."""

from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from pathnav.model.stub_vision import Grid

Floats = NDArray[np.float64]

PATCH = 4  # cells: 32 px of a 1,024 px view


class Appetite(StrEnum):
    """What the stub looks for; it knows a few words and no pathology."""

    DENSE = "nucleus-rich"
    GLANDULAR = "glandular"
    SPARSE = "nucleus-poor"
    PALE = "pale"


_WORDS = {
    Appetite.DENSE: "dense tumor tumour carcinoma infiltrat lymph inflam mitot sheet nest crowd packed hyperchrom",
    Appetite.GLANDULAR: "gland duct acin lumen lumina tubul crypt cribriform lobule",
    Appetite.SPARSE: "stroma sparse fibr collagen acellular hypocellular desmoplas scar muscle necro mucin apart",
    Appetite.PALE: "fat adipo pale blank glass empty vacuole lipid background",
}
_SPARSE_PHRASES = ("low cellularity", "far apart", "pale tumo", "sparse pale")
_PHRASE_WEIGHT = 4  # a phrase like these turns the words around it
_SUBJECT_WEIGHT = 4  # what a sentence is about comes before its "with", "beside" or "without"


def appetite(finding: str) -> Appetite:
    """Return what most words of a finding (in lower case) ask for; nuclei where none is known."""
    subject = finding
    for joint in (" with ", " beside ", " without ", ","):
        subject = subject.partition(joint)[0]
    counts = {
        taste: sum(finding.count(word) + (_SUBJECT_WEIGHT - 1) * subject.count(word) for word in words.split())
        for taste, words in _WORDS.items()
    }
    counts[Appetite.SPARSE] += _PHRASE_WEIGHT * sum(phrase in finding for phrase in _SPARSE_PHRASES)
    return max(counts, key=lambda taste: counts[taste])  # the first named wins a tie


def taste_planes(taste: Appetite, haematoxylin: Grid, tissue: Grid) -> tuple[Grid, ...]:
    """Return the planes whose sums over a window `worth` needs, shape (rows, cols)."""
    if taste is Appetite.DENSE:
        return (haematoxylin,)
    if taste is Appetite.GLANDULAR:
        return haematoxylin, haematoxylin**2, tissue
    if taste is Appetite.SPARSE:
        return haematoxylin, tissue
    share = _coarse(tissue)  # fat is white and tissue in every patch, the edge of the section is either
    return (4 * share * (1 - share),)


def worth(taste: Appetite, seen: Floats, *sums: Floats) -> Floats:
    """Return the worth of windows, 0 to about 1.

    Args:
        taste: What is looked for.
        seen: Sum of seen shares per window.
        sums: Sums of the planes of `taste_planes`.
    """
    means = [plane / np.maximum(seen, 1e-6) for plane in sums]
    if taste is Appetite.GLANDULAR:  # rims of nuclei around pale lumina: density that varies within the window
        density, squares, share = means
        return np.sqrt(np.maximum(squares - density**2, 0)) * np.minimum(1, 2 * share)
    if taste is Appetite.SPARSE:
        density, share = means
        return share * np.exp(-8 * density / np.maximum(share, 1e-6))
    return means[0]


def _coarse(plane: Grid) -> Grid:
    """Return the plane with each cell replaced by the mean of its patch of `PATCH` cells a side."""
    rows, cols = (-(-side // PATCH) for side in plane.shape)
    padded = np.pad(plane, ((0, rows * PATCH - plane.shape[0]), (0, cols * PATCH - plane.shape[1])), mode="edge")
    means = padded.reshape(rows, PATCH, cols, PATCH).mean(axis=(1, 3), dtype=np.float32)
    spread: Grid = means.repeat(PATCH, axis=0).repeat(PATCH, axis=1)[: plane.shape[0], : plane.shape[1]]
    return spread
