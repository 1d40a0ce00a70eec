"""Load an image-text model, once per process and choice."""

import threading
from pathlib import Path
from typing import Any

from pathnav.retrieval.choice import ModelChoice
from pathnav.retrieval.clip import clip_network
from pathnav.retrieval.conch import conch_network
from pathnav.retrieval.device import device_for, is_out_of_memory, moved, out_of_memory, precision_for
from pathnav.retrieval.model import ImageTextModel
from pathnav.retrieval.names import FOLDER_PREFIX, Origin
from pathnav.retrieval.network import check_extra, quiet

MOST_LOADED = 2
"""Models that a process keeps: an agent's and a scorer's; a sweep over models would else fill the memory."""

_LOADED: dict[tuple[Any, ...], ImageTextModel] = {}
_LOCK = threading.Lock()


def load(choice: ModelChoice) -> ImageTextModel:
    """Return the model that a choice names; asked again, the same one, unless its file has changed.

    Raises:
        PluginError: If the extra, or for CONCH its package, is not installed.
        ConfigError: If the architecture, the weights, the device or the memory is not there, in one sentence.
    """
    key = (choice, *_stamp(choice))
    with _LOCK:
        if key not in _LOADED:
            while len(_LOADED) >= MOST_LOADED:
                del _LOADED[next(iter(_LOADED))]
            _LOADED[key] = _loaded(choice)
        _LOADED[key] = _LOADED.pop(key)  # the one that was not asked for longest goes first
        return _LOADED[key]


def _stamp(choice: ModelChoice) -> tuple[int, ...]:
    """Return size and time of the files that a choice names."""
    files = [choice.file] if choice.file is not None else []
    if choice.origin is Origin.FOLDER:
        files += sorted(Path(choice.full_name.removeprefix(FOLDER_PREFIX)).expanduser().glob("*"))
    found = [file.stat() for file in files if file.is_file()]
    return tuple(number for status in found for number in (status.st_size, status.st_mtime_ns))


def _loaded(choice: ModelChoice) -> ImageTextModel:
    check_extra()
    device = device_for(choice.device)
    precision = precision_for(choice.precision, device)
    try:
        with quiet():
            network = conch_network(choice) if choice.origin is Origin.CONCH else clip_network(choice)
            moved(network.module, device, network.size_bytes)
            return ImageTextModel(choice, network, device, precision)
    except (RuntimeError, MemoryError) as error:
        if not is_out_of_memory(error):
            raise
        raise out_of_memory(f"loading {choice.full_name}", None, "cpu") from error
