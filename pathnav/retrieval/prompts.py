"""What a model of images and texts is asked: sentences around a finding, and tumour against no tumour."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from pathnav.errors import ConfigError

VERSION = "finding-1"
"""Goes up when a template changes: vectors of other templates are other vectors."""

PLACE = "{}"
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


class TextEncoder(Protocol):
    """What turns texts into unit vectors; an `ImageTextModel` does."""

    def encode_texts(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return unit rows, one for each text."""
        ...


def finding_vector(
    model: TextEncoder, finding: str, templates: Sequence[str] = FINDING_TEMPLATES
) -> NDArray[np.float32]:
    """Return the vector of a finding.

    Args:
        model: What encodes.
        finding: As the query words it, such as `ductal carcinoma in situ`.
        templates: Sentences with one `{}`.

    Returns:
        float32, shape (dimensions,), unit length.

    Raises:
        ConfigError: If the finding is empty, or a template has no `{}` or more than one.
    """
    return prompt_vector(model, finding_texts(finding, templates))


def finding_texts(finding: str, templates: Sequence[str] = FINDING_TEMPLATES) -> list[str]:
    """Return the sentences that a finding is asked with; a full stop of its own is dropped."""
    words = " ".join(finding.split()).rstrip(".")
    if not words:
        raise ConfigError("the finding is empty")
    if wrong := [one for one in templates if one.count(PLACE) != 1]:
        raise ConfigError(f"a template must have one {PLACE} for the finding, got {wrong[0]!r}")
    return [one.replace(PLACE, words) for one in templates]


def prompt_vector(model: TextEncoder, texts: Sequence[str]) -> NDArray[np.float32]:
    """Return the mean direction of some texts: float32, shape (dimensions,), unit length.

    Raises:
        ConfigError: If there is no text.
    """
    if not texts:
        raise ConfigError("at least one prompt is needed")
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

    def vectors(self, model: TextEncoder) -> NDArray[np.float32]:
        """Return the vectors of both sides, tumour first: float32, shape (2, dimensions), unit rows."""
        return np.stack([prompt_vector(model, self.tumour), prompt_vector(model, self.not_tumour)])


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
