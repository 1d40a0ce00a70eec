"""Tumour against other tissue: from cosines with two sets of prompts to a probability."""

from collections.abc import Sequence

import numpy as np

from pathnav.geometry import Floats
from pathnav.retrieval.model import ImageTextModel, Vectors
from pathnav.retrieval.prompts import TUMOUR_CONTRAST, Contrast

SHARPNESS = 20.0
"""With a model's own scale, up to 100 (Radford et al. 2021), all differences above 0.09 are 1.0000: equals."""


def contrast_of(tumour: str | Sequence[str] | None, not_tumour: str | Sequence[str] | None) -> Contrast:
    """Return the prompts of a user, each side one text or several; pathnav's own where a side is left out.

    Raises:
        ConfigError: If a side is no text.
    """
    if tumour is None and not_tumour is None:
        return TUMOUR_CONTRAST
    sides = zip((tumour, not_tumour), (TUMOUR_CONTRAST.tumour, TUMOUR_CONTRAST.not_tumour), strict=True)
    first, second = (
        (own,) if isinstance(own, str) else default if own is None else tuple(own) for own, default in sides
    )
    return Contrast(first, second)


def probabilities(model: ImageTextModel, vectors: Vectors, contrast: Contrast) -> Floats:
    """Return how much nearer images are to tumour than to other tissue: float64, shape (n,), in [0, 1].

    It is the softmax over `SHARPNESS` times the two cosines; 0.5 is as near to one as to the other.

    Args:
        model: Whose embeddings they are.
        vectors: float32, shape (n, dimensions), rows of unit length.
        contrast: The prompts.
    """
    cosines = vectors.astype(np.float64) @ contrast.vectors(model).astype(np.float64).T
    found: Floats = 1 / (1 + np.exp(SHARPNESS * (cosines[:, 1] - cosines[:, 0])))
    return found
