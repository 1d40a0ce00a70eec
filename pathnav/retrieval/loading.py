"""Load an image-text model: from open_clip, from a repository of the Hugging Face hub, or from the package `conch`."""

import difflib
import hashlib
import json
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from importlib import import_module, metadata
from pathlib import Path
from typing import Any

import numpy as np

from pathnav.errors import ConfigError, PluginError
from pathnav.retrieval.choice import SHORT_NAMES, Kind, ModelChoice
from pathnav.retrieval.model import ImageTextModel, Network
from pathnav.retrieval.weights import (
    SUFFIXES,
    check_names,
    check_shapes,
    commit_of,
    fetched,
    is_out_of_memory,
    out_of_memory,
    quiet,
    shapes_in,
    told,
)

MOST_LOADED = 2
"""Models that a process keeps: an agent's and a scorer's; a sweep over models would else fill the memory."""

CONFIG = "open_clip_config.json"
HUB_WEIGHTS = ("open_clip_model.safetensors", "open_clip_pytorch_model.bin")
"""What open_clip looks for in a repository of the hub, best first."""

FOLDER_WEIGHTS = (*HUB_WEIGHTS, "open_clip_pytorch_model.safetensors", "model.safetensors", "pytorch_model.bin")
TOKENIZER = (
    *("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json"),
    *("vocab.txt", "vocab.json", "merges.txt"),
)
PREPROCESS_KEYS = ("mean", "std", "interpolation", "resize_mode")

CONCH_TOKENS = 127
"""CONCH's text tower takes 128 tokens, and the last is its own mark of class."""

CONCH_WITHOUT = "text_decoder."
"""Weights of CONCH's caption decoder, which its authors keep to themselves and retrieval does not need."""

CONCH_PACKAGES = ("conch", "conch-fork")
ROOM_FOR_TOKENS = 8
"""Marks that a tokenizer sets around a text, and what cleaning may add, at most."""

_LOCK = threading.Lock()


def load(choice: ModelChoice) -> ImageTextModel:
    """Return the model that a choice names; asked again, the same one, unless its file has changed.

    Raises:
        PluginError: If the extra, or for CONCH its package, is not installed.
        ConfigError: If the architecture, the weights, the device or the memory is not there, in one sentence.
    """
    files = [choice.file] if choice.file is not None else []
    if choice.kind is Kind.FOLDER:
        files += sorted(Path(choice.place).expanduser().glob("*"))
    found = [file.stat() for file in files if file.is_file()]
    with _LOCK:
        return _loaded(choice, tuple((status.st_size, status.st_mtime_ns) for status in found))


@lru_cache(MOST_LOADED)
def _loaded(choice: ModelChoice, stamp: tuple[tuple[int, int], ...]) -> ImageTextModel:
    try:
        with quiet():
            network = _conch(choice) if choice.kind is Kind.CONCH else _open_clip(choice)
            return ImageTextModel(network, choice.device, choice.precision, choice.batch)
    except (RuntimeError, MemoryError) as error:
        if not is_out_of_memory(error):
            raise
        raise out_of_memory(f"loading {choice.full_name}") from error


def _imported(module: str, name: str) -> Any:
    """Return a library that an architecture needs."""
    try:
        return import_module(module)
    except (ImportError, OSError, RuntimeError) as error:
        how = "docs/how-to-clip.md tells how to get it" if module.startswith("conch") else "pip install 'pathnav[clip]'"
        raise PluginError(f"{name} needs {module}, which cannot be imported ({error}); {how}") from error


@dataclass(frozen=True, slots=True)
class _Source:
    """Where the parts of a network of open_clip come from: what it builds, its settings, weights and tokenizer."""

    open_clip_name: str
    config: Mapping[str, Any]
    weights: Path
    public_name: str
    preprocess: Mapping[str, Any] = field(default_factory=dict)
    revision: str | None = None
    tokenizer: str | None = None


def _open_clip(choice: ModelChoice) -> Network:
    """Return a network of open_clip with its weights; what the hub has is fetched."""
    name = choice.full_name
    open_clip, torch = _imported("open_clip", name), _imported("torch", name)
    source = {Kind.HUB: _of_hub, Kind.FOLDER: _of_folder}.get(choice.kind, _of_built_in)(choice)
    tower = source.config["text_cfg"].get("hf_model_name")
    if tower and not Path(tower).is_dir():  # open_clip would ask for it, and without a network for 45 seconds
        fetched(tower, [["config.json"]], way_on=f"name their folder as hf_model_name in {CONFIG}")
    shapes = shapes_in(source.weights)
    with told(f"{name}: open_clip cannot build it"):
        tokenizer = open_clip.get_tokenizer(source.tokenizer or source.open_clip_name)
        with torch.random.fork_rng(devices=[]):
            module = open_clip.create_model(
                source.open_clip_name,
                load_weights=False,
                pretrained_text=False,
                force_preprocess_cfg=dict(source.preprocess),
            )
    check_shapes(source.weights, name, module, shapes)
    with told(f"checkpoint {source.weights} is none of {name}"):
        keys = open_clip.load_checkpoint(module, str(source.weights), strict=False, weights_only=True)
    check_names(source.weights, name, keys.missing_keys, keys.unexpected_keys)
    settings = open_clip.get_model_preprocess_cfg(module)
    return Network(
        name=name,
        module=module,
        encode_image=module.encode_image,
        tokenize=tokenizer,
        is_cut=lambda text: _is_cut(tokenizer, text),
        **_preprocess(name, settings.get("size"), settings["mean"], settings["std"]),
        interpolation="bilinear" if settings.get("interpolation") == "bilinear" else "bicubic",
        identity=_identity(source, {"open_clip_torch": metadata.version("open_clip_torch")}),
    )


def _of_hub(choice: ModelChoice) -> _Source:
    settings, weights = fetched(choice.place, [[CONFIG], HUB_WEIGHTS], also=TOKENIZER)
    has_tokenizer = any((settings.parent / file).is_file() for file in TOKENIZER)
    return _Source(
        f"local-dir:{settings.parent}",
        _config_in(settings.parent),
        weights,
        choice.full_name,
        revision=commit_of(settings),
        tokenizer=None if has_tokenizer else choice.full_name,
    )


def _of_folder(choice: ModelChoice) -> _Source:
    folder = Path(choice.place).expanduser()
    config = _config_in(folder)
    files = {file.name: file for file in sorted(folder.iterdir()) if file.suffix in SUFFIXES}
    known = [files[name] for name in FOLDER_WEIGHTS if name in files]
    if not choice.file and not known and len(files) != 1:
        raise ConfigError(
            f"{folder} must hold one file of weights ({', '.join(SUFFIXES)}), not {len(files)}; give checkpoint=FILE"
        )
    return _Source(f"local-dir:{folder}", config, choice.file or [*known, *files.values()][0], "local-dir")


def _config_in(folder: Path) -> dict[str, Any]:
    """Return the settings of an architecture in a folder."""
    with told(f"{folder} needs {CONFIG} with model_cfg: embed_dim, vision_cfg and text_cfg"):
        config: dict[str, Any] = json.loads((folder / CONFIG).read_text(encoding="utf-8"))["model_cfg"]
        _ = [config[key] for key in ("embed_dim", "vision_cfg", "text_cfg")]
    return config


def _of_built_in(choice: ModelChoice) -> _Source:
    import open_clip

    name, tag = choice.full_name.replace("/", "-"), choice.checkpoint or ""
    config = open_clip.get_model_config(name)
    if config is None:
        near = difflib.get_close_matches(name, [*open_clip.list_models(), *SHORT_NAMES])
        known = f"did you mean {' or '.join(near)}?" if near else f"short names are {', '.join(SHORT_NAMES)}"
        raise ConfigError(f"there is no architecture {choice.architecture!r}; {known}")
    tags = open_clip.list_pretrained_tags_by_model(name)
    if choice.file is not None:  # a bare file does not tell its preprocessing: that of all tags, where these agree
        all_tags = [_preprocess_of(name, one) for one in tags]
        agreed = all_tags[0] if all_tags and all(one == all_tags[0] for one in all_tags) else {}
        return _Source(name, config, choice.file, name, agreed)
    about = open_clip.get_pretrained_cfg(name, tag)
    if not about:
        raise ConfigError(f"checkpoint {tag!r} is neither a file nor a tag of {name}; its tags: {', '.join(tags)}")
    if bool(about.get("quick_gelu")) != bool(config.get("quick_gelu")):
        other = name.removesuffix("-quickgelu") if config.get("quick_gelu") else f"{name}-quickgelu"
        raise ConfigError(f"{tag} was trained with another activation than {name} has; give architecture={other}")
    repository, _, file = str(about.get("hf_hub", "")).rpartition("/")
    if not repository:
        raise ConfigError(f"{tag} is not on the hub; download {about.get('url')} and give checkpoint=FILE")
    safe = [f"{file.rpartition('.')[0]}.safetensors"] if file.endswith((".bin", ".pth")) else []
    (weights,) = fetched(repository, [[*safe, file] if file else HUB_WEIGHTS], way_on="give checkpoint=FILE")
    return _Source(name, config, weights, name, _preprocess_of(name, tag), commit_of(weights))


def _preprocess_of(name: str, tag: str) -> dict[str, Any]:
    import open_clip

    about = open_clip.get_pretrained_cfg(name, tag)
    return {key: about[key] for key in PREPROCESS_KEYS if about.get(key) is not None}


def _conch(choice: ModelChoice) -> Network:
    """Return CONCH; the licence of its authors' package (CC BY-NC-ND) forbids to depend on it or to copy from it."""
    name, path = choice.full_name, choice.file
    package, torch = _imported("conch.open_clip_custom", name), _imported("torch", name)
    if path is None:
        raise ConfigError(f"{name} needs checkpoint=FILE")
    shapes = shapes_in(path)
    with told(f"the package conch makes no {name} of checkpoint {path}"), torch.random.fork_rng(devices=[]):
        module = package.create_model_from_pretrained(
            name, checkpoint_path=str(path), device="cpu", return_transform=False
        )
    check_shapes(path, name, module, shapes)  # conch itself takes any file and leaves random what it lacks
    expected = [key for key in module.state_dict() if not key.startswith(CONCH_WITHOUT)]
    check_names(path, name, sorted(key for key in expected if key not in shapes))
    tokenizer, visual = package.get_tokenizer(), module.visual
    versions = [dist.version for one in CONCH_PACKAGES for dist in metadata.distributions(name=one)]
    return Network(
        name=name,
        module=module,
        encode_image=lambda images: module.encode_image(images, proj_contrast=True, normalize=True),
        tokenize=lambda texts: _conch_tokens(tokenizer, texts),
        is_cut=lambda text: len(tokenizer(text)["input_ids"]) > CONCH_TOKENS,
        **_preprocess(name, visual.image_size, visual.image_mean, visual.image_std),
        interpolation="bicubic",
        identity=_identity(_Source(name, {}, path, name), {"conch": next(iter(versions), None)}),
    )


def _conch_tokens(tokenizer: Any, texts: list[str]) -> Any:
    """Return tokens (n, 128): the tokenizer itself is called, as `batch_encode_plus` is gone in transformers 5."""
    import torch

    tokens = tokenizer(
        texts,
        max_length=CONCH_TOKENS,
        add_special_tokens=True,
        return_token_type_ids=False,
        truncation=True,
        padding="max_length",
        return_tensors="pt",
    )["input_ids"]
    return torch.nn.functional.pad(tokens, (0, 1), value=tokenizer.pad_token_id)


def _preprocess(name: str, size: Any, mean: Any, std: Any) -> dict[str, Any]:
    """Return the side of a network's square input, and mean and deviation per channel."""
    with told(f"{name} must see squares with three channels, got size {size!r}, mean {mean!r}, std {std!r}"):
        (side_px,) = {int(side) for side in np.atleast_1d(size)}
        channels = [tuple(float(one) for one in np.broadcast_to(value, 3)) for value in (mean, std)]
    return {"side_px": side_px, "mean": channels[0], "std": channels[1]}


def _identity(source: _Source, libraries: Mapping[str, str | None]) -> dict[str, Any]:
    """Return what tells one network from another; the place of its files is none of it, their content is."""
    settings = json.dumps(source.config, sort_keys=True).encode()
    with source.weights.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return {
        "architecture": source.public_name,
        "config_sha256": hashlib.sha256(settings).hexdigest() if source.config else None,
        "checkpoint_sha256": digest,
        "revision": source.revision,
        "libraries": dict(libraries),
    }


def _is_cut(tokenizer: Any, text: str) -> bool:
    """Return whether a tokenizer of open_clip cuts a text, which it does without a word."""
    context: int = tokenizer.context_length
    room = context + 2 * len(text.encode()) + ROOM_FOR_TOKENS
    tokens = tokenizer([text], context_length=room)[0].tolist()
    # Some tokenizers end every text with a mark of class, behind the padding.
    if tokens[-1] != tokens[-2]:
        tokens, context = tokens[:-1], context - 1
    return any(token != tokens[-1] for token in tokens[context:])
