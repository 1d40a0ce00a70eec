"""CONCH, through the package `conch` of its authors where the user installed it.

Its licence (CC BY-NC-ND) forbids to depend on it or to copy from it: pathnav calls it and nothing else.
"""

from importlib.util import find_spec
from pathlib import Path
from typing import Any

from pathnav.errors import ConfigError, PluginError
from pathnav.retrieval.checkpoint import ADVICE, Shapes, check_fits, sha256_of, shapes_in, shapes_of
from pathnav.retrieval.choice import ModelChoice
from pathnav.retrieval.device import check_room, is_out_of_memory, out_of_memory
from pathnav.retrieval.network import Network, Preprocess, square_side, triple, version_of, weights_bytes

TEXT_TOKENS = 127
"""The text tower takes 128 tokens, and the last is its own mark of class."""

NOT_RELEASED = "text_decoder."
"""Weights of the caption decoder, which the authors keep to themselves and retrieval does not need."""

PACKAGES = ("conch", "conch-fork")


def conch_network(choice: ModelChoice) -> Network:
    """Return CONCH with its weights, on the CPU.

    Raises:
        PluginError: If the package `conch` is not there or cannot be imported.
        ConfigError: If it does not know the architecture, or the weights are not those of it.
    """
    package = _package()
    path = choice.file
    if path is None:
        raise ConfigError(f"{choice.full_name} needs checkpoint=FILE")
    shapes = shapes_in(path)
    check_room(f"the weights of {choice.full_name} and a copy while they load", 2 * weights_bytes(shapes), "cpu")
    module = _filled(package, choice.full_name, path, shapes)
    tokenizer = package.get_tokenizer()
    visual = module.visual
    return Network(
        module=module,
        encode_image=lambda images: module.encode_image(images, proj_contrast=True, normalize=True),
        encode_text=module.encode_text,
        tokenize=lambda texts: _tokens(tokenizer, texts),
        is_cut=lambda text: len(tokenizer(text)["input_ids"]) > TEXT_TOKENS,
        context_tokens=TEXT_TOKENS,
        preprocess=Preprocess(
            side_px=square_side(visual.image_size, choice.full_name),
            mean=triple("mean", visual.image_mean, choice.full_name),
            std=triple("std", visual.image_std, choice.full_name),
        ),
        identity={
            "architecture": choice.full_name,
            "config_sha256": None,
            "checkpoint_sha256": sha256_of(path),
            "revision": None,
            "libraries": {"conch": next(filter(None, map(version_of, PACKAGES)), None)},
        },
    )


def _package() -> Any:
    if find_spec("conch") is None:
        raise PluginError(
            "CONCH needs the package conch of its authors, which is not installed; its licence keeps it out of "
            "pathnav's extras, docs/how-to-clip.md tells how to get it"
        )
    try:
        from conch import open_clip_custom
    except (ImportError, OSError, RuntimeError) as error:
        raise PluginError(f"the package conch cannot be imported ({error}); install what it asks for") from error
    return open_clip_custom


def _filled(package: Any, name: str, path: Path, shapes: Shapes) -> Any:
    """Return the network with the weights of a file; conch itself takes any file and leaves the rest random."""
    import torch

    try:
        with torch.random.fork_rng(devices=[]):
            module = package.create_model_from_pretrained(
                name, checkpoint_path=str(path), device="cpu", return_transform=False
            )
    except FileNotFoundError as error:
        raise ConfigError(f"the package conch knows no {name!r}; its architecture is conch_ViT-B-16") from error
    except (RuntimeError, MemoryError) as error:
        if is_out_of_memory(error):
            raise out_of_memory(f"the weights of {name} and a copy", 2 * weights_bytes(shapes), "cpu") from error
        raise ConfigError(
            f"checkpoint {path} is none of {name} ({str(error).strip().splitlines()[-1].strip()})"
        ) from error
    except KeyError as error:
        raise ConfigError(f"checkpoint {path} is none of {name}: it lacks {error.args[0]}; {ADVICE}") from error
    except (AttributeError, ValueError, TypeError) as error:
        raise ConfigError(f"checkpoint {path} is none of {name} ({type(error).__name__}: {error})") from error
    network = shapes_of(module)
    check_fits(path, name, network, shapes)
    missing = sorted(key for key in network if key not in shapes and not key.startswith(NOT_RELEASED))
    if missing:
        more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
        raise ConfigError(f"checkpoint {path} is none of {name}: it lacks {missing[0]}{more}; {ADVICE}")
    return module


def _tokens(tokenizer: Any, texts: list[str]) -> Any:
    """Return tokens (n, 128): the tokenizer itself is called, as `batch_encode_plus` is gone in transformers 5."""
    import torch

    tokens = tokenizer(
        texts,
        max_length=TEXT_TOKENS,
        add_special_tokens=True,
        return_token_type_ids=False,
        truncation=True,
        padding="max_length",
        return_tensors="pt",
    )["input_ids"]
    return torch.nn.functional.pad(tokens, (0, 1), value=tokenizer.pad_token_id)
