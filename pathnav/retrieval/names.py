"""Names of image-text models: short names, where each one's parts come from, and why some cannot be used."""

import difflib
from collections.abc import Iterable
from enum import StrEnum

HUB_PREFIX = "hf-hub:"
FOLDER_PREFIX = "local-dir:"
CONCH_PREFIX = "conch_"

SHORT_NAMES = {
    "conch": "conch_ViT-B-16",
    "quilt-b-32": "hf-hub:wisdomik/QuiltNet-B-32",
    "quilt-b-16": "hf-hub:wisdomik/QuiltNet-B-16",
    "biomedclip": "hf-hub:microsoft/BiomedCLIP-PubMedBERT_256-vit_base_patch16_224",
}
"""What stands for what: models of pathology whose weights are in a format that open_clip reads, and CONCH."""

OF_TRANSFORMERS = {"plip", "vinid/plip", "hf-hub:vinid/plip"}
"""Names people try whose weights are in the format of transformers, which open_clip neither reads nor converts."""


class Origin(StrEnum):
    """Where an architecture is defined."""

    BUILT_IN = "open_clip"
    HUB = "hf-hub"
    FOLDER = "local-dir"
    CONCH = "conch"


def full_name(architecture: str) -> str:
    """Return the name that a short name stands for; any other name as it is."""
    return SHORT_NAMES.get(architecture.lower(), architecture)


def origin_of(full: str) -> Origin:
    """Return where the architecture of a full name is defined."""
    if full.startswith(HUB_PREFIX):
        return Origin.HUB
    if full.startswith(FOLDER_PREFIX):
        return Origin.FOLDER
    return Origin.CONCH if full.startswith(CONCH_PREFIX) else Origin.BUILT_IN


def suggestion(wanted: str, known: Iterable[str]) -> str:
    """Return the end of a sentence about an unknown architecture: the nearest names."""
    by_lower = {name.lower(): name for name in [*known, *SHORT_NAMES]}
    near = [by_lower[one] for one in difflib.get_close_matches(wanted.lower(), by_lower, n=3, cutoff=0.5)]
    if near:
        return f"did you mean {' or '.join(near)}?"
    return (
        f"there are open_clip's own (such as ViT-B-32), {', '.join(SHORT_NAMES)}, {HUB_PREFIX}OWNER/NAME and "
        f"{FOLDER_PREFIX}FOLDER"
    )
