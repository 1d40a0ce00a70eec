"""Files of weights: what is in them, read without running anything that they hold."""

import hashlib
import pickle
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pathnav.errors import ConfigError

HEAD_BYTES = 512
SHA_BLOCK_BYTES = 1 << 22
MARKS_OF_PAGES = (b"<!doctype", b"<html", b"<?xml", b"<head", b"<body")
MARK_OF_POINTER = b"version https://git-lfs"

Shapes = dict[str, tuple[int, ...]]
"""The tensors of a network or a file: shape by name."""

_DIGESTS: dict[tuple[str, int, int], str] = {}


def check_is_weights(path: Path) -> None:
    """Look at the first bytes of a file; needs no torch.

    Raises:
        ConfigError: If there is no such file, or it plainly holds something else than weights.
    """
    if path.is_dir():
        raise ConfigError(f"checkpoint {path} is a folder; a folder is given as architecture=local-dir:{path}")
    try:
        with path.open("rb") as file:
            head = file.read(HEAD_BYTES)
    except FileNotFoundError as error:
        raise ConfigError(f"checkpoint {path} does not exist") from error
    except OSError as error:
        raise ConfigError(f"checkpoint {path} cannot be read: {error.strerror or error}") from error
    if head.lstrip().lower().startswith(MARKS_OF_PAGES):
        raise ConfigError(f"checkpoint {path} is a web page, not weights; download it again, signed in where needed")
    if head.startswith(MARK_OF_POINTER):
        raise ConfigError(f"checkpoint {path} is a Git LFS pointer, not weights; run `git lfs pull` where it came from")
    if is_safetensors(head):
        if path.suffix.lower() != ".safetensors":
            raise ConfigError(f"checkpoint {path} is a safetensors file; give it a name that ends in .safetensors")
    elif path.suffix.lower() == ".safetensors" or not head.startswith((b"PK\x03\x04", b"\x80")):
        raise ConfigError(f"checkpoint {path} holds no weights of PyTorch or safetensors ({_what_came(head)})")


def is_safetensors(head: bytes) -> bool:
    """Return whether the first bytes are those of a safetensors file: eight bytes of length, then JSON."""
    return head[8:9] == b"{"


def _what_came(head: bytes) -> str:
    return f"its first bytes are {head[:8].hex(' ')}" if head else "it is empty"


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file's bytes; read once per process as long as size and time of change stay."""
    status = path.stat()
    key = (str(path.resolve()), status.st_size, status.st_mtime_ns)
    if key not in _DIGESTS:
        digest = hashlib.sha256()
        with path.open("rb") as file:
            while block := file.read(SHA_BLOCK_BYTES):
                digest.update(block)
        _DIGESTS[key] = digest.hexdigest()
    return _DIGESTS[key]


def shapes_in(path: Path) -> Shapes:
    """Return the tensors of a file of weights, without keeping their values.

    Raises:
        ConfigError: If the file is cut off, holds more than weights, or none.
    """
    check_is_weights(path)
    tensors = _tensors_of_safetensors(path) if path.suffix.lower() == ".safetensors" else _tensors_of_torch(path)
    shapes = {name.removeprefix("module."): shape for name, shape in tensors.items()}
    if not shapes:
        raise ConfigError(f"checkpoint {path} holds no weights: expected a mapping of names to tensors")
    if any(name.startswith(("vision_model.", "text_model.")) for name in shapes):
        raise ConfigError(f"checkpoint {path} is in the format of transformers, which open_clip does not read")
    return shapes


def _tensors_of_safetensors(path: Path) -> Shapes:
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="pt") as file:
            return {name: tuple(file.get_slice(name).get_shape()) for name in file.keys()}  # noqa: SIM118
    except SafetensorError as error:
        raise ConfigError(f"checkpoint {path} is cut off or damaged; download it again ({error})") from error


def _tensors_of_torch(path: Path) -> Shapes:
    import torch

    # Files of before torch 1.6 are no archives and cannot be mapped.
    with path.open("rb") as file:
        is_archive = file.read(2) == b"PK"
    try:
        content = torch.load(path, map_location="cpu", weights_only=True, mmap=is_archive)
    except pickle.UnpicklingError as error:
        raise ConfigError(_about_pickle(path, str(error))) from error
    except (RuntimeError, EOFError, ValueError, OSError, KeyError, IndexError) as error:
        if "TorchScript" in str(error):
            raise ConfigError(
                f"checkpoint {path} is a TorchScript archive, which holds code; save its state_dict instead"
            ) from error
        raise ConfigError(f"checkpoint {path} is cut off or damaged; download it again ({_short(error)})") from error
    if isinstance(content, Mapping) and isinstance(content.get("state_dict"), Mapping):
        content = content["state_dict"]
    if not isinstance(content, Mapping):
        return {}
    return {str(name): tuple(one.shape) for name, one in content.items() if isinstance(one, torch.Tensor)}


def _about_pickle(path: Path, said: str) -> str:
    named = re.search(r"GLOBAL ([\w.]+)", said)
    if named is None and "Unsupported" not in said:
        return f"checkpoint {path} is cut off or damaged; download it again"
    what = f" ({named[1]})" if named else ""
    return (
        f"checkpoint {path} holds more than weights{what} and pathnav runs no code of a checkpoint; where you trust "
        "it, load it yourself and save its state_dict alone with torch.save"
    )


def _short(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return lines[0][:160] if lines else type(error).__name__


def shapes_of(module: Any) -> Shapes:
    """Return the tensors that a network of torch keeps."""
    return {name: tuple(tensor.shape) for name, tensor in module.state_dict().items()}


def check_fits(path: Path, name: str, network: Shapes, file: Shapes) -> None:
    """Refuse weights whose shapes are not the network's.

    open_clip and conch stretch position embeddings of another image size or text length without a word; the
    network then runs, and its embeddings are worth less.

    Raises:
        ConfigError: With the first tensor that differs, by name.
    """
    differing = []
    for key in sorted(file):
        wanted = network.get(key, network.get(f"text.{key}"))
        if wanted is not None and wanted != file[key] and not key.startswith("logit_"):
            differing.append(f"{key} is {_spelled(wanted)} in the network and {_spelled(file[key])} in the file")
    if differing:
        more = f", and {len(differing) - 1} more differ" if len(differing) > 1 else ""
        raise ConfigError(f"checkpoint {path} is none of {name}: {differing[0]}{more}; {ADVICE}")


ADVICE = "give the architecture that it was trained with"


def _spelled(shape: tuple[int, ...]) -> str:
    return " x ".join(map(str, shape)) or "one number"
