"""What a model of images and texts is asked: sentences around a finding, and tumour against no tumour."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pathnav.errors import ConfigError
from pathnav.geometry import Floats
from pathnav.retrieval.model import ImageTextModel, Vectors

SHARPNESS = 20.0
"""With a model's own scale, up to 100 (Radford et al. 2021), all differences above 0.09 are 1.0000: equals."""

VERSION = "finding-1"
"""Goes up when a template changes: vectors of other templates are other vectors."""

FINDING_TEMPLATES = (
    "{}.",
    "{} is present.",
    "there is {}.",
    "this field shows {}.",
    "a histology image of {}.",
    "a histopathology slide with {}.",
    "an H&E stained section of {}.",
    "an H&E image showing {}.",
    "a photomicrograph of {}.",
    "microscopy of tissue with {}.",
)
"""Sentences that a finding is put into; their vectors are averaged, which is steadier than any one of them."""


def finding_vector(model: ImageTextModel, finding: str) -> Vectors:
    """Return the vector of a finding, its own full stop dropped: float32, shape (dimensions,), unit length.

    Raises:
        ConfigError: If the finding is empty.
    """
    words = " ".join(finding.split()).rstrip(".")
    if not words:
        raise ConfigError("the finding is empty")
    return prompt_vector(model, [one.replace("{}", words) for one in FINDING_TEMPLATES])


def prompt_vector(model: ImageTextModel, texts: Sequence[str]) -> Vectors:
    """Return the mean direction of at least one text: float32, shape (dimensions,), unit length."""
    mean = model.encode_texts(texts).astype(np.float64).mean(axis=0)
    return np.asarray(mean / np.linalg.norm(mean), np.float32)


@dataclass(frozen=True, slots=True)
class Contrast:
    """Two sets of prompts that a tile is held against.

    Args:
        tumour: What a suspicious tile looks like.
        not_tumour: What the others look like.
        version: A name for these words; own words without a name are `own`.
    """

    tumour: tuple[str, ...]
    not_tumour: tuple[str, ...]
    version: str = "own"

    def __post_init__(self) -> None:
        """Refuse a side without words."""
        for name, prompts in (("tumour", self.tumour), ("not_tumour", self.not_tumour)):
            if (
                isinstance(prompts, str)
                or not prompts
                or not all(isinstance(one, str) and one.strip() for one in prompts)
            ):
                given = prompts if isinstance(prompts, str) else list(prompts)
                raise ConfigError(f"{name} must be one or more prompts, got {given!r}")

    @property
    def as_json(self) -> dict[str, Any]:
        """The words as a record keeps them."""
        return {"tumour": list(self.tumour), "not_tumour": list(self.not_tumour), "version": self.version}

    def probabilities(self, model: ImageTextModel, vectors: Vectors) -> Floats:
        """Return how much nearer images are to tumour than to other tissue: float64, shape (n,), in [0, 1].

        It is the softmax over `SHARPNESS` times the two cosines; 0.5 is as near to one as to the other.

        Args:
            model: Whose embeddings they are.
            vectors: float32, shape (n, dimensions), rows of unit length.
        """
        sides = np.stack([prompt_vector(model, self.tumour), prompt_vector(model, self.not_tumour)])
        cosines = vectors.astype(np.float64) @ sides.astype(np.float64).T
        found: Floats = 1 / (1 + np.exp(SHARPNESS * (cosines[:, 1] - cosines[:, 0])))
        return found


TUMOUR_CONTRAST = Contrast(
    tumour=(
        "tumour.",
        "an H&E image of tumour tissue.",
        "a histopathology slide with carcinoma.",
        "malignant cells with atypical, crowded nuclei.",
        "metastatic carcinoma in a lymph node.",
    ),
    not_tumour=(
        "normal tissue.",
        "an H&E image of healthy tissue without tumour.",
        "a histopathology slide with benign tissue.",
        "lymphocytes of a normal lymph node.",
        "fat, stroma and vessels without malignant cells.",
    ),
    version="tumour-1",
)


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
