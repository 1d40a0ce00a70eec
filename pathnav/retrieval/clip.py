"""Networks of open_clip: built by its own code, weights put in after their shapes have been compared."""

import hashlib
import json
import re
from pathlib import Path
from typing import Any

from pathnav.errors import ConfigError, PluginError
from pathnav.retrieval.checkpoint import ADVICE, check_fits, sha256_of, shapes_in, shapes_of
from pathnav.retrieval.choice import ModelChoice
from pathnav.retrieval.clip_source import ClipSource, source_of
from pathnav.retrieval.device import check_room, is_out_of_memory, out_of_memory
from pathnav.retrieval.hub import HubRepository
from pathnav.retrieval.network import Network, Preprocess, square_side, triple, version_of, weights_bytes

ROOM_FOR_TOKENS = 8
"""Marks that a tokenizer sets around a text, and what cleaning may add, at most."""


def clip_network(choice: ModelChoice) -> Network:
    """Return a network of open_clip with its weights, on the CPU.

    Raises:
        ConfigError: If the architecture is unknown, the weights are not its own, or memory is short.
    """
    import open_clip

    source = source_of(choice)
    name = choice.full_name
    _check_text_tower(source, name)
    tokenizer = _tokenizer(source, name)
    module = _with_weights(source, name)
    settings = open_clip.get_model_preprocess_cfg(module)
    return Network(
        module=module,
        encode_image=module.encode_image,
        encode_text=module.encode_text,
        tokenize=tokenizer,
        is_cut=lambda text: is_cut(tokenizer, text),
        context_tokens=tokenizer.context_length,
        preprocess=Preprocess(
            side_px=square_side(settings.get("size"), name),
            mean=triple("mean", settings["mean"], name),
            std=triple("std", settings["std"], name),
            interpolation="bilinear" if settings.get("interpolation") == "bilinear" else "bicubic",
        ),
        identity=_identity(source),
    )


def _with_weights(source: ClipSource, name: str) -> Any:
    """Return the network filled from its file; what does not fit is refused before and while it is."""
    shapes = shapes_in(source.weights)
    what, needed_bytes = f"the weights of {name} and a copy while they load", 2 * weights_bytes(shapes)
    check_room(what, needed_bytes, "cpu")
    try:
        module = _built(source, name)
        check_fits(source.weights, name, shapes_of(module), shapes)
        _fill(module, source.weights, name)
    except (RuntimeError, MemoryError) as error:
        if not is_out_of_memory(error):
            raise
        raise out_of_memory(what, needed_bytes, "cpu") from error
    return module


def _identity(source: ClipSource) -> dict[str, Any]:
    """Return what tells one network from another; a folder's place is none of it, its content is."""
    settings = json.dumps(source.config, sort_keys=True).encode()
    return {
        "architecture": source.public_name,
        "config_sha256": hashlib.sha256(settings).hexdigest(),
        "checkpoint_sha256": sha256_of(source.weights),
        "revision": source.revision,
        "libraries": {"open_clip_torch": version_of("open_clip_torch")},
    }


def _check_text_tower(source: ClipSource, name: str) -> None:
    """Refuse early where the text tower is one of transformers and something for it is missing."""
    from importlib.util import find_spec

    text = source.config.get("text_cfg", {})
    tower = text.get("hf_model_name")
    if not tower and not text.get("hf_tokenizer_name"):
        return
    if find_spec("transformers") is None:
        raise PluginError(f"{name} reads texts with a model of transformers; pip install transformers")
    if tower and not Path(tower).is_dir():
        HubRepository(
            tower,
            f"elsewhere, download config.json from https://huggingface.co/{tower} into a folder and name that folder "
            "as hf_model_name in open_clip_config.json",
        ).file(["config.json"])


def _tokenizer(source: ClipSource, name: str) -> Any:
    import open_clip

    try:
        return open_clip.get_tokenizer(source.tokenizer_name)
    except (OSError, ValueError, TypeError, KeyError, RuntimeError, ImportError) as error:
        raise ConfigError(f"{name}: its tokenizer cannot be made ({_first_line(error)})") from error


def _built(source: ClipSource, name: str) -> Any:
    """Return the network with random weights; numbers drawn for them leave torch's own stream as it was."""
    import open_clip
    import torch

    try:
        with torch.random.fork_rng(devices=[]):
            return open_clip.create_model(
                source.open_clip_name,
                load_weights=False,
                pretrained_text=False,
                force_preprocess_cfg=dict(source.preprocess),
            )
    except (TypeError, KeyError, ValueError, AttributeError, AssertionError, OSError) as error:
        raise ConfigError(f"{name}: open_clip cannot build it ({_first_line(error)})") from error
    except RuntimeError as error:
        if is_out_of_memory(error):
            raise
        raise ConfigError(f"{name}: open_clip cannot build it ({_first_line(error)})") from error


def _fill(module: Any, weights: Path, name: str) -> None:
    import open_clip

    try:
        open_clip.load_checkpoint(module, str(weights), strict=True, weights_only=True)
    except RuntimeError as error:
        if is_out_of_memory(error):
            raise
        raise ConfigError(f"checkpoint {weights} is none of {name}: {_about_keys(str(error))}; {ADVICE}") from error
    except (KeyError, AttributeError, ValueError, TypeError) as error:
        raise ConfigError(f"checkpoint {weights} is none of {name} ({_first_line(error)}); {ADVICE}") from error


def _about_keys(said: str) -> str:
    """Return in one line what torch tells in hundreds about names that do not match."""
    parts = []
    for kind, word in (("Missing", "lacks"), ("Unexpected", "also has")):
        listed = re.search(rf"{kind} key\(s\) in state_dict: (.*)", said)
        keys = re.findall(r'"([^"]+)"', listed[1]) if listed else []
        if keys:
            parts.append(f"it {word} {keys[0]}" + (f" and {len(keys) - 1} more" if len(keys) > 1 else ""))
    return " and ".join(parts) or said.strip().splitlines()[0]


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0][:200]}" if lines else type(error).__name__


def is_cut(tokenizer: Any, text: str) -> bool:
    """Return whether a tokenizer of open_clip cuts a text, which it does without a word.

    Args:
        tokenizer: Any of open_clip's; each takes a context length.
        text: The text.
    """
    context: int = tokenizer.context_length
    room = context + 2 * len(text.encode()) + ROOM_FOR_TOKENS
    tokens = tokenizer([text], context_length=room)[0].tolist()
    # Some tokenizers end every text with a mark of class, behind the padding.
    if tokens[-1] != tokens[-2]:
        tokens, context = tokens[:-1], context - 1
    return any(token != tokens[-1] for token in tokens[context:])
