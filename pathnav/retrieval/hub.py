"""Files of the Hugging Face hub: from its cache where they are there, else over the network, else one sentence."""

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

from pathnav.errors import ConfigError
from pathnav.retrieval.names import FOLDER_PREFIX

CONFIG = "open_clip_config.json"
WEIGHTS = ("open_clip_model.safetensors", "open_clip_pytorch_model.bin")
"""What open_clip looks for in a repository of the hub, best first."""

TOKENIZER_FILES = (
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "vocab.txt",
    "vocab.json",
    "merges.txt",
)
TIMEOUT_S = 10.0


class HubRepository:
    """One repository of the hub.

    Args:
        name: `OWNER/NAME`.
        where_else: What to do on a machine without a network, the end of a sentence.
    """

    def __init__(self, name: str, where_else: str = "") -> None:
        self.name = name
        self._where_else = where_else or (
            f"elsewhere, download {CONFIG} and the weights from https://huggingface.co/{name} into one folder, and "
            f"give architecture={FOLDER_PREFIX}FOLDER"
        )

    def file(self, candidates: Sequence[str]) -> Path:
        """Return the first of some files that the repository has; what is in the cache needs no network.

        Raises:
            ConfigError: If it has none of them, or it cannot be asked.
        """
        found = self.cached(candidates) or self._downloaded(candidates)
        if found is None:
            raise ConfigError(
                f"{self.name} on the hub has no {' or '.join(candidates)}, so it is not in the format of open_clip"
            )
        return found

    def files_if_any(self, candidates: Sequence[str]) -> None:
        """Fetch those of some files that the repository has."""
        for candidate in candidates:
            if candidate in self.names and self.cached([candidate]) is None:
                self._downloaded([candidate])

    def cached(self, candidates: Sequence[str]) -> Path | None:
        """Return the first of some files that is in the cache, without a network."""
        from huggingface_hub import hf_hub_download
        from huggingface_hub.errors import EntryNotFoundError

        for candidate in candidates:
            try:
                return Path(hf_hub_download(self.name, candidate, local_files_only=True))
            except EntryNotFoundError:
                continue
        return None

    @cached_property
    def names(self) -> frozenset[str]:
        """The files of the repository, asked over the network: a dead one is known in seconds, not in 45."""
        from huggingface_hub import HfApi

        try:
            siblings = HfApi().model_info(self.name, timeout=TIMEOUT_S).siblings or []
        except Exception as error:
            raise ConfigError(self._about(error)) from error
        return frozenset(one.rfilename for one in siblings)

    def _downloaded(self, candidates: Sequence[str]) -> Path | None:
        from huggingface_hub import hf_hub_download
        from huggingface_hub.utils import are_progress_bars_disabled, disable_progress_bars, enable_progress_bars

        there = [one for one in candidates if one in self.names]
        if not there:
            return None
        were_off = are_progress_bars_disabled()
        disable_progress_bars()
        try:
            return Path(hf_hub_download(self.name, there[0]))
        except Exception as error:
            raise ConfigError(self._about(error)) from error
        finally:
            if not were_off:
                enable_progress_bars()

    def _about(self, error: Exception) -> str:
        kind, start = type(error).__name__, f"{self.name} is not in the hub's cache on this machine and"
        if kind == "OfflineModeIsEnabled":
            return f"{start} HF_HUB_OFFLINE forbids to fetch it; {self._where_else}"
        if kind == "GatedRepoError":
            return f"{self.name} on the hub is gated: ask for access on its page, then run `hf auth login`"
        if kind in ("RepositoryNotFoundError", "RevisionNotFoundError"):
            return f"the hub has no {self.name}, or shows it only to those signed in (`hf auth login`)"
        said = (str(error).strip().splitlines() or [kind])[0][:160]
        return f"{start} cannot be fetched ({kind}: {said}); {self._where_else}"


def commit_of(file: Path) -> str | None:
    """Return the commit that a file of the hub's cache belongs to."""
    return file.parent.name if file.parent.parent.name == "snapshots" else None
