"""Files of weights, fetched and looked at before a network is filled from them, and what libraries say of them."""

import logging
import pickle
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from pathnav.errors import ConfigError

SUFFIXES = (".pt", ".pth", ".bin", ".safetensors")
OUT_OF_MEMORY = ("allocate memory", "not enough memory", "out of memory", "bad_alloc", "could not create a memory")
LIBRARY_ERRORS = (
    *(RuntimeError, TypeError, LookupError, ValueError, AttributeError, AssertionError, ImportError),
    *(OSError, EOFError, StopIteration),
)
TALKATIVE = ("transformers", "huggingface_hub", "timm")
HUB_TIMEOUT_S = 10.0
HEAD_BYTES = 24

Shapes = Mapping[str, tuple[int, ...]]
"""The tensors of a file: shape by name."""


def check_is_weights(path: Path) -> None:
    """Refuse a file whose first bytes are not those of the format that its name tells; needs no torch.

    Raises:
        ConfigError: If there is no such file, or it plainly holds something else than weights.
    """
    try:
        with path.open("rb") as file:
            head = file.read(HEAD_BYTES)
    except IsADirectoryError as error:
        raise ConfigError(
            f"checkpoint {path} is a folder; a folder is given as architecture=local-dir:{path}"
        ) from error
    except OSError as error:
        raise ConfigError(f"checkpoint {path} cannot be read: {error.strerror or error}") from error
    is_safe = head[8:9] == b"{"  # eight bytes of length, then JSON
    is_torch = head.startswith((b"PK\x03\x04", b"\x80")) and not is_safe
    if not (is_safe if path.suffix.lower() == ".safetensors" else is_torch):
        raise ConfigError(
            f"checkpoint {path} holds no weights of the format that its name tells (.safetensors, else PyTorch's); "
            f"it begins with {head!r}"
        )


def is_out_of_memory(error: BaseException) -> bool:
    """Return whether an error of torch or Python says that memory ran out."""
    if isinstance(error, MemoryError):
        return True
    return isinstance(error, RuntimeError) and any(mark in str(error).lower() for mark in OUT_OF_MEMORY)


def out_of_memory(what: str) -> ConfigError:
    """Return the error that tells what does not fit."""
    return ConfigError(f"not enough memory for {what}; free some, or choose a smaller model or another device")


@contextmanager
def told(what: str) -> Iterator[None]:
    """Tell in one sentence what a library refuses; memory that runs out is `load`'s to tell."""
    try:
        yield
    except LIBRARY_ERRORS as error:
        if is_out_of_memory(error):
            raise
        said = str(error).strip().partition("\n")[0][:200]
        raise ConfigError(f"{what} ({type(error).__name__}: {said})") from error


@contextmanager
def quiet() -> Iterator[None]:
    """Keep the libraries from writing to the terminal; what matters comes as an error of ours.

    open_clip says all on the root logger, by `logging.info`, which also gives one without handlers one that prints.
    """
    root, handler = logging.getLogger(), logging.NullHandler()

    def is_not_open_clips(record: logging.LogRecord) -> bool:
        return "open_clip" not in record.pathname

    with warnings.catch_warnings(), ExitStack() as stack:
        warnings.simplefilter("ignore")
        root.addHandler(handler)
        stack.callback(root.removeHandler, handler)
        root.addFilter(is_not_open_clips)
        stack.callback(root.removeFilter, is_not_open_clips)
        for logger in map(logging.getLogger, TALKATIVE):
            stack.callback(logger.setLevel, logger.level)
            logger.setLevel(logging.CRITICAL)
        yield


def fetched(
    repository: str, needed: Sequence[Sequence[str]], also: Sequence[str] = (), way_on: str = "give local-dir:FOLDER"
) -> list[Path]:
    """Return files of a repository of the hub (`OWNER/NAME`): from its cache without a network, else fetched.

    Args:
        repository: Its name.
        needed: For each file, the names that it may have, best first.
        also: What is fetched beside them where it is there.
        way_on: What to do with files that were downloaded elsewhere.
    """
    from huggingface_hub import HfApi, hf_hub_download, try_to_load_from_cache
    from huggingface_hub.utils import disable_progress_bars

    cached = [
        next((path for name in names if isinstance(path := try_to_load_from_cache(repository, name), str)), None)
        for names in needed
    ]
    if None not in cached:
        return [Path(str(path)) for path in cached]
    disable_progress_bars()
    try:
        # Asked first: a dead network is known in seconds, where a download tries for 45.
        siblings = HfApi().model_info(repository, timeout=HUB_TIMEOUT_S).siblings or []
        there = {one.rfilename for one in siblings}
        wanted = [next((name for name in names if name in there), None) for names in needed]
        if None not in wanted:
            for name in there.intersection(also):
                hf_hub_download(repository, name)
            return [Path(hf_hub_download(repository, str(name))) for name in wanted]
    except Exception as error:
        said = str(error).strip().partition("\n")[0][:160]
        raise ConfigError(
            f"{repository} is not in the hub's cache on this machine and cannot be fetched "
            f"({type(error).__name__}: {said}); if it is gated run `hf auth login`, or download the files elsewhere "
            f"from https://huggingface.co/{repository} and {way_on}"
        ) from error
    lacking = " or ".join(needed[wanted.index(None)])
    raise ConfigError(f"{repository} on the hub has no {lacking}, so it is not in the format of open_clip")


def commit_of(file: Path) -> str | None:
    """Return the commit that a file of the hub's cache belongs to."""
    return file.parent.name if file.parent.parent.name == "snapshots" else None


def shapes_in(path: Path) -> Shapes:
    """Return the tensors of a file of weights: shape by name; nothing that it holds is run."""
    from open_clip.factory import load_state_dict
    from safetensors import SafetensorError

    check_is_weights(path)
    try:
        with told(f"checkpoint {path} is cut off, damaged or holds no weights"):
            content = load_state_dict(str(path), weights_only=True)
            shapes = {name: tuple(one.shape) for name, one in content.items() if hasattr(one, "shape")}
    except (SafetensorError, pickle.UnpicklingError) as error:
        raise ConfigError(
            f"checkpoint {path} is cut off or damaged, or holds more than weights, and pathnav runs no code of a "
            "checkpoint; download it again, or save its state_dict alone with torch.save"
        ) from error
    if not shapes:
        raise ConfigError(f"checkpoint {path} holds no weights: expected a mapping of names to tensors")
    return shapes


def check_shapes(path: Path, name: str, module: Any, shapes: Shapes) -> None:
    """Refuse weights whose shapes are not the network's.

    open_clip and conch stretch position embeddings of another image size or text length without a word; the
    network then runs, and its embeddings are worth less.
    """
    network = {key: tuple(tensor.shape) for key, tensor in module.state_dict().items()}
    for key, shape in sorted(shapes.items()):
        wanted = network.get(key, network.get(f"text.{key}", shape))
        if wanted != shape and not key.startswith("logit_"):
            raise _misfit(path, name, f"{key} is {wanted} in the network and {shape} in the file")


def check_names(path: Path, name: str, missing: Sequence[str], unexpected: Sequence[str] = ()) -> None:
    """Refuse weights that lack some of the network's or have others, naming the first."""
    wrong = [*(f"lacks {key}" for key in missing), *(f"also has {key}" for key in unexpected)]
    if wrong:
        raise _misfit(path, name, f"it {wrong[0]} ({len(wrong)} names differ)")


def _misfit(path: Path, name: str, why: str) -> ConfigError:
    return ConfigError(f"checkpoint {path} is none of {name}: {why}; give the architecture that it was trained with")
