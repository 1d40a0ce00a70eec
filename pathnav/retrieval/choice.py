"""Which image-text model, on what, and how: plain settings, checked without torch."""

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pathnav.errors import ConfigError
from pathnav.retrieval.checkpoint import check_is_weights
from pathnav.retrieval.names import FOLDER_PREFIX, HUB_PREFIX, OF_TRANSFORMERS, Origin, full_name, origin_of

PRECISIONS = ("auto", "fp32", "bf16", "fp16")
DEVICE = re.compile(r"auto|cpu|mps|cuda(:\d+)?")
WEIGHT_SUFFIXES = (".pt", ".pth", ".bin", ".safetensors")
MAX_BATCH = 4096


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
        _check_text("architecture", self.architecture, "a name such as ViT-B-32")
        if self.checkpoint is not None:
            _check_text("checkpoint", self.checkpoint, "a file or a tag of open_clip")
        if not isinstance(self.device, str) or not DEVICE.fullmatch(self.device):
            raise ConfigError(f"device must be auto, cpu, cuda, cuda:N or mps, got {self.device!r}")
        if self.precision not in PRECISIONS:
            raise ConfigError(f"precision must be {', '.join(PRECISIONS[:-1])} or fp16, got {self.precision!r}")
        if self.batch is not None and not _is_batch(self.batch):
            raise ConfigError(f"batch must be a whole number of images from 1 to {MAX_BATCH}, got {self.batch!r}")
        _check_origin(self)
        if self.file is not None:
            check_is_weights(self.file)

    @property
    def full_name(self) -> str:
        """The architecture, a short name spelled out."""
        return full_name(self.architecture)

    @property
    def origin(self) -> Origin:
        """Where the architecture is defined."""
        return origin_of(self.full_name)

    @property
    def file(self) -> Path | None:
        """The file of weights, or None where `checkpoint` is a tag or left out."""
        if self.checkpoint is None:
            return None
        path = Path(self.checkpoint).expanduser()
        is_named = path.suffix.lower() in WEIGHT_SUFFIXES or os.sep in self.checkpoint
        return path if is_named or path.is_file() or self.origin is not Origin.BUILT_IN else None


def _check_text(name: str, value: Any, expected: str) -> None:
    if not isinstance(value, str) or not value.strip():
        raise ConfigError(f"{name} must be {expected}, got {value!r}")


def _is_batch(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= MAX_BATCH


def _check_origin(choice: ModelChoice) -> None:
    """Refuse an architecture without what it needs beside it, or with what it does not take."""
    name, files = choice.full_name, ", ".join(WEIGHT_SUFFIXES)
    if name.lower() in OF_TRANSFORMERS:
        raise ConfigError(
            f"the weights of {choice.architecture} are in the format of transformers, which open_clip does not read; "
            "convert them, or choose another model such as quilt-b-32"
        )
    if name in (HUB_PREFIX, FOLDER_PREFIX):
        raise ConfigError(f"architecture must be {HUB_PREFIX}OWNER/NAME or {FOLDER_PREFIX}FOLDER, got {name!r}")
    if choice.origin is Origin.HUB:
        if choice.checkpoint is not None:
            raise ConfigError(
                f"{name} comes with its own weights and takes no checkpoint; for files of your own use "
                f"architecture={FOLDER_PREFIX}FOLDER"
            )
        if not re.fullmatch(r"[\w.-]+/[\w.-]+", name.removeprefix(HUB_PREFIX)):
            raise ConfigError(f"a name of the hub is {HUB_PREFIX}OWNER/NAME, got {name!r}")
    if choice.origin is Origin.CONCH and choice.checkpoint is None:
        raise ConfigError(f"{name} needs checkpoint=FILE, the weights that its authors gave you (pytorch_model.bin)")
    if choice.origin is Origin.BUILT_IN and choice.checkpoint is None:
        raise ConfigError(f"architecture {name} needs checkpoint=FILE ({files}) or checkpoint=TAG of open_clip")
