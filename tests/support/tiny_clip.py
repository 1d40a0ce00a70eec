"""A network of open_clip small enough for tests: 3.4 million random weights, the real code."""

import json
from pathlib import Path
from typing import Any

NAME = "pathnav-tiny"
SIDE_PX = 64
CONTEXT_TOKENS = 77
DIMENSIONS = 48


def settings(side_px: int = SIDE_PX, patch_px: int = 16, width: int = 64) -> dict[str, Any]:
    """Return an architecture as open_clip's JSON files hold it."""
    return {
        "embed_dim": DIMENSIONS,
        "vision_cfg": {
            "image_size": side_px,
            "layers": 2,
            "width": width,
            "head_width": 32,
            "patch_size": patch_px,
        },
        "text_cfg": {"context_length": CONTEXT_TOKENS, "vocab_size": 49408, "width": 64, "heads": 2, "layers": 2},
    }


def register(folder: Path, name: str = NAME, **changed: int) -> str:
    """Make an architecture known to open_clip by name."""
    import open_clip

    file = folder / f"{name}.json"
    file.write_text(json.dumps(settings(**changed)))
    open_clip.add_model_config(file)
    return name


def random_network(name: str = NAME, seed: int = 1) -> Any:
    """Return a network with random weights, in open_clip's own hands."""
    import open_clip
    import torch

    torch.manual_seed(seed)
    return open_clip.create_model(name, load_weights=False).eval()


def save_checkpoint(path: Path, name: str = NAME, seed: int = 1) -> Path:
    """Write random weights of an architecture in the format that the file's name tells."""
    import torch

    weights = random_network(name, seed).state_dict()
    if path.suffix == ".safetensors":
        from safetensors.torch import save_file

        save_file({key: tensor.contiguous() for key, tensor in weights.items()}, path)
    else:
        torch.save(weights, path)
    return path


def save_folder(folder: Path, weights: str = "open_clip_model.safetensors", **preprocess: Any) -> Path:
    """Write what open_clip reads as `local-dir:`: its settings and weights."""
    folder.mkdir()
    content = {"model_cfg": settings(), "preprocess_cfg": preprocess}
    (folder / "open_clip_config.json").write_text(json.dumps(content))
    save_checkpoint(folder / weights)
    return folder
