"""Which image-text model, on what, and how: plain settings, checked without torch."""

import os
import re
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from pathnav.errors import ConfigError
from pathnav.retrieval.weights import SUFFIXES, check_is_weights

SHORT_NAMES = {
    "conch": "conch_ViT-B-16",
    "quilt-b-32": "hf-hub:wisdomik/QuiltNet-B-32",
    "quilt-b-16": "hf-hub:wisdomik/QuiltNet-B-16",
    "biomedclip": "hf-hub:microsoft/BiomedCLIP-PubMedBERT_256-vit_base_patch16_224",
}
"""What stands for what: models of pathology whose weights are in a format that open_clip reads, and CONCH."""

PRECISIONS = ("auto", "fp32", "bf16", "fp16")
DEVICE = re.compile(r"auto|cpu|mps|cuda(:\d+)?")
MAX_BATCH = 4096


class Kind(StrEnum):
    """Where an architecture is defined; what stands before the colon of a name."""

    BUILT_IN = "open_clip"
    HUB = "hf-hub"
    FOLDER = "local-dir"
    CONCH = "conch"


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """An image-text model by name, and how it is run; all of it JSON.

    Args:
        architecture: An architecture of open_clip (`ViT-B-32`), `hf-hub:OWNER/NAME`, `local-dir:FOLDER` (a folder with
            `open_clip_config.json` and weights), `conch_ViT-B-16`, or a short name (`conch`, `quilt-b-32`, ...).
        checkpoint: A file of weights (.pt, .pth, .bin, .safetensors) or a tag of open_clip such as
            `laion2b_s34b_b79k`. None where the name says it all, which is `hf-hub:` and `local-dir:`.
        device: `auto`, `cpu`, `cuda`, `cuda:N` or `mps`.
        precision: `fp32`, `bf16` or `fp16`; `auto` is fp32 on a CPU, bf16 on a CUDA device that has it, else fp16.
        batch: Images encoded at a time; None finds it by memory.

    Raises:
        ConfigError: If a value is none of these, two do not go together, or the file is missing or no weights.
    """

    architecture: str
    checkpoint: str | None = None
    device: str = "auto"
    precision: str = "auto"
    batch: int | None = None

    def __post_init__(self) -> None:
        """Refuse what cannot be meant."""
        if not DEVICE.fullmatch(self.device):
            raise ConfigError(f"device must be auto, cpu, cuda, cuda:N or mps, got {self.device!r}")
        if self.precision not in PRECISIONS:
            raise ConfigError(f"precision must be {', '.join(PRECISIONS)}, got {self.precision!r}")
        if self.batch is not None and not 1 <= self.batch <= MAX_BATCH:
            raise ConfigError(f"batch must be a number of images from 1 to {MAX_BATCH}, got {self.batch!r}")
        name, kind = self.full_name, self.kind
        if not self.place or (kind is Kind.HUB and not re.fullmatch(r"[\w.-]+/[\w.-]+", self.place)):
            raise ConfigError(f"architecture must be NAME, hf-hub:OWNER/NAME or local-dir:FOLDER, got {name!r}")
        if kind is Kind.HUB and self.checkpoint is not None:
            raise ConfigError(
                f"{name} comes with its own weights and takes no checkpoint; files of your own are "
                "architecture=local-dir:FOLDER"
            )
        if kind in (Kind.CONCH, Kind.BUILT_IN) and not self.checkpoint:
            tag = " or checkpoint=TAG of open_clip" if kind is Kind.BUILT_IN else ""
            raise ConfigError(f"architecture {name} needs checkpoint=FILE ({', '.join(SUFFIXES)}){tag}")
        if self.file is not None:
            check_is_weights(self.file)

    @property
    def full_name(self) -> str:
        """The architecture, a short name spelled out."""
        return SHORT_NAMES.get(self.architecture.lower(), self.architecture)

    @property
    def kind(self) -> Kind:
        """Where the architecture is defined."""
        prefix, colon, _ = self.full_name.partition(":")
        if colon and prefix in (Kind.HUB, Kind.FOLDER):
            return Kind(prefix)
        return Kind.CONCH if prefix.startswith("conch_") else Kind.BUILT_IN

    @property
    def place(self) -> str:
        """The full name without `hf-hub:` or `local-dir:`."""
        return self.full_name.removeprefix("hf-hub:").removeprefix("local-dir:").strip()

    @property
    def file(self) -> Path | None:
        """The file of weights, or None where `checkpoint` is a tag or left out."""
        if self.checkpoint is None:
            return None
        path = Path(self.checkpoint).expanduser()
        is_named = path.suffix.lower() in SUFFIXES or os.sep in self.checkpoint
        return path if is_named or path.is_file() or self.kind is not Kind.BUILT_IN else None
