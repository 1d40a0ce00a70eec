"""Where the parts of a network of open_clip come from: settings, weights, preprocessing, tokenizer."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pathnav.errors import ConfigError
from pathnav.retrieval.choice import ModelChoice
from pathnav.retrieval.hub import CONFIG, TOKENIZER_FILES, WEIGHTS, HubRepository, commit_of
from pathnav.retrieval.names import FOLDER_PREFIX, HUB_PREFIX, Origin, suggestion

NAMES_OF_WEIGHTS = (*WEIGHTS, "open_clip_pytorch_model.safetensors", "model.safetensors", "pytorch_model.bin")
ENDINGS = (".safetensors", ".bin", ".pth", ".pt")
PREPROCESS_KEYS = ("mean", "std", "interpolation", "resize_mode")


@dataclass(frozen=True, slots=True)
class ClipSource:
    """The parts of one network.

    Args:
        open_clip_name: What open_clip builds.
        tokenizer_name: What open_clip makes the tokenizer of.
        config: The settings of the architecture.
        weights: The file.
        public_name: The name that records carry; for a folder, `local-dir`.
        preprocess: What the weights were trained with, over open_clip's defaults.
        revision: The commit on the hub, or None.
    """

    open_clip_name: str
    tokenizer_name: str
    config: Mapping[str, Any]
    weights: Path
    public_name: str
    preprocess: Mapping[str, Any] = field(default_factory=dict)
    revision: str | None = None


def source_of(choice: ModelChoice) -> ClipSource:
    """Return where the parts of a choice come from; what the hub has is fetched.

    Raises:
        ConfigError: If one is missing.
    """
    if choice.origin is Origin.HUB:
        return _of_hub(choice.full_name)
    if choice.origin is Origin.FOLDER:
        return _of_folder(Path(choice.full_name.removeprefix(FOLDER_PREFIX)).expanduser(), choice.file)
    return _of_built_in(choice)


def _of_hub(name: str) -> ClipSource:
    repository = HubRepository(name.removeprefix(HUB_PREFIX))
    settings = repository.file([CONFIG])
    config = _config_in(settings)
    is_new = repository.cached(WEIGHTS) is None
    weights = repository.file(WEIGHTS)
    has_own_tokenizer = bool(config.get("text_cfg", {}).get("hf_tokenizer_name"))
    if is_new and has_own_tokenizer:
        repository.files_if_any(TOKENIZER_FILES)
    folder = settings.parent
    is_complete = not has_own_tokenizer or any((folder / file).is_file() for file in TOKENIZER_FILES)
    return ClipSource(
        open_clip_name=f"{FOLDER_PREFIX}{folder}",
        tokenizer_name=f"{FOLDER_PREFIX}{folder}" if is_complete else name,
        config=config,
        weights=weights,
        public_name=name,
        revision=commit_of(settings),
    )


def _of_folder(folder: Path, weights: Path | None) -> ClipSource:
    if not folder.is_dir():
        raise ConfigError(f"architecture {FOLDER_PREFIX}{folder}: there is no such folder")
    config = _config_in(folder / CONFIG)
    name = f"{FOLDER_PREFIX}{folder}"
    return ClipSource(name, name, config, weights or _weights_in(folder), "local-dir")


def _config_in(file: Path) -> dict[str, Any]:
    """Return the settings of an architecture that a file holds under `model_cfg`."""
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise ConfigError(f"{file.parent} has no {CONFIG}, the settings that open_clip saves beside weights") from error
    except (OSError, ValueError) as error:
        raise ConfigError(f"{file} is not JSON: {error}") from error
    config = content.get("model_cfg") if isinstance(content, dict) else None
    if not isinstance(config, dict) or not all(
        isinstance(config.get(key), kind)
        for key, kind in (("embed_dim", int), ("vision_cfg", dict), ("text_cfg", dict))
    ):
        raise ConfigError(f'{file} needs {{"model_cfg": {{"embed_dim": ..., "vision_cfg": ..., "text_cfg": ...}}}}')
    return config


def _weights_in(folder: Path) -> Path:
    files = sorted(file for file in folder.iterdir() if file.suffix in ENDINGS and file.is_file())
    named = [folder / name for name in NAMES_OF_WEIGHTS if folder / name in files]
    if named:
        return named[0]
    if len(files) == 1:
        return files[0]
    found = f"has {len(files)}: {', '.join(file.name for file in files)}" if files else "has none"
    raise ConfigError(
        f"{folder} must hold one file of weights ({', '.join(ENDINGS)}) and {found}; name it: checkpoint=FILE"
    )


def _of_built_in(choice: ModelChoice) -> ClipSource:
    import open_clip

    name = choice.full_name.replace("/", "-")
    config = open_clip.get_model_config(name)
    if config is None:
        raise ConfigError(
            f"there is no architecture {choice.architecture!r}; {suggestion(name, open_clip.list_models())}"
        )
    if choice.file is not None:
        return ClipSource(name, name, config, choice.file, name, _common_preprocess(name))
    tag = choice.checkpoint or ""
    weights = _of_tag(name, tag, config)
    return ClipSource(name, name, config, weights, name, _preprocess_of(name, tag), commit_of(weights))


def _of_tag(name: str, tag: str, config: Mapping[str, Any]) -> Path:
    """Return the file of a tag of open_clip."""
    import open_clip

    about = open_clip.get_pretrained_cfg(name, tag)
    known = open_clip.pretrained.list_pretrained_tags_by_model(name)
    if not about:
        listed = f"its tags are {', '.join(known)}" if known else "it has no tags"
        raise ConfigError(f"checkpoint {tag!r} is neither a file nor a tag of open_clip for {name}; {listed}")
    if bool(about.get("quick_gelu")) != bool(config.get("quick_gelu")):
        other = name.removesuffix("-quickgelu") if config.get("quick_gelu") else f"{name}-quickgelu"
        raise ConfigError(f"{tag} was trained with another activation than {name} has; give architecture={other}")
    repository, _, file = str(about.get("hf_hub", "")).rpartition("/")
    if not repository:
        raise ConfigError(f"{tag} is not on the hub; download {about.get('url')} and give checkpoint=FILE")
    safe = [f"{file.rpartition('.')[0]}.safetensors"] if file.endswith((".bin", ".pth")) else []
    elsewhere = f"elsewhere, download the weights from https://huggingface.co/{repository} and give checkpoint=FILE"
    return HubRepository(repository, elsewhere).file([*safe, file] if file else WEIGHTS)


def _preprocess_of(name: str, tag: str) -> dict[str, Any]:
    import open_clip

    about = open_clip.get_pretrained_cfg(name, tag)
    return {key: about[key] for key in PREPROCESS_KEYS if about.get(key) is not None}


def _common_preprocess(name: str) -> dict[str, Any]:
    """Return the preprocessing of an architecture's tags where they agree: a bare file does not tell its own."""
    import open_clip

    known = [_preprocess_of(name, tag) for tag in open_clip.pretrained.list_pretrained_tags_by_model(name)]
    return known[0] if known and all(one == known[0] for one in known) else {}
