"""The folder of a run: where each file lies, whose it is, and how to leave no trace of a run that never began.

::

    NAME/run.json                     what was asked, versions, seed, machine, keys of all episodes
    NAME/episodes/KEY/events.jsonl    everything that happened
    NAME/episodes/KEY/result.json     the outcome; absent while an episode is unfinished
    NAME/episodes/KEY/checkpoint.sqlite   to resume from; gone once the outcome stands
    NAME/images/SHA256.jpg            what the model saw
"""

import contextlib
import os
import platform
import shutil
import sys
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from pathnav import __version__
from pathnav.errors import ConfigError, RecordError
from pathnav.run.record import ImageStore, JsonObject, read_json, write_bytes_atomic, write_json_atomic

RUN_FORMAT = "pathnav-run-1"
RESULT_FORMAT = "pathnav-result-1"
RESULT_FILE = "result.json"
CHECKPOINT = "checkpoint.sqlite"

_RECORDED_PACKAGES = (
    "openslide-python",
    "openslide-bin",
    "tiffslide",
    "langgraph",
    "langchain-openai",
    "numpy",
    "pillow",
)


class RunFolder:
    """A run's folder; making the object touches nothing.

    Args:
        path: The folder, which may not exist yet.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.images = ImageStore(path / "images")
        self._made: list[Path] = []
        self._run_json_before: bytes | None = None

    def check(self) -> None:
        """Refuse a folder that holds something that is not ours.

        Raises:
            ConfigError: If the path is a file, or a folder that is neither empty nor a run's, or is not readable.
            RecordError: If it is a run's, but of another format.
        """
        if not self.path.exists():
            return
        if not self.path.is_dir():
            raise ConfigError(f"the output {self.path} is a file; expected a folder")
        try:
            names = [entry.name for entry in self.path.iterdir() if not _is_unfinished(entry)]
        except OSError as error:
            raise ConfigError(f"the output folder {self.path} cannot be read: {error.strerror or error}") from error
        if not names:
            return
        if "run.json" not in names:
            raise ConfigError(
                f"the output folder {self.path} is not empty and has no run.json, so it is not one of pathnav's; "
                "name another --out"
            )
        self.description()

    def open(self, description: Mapping[str, Any]) -> None:
        """Make the folder where absent and write `run.json`, unless the same is there already.

        Args:
            description: From `describe_run`. Episodes of earlier runs into this folder stay listed; a different
                scenario, version or machine moves the earlier description into `earlier`.

        Raises:
            ConfigError: If the folder is not ours or cannot be made.
        """
        self.check()
        try:
            self._make(self.path)
            self._make(self.path / "episodes")
        except OSError as error:
            self.undo()
            raise ConfigError(f"the output folder {self.path} cannot be made: {error.strerror or error}") from error
        before = self.description() if self.run_json.exists() else None
        after = _continued(before, description)
        if after != before:
            self._remember_run_json()
            write_json_atomic(self.run_json, after)

    def _remember_run_json(self) -> None:
        """Keep what is needed to undo a change of `run.json`."""
        if not self.run_json.exists():
            self._made.append(self.run_json)
        elif self._run_json_before is None and self.run_json not in self._made:
            self._run_json_before = self.run_json.read_bytes()

    @property
    def run_json(self) -> Path:
        """Where the run's description lies."""
        return self.path / "run.json"

    def description(self) -> JsonObject:
        """Return `run.json`.

        Raises:
            RecordError: If it is not there or not ours.
        """
        return read_json(self.run_json, RUN_FORMAT)

    def episode(self, key: str) -> Path:
        """Return the folder of an episode, which may not exist yet."""
        return self.path / "episodes" / key

    def make_episode(self, key: str) -> Path:
        """Return the folder of an episode, made where absent.

        Raises:
            RecordError: If it cannot be made.
        """
        folder = self.episode(key)
        try:
            self._make(folder)
        except OSError as error:
            raise RecordError(f"{folder} cannot be made: {error.strerror or error}") from error
        return folder

    def result(self, key: str) -> JsonObject | None:
        """Return the result of an episode, None where there is none yet.

        Raises:
            RecordError: If the file is damaged or of another format.
        """
        path = self.episode(key) / RESULT_FILE
        return read_json(path, RESULT_FORMAT) if path.exists() else None

    def undo(self) -> None:
        """Remove what this object made: for a run that turned out to be impossible before anything was learnt.

        What was there before stays; so does a folder that something else was put into.
        """
        self.images.undo()
        for path in reversed(self._made):
            with contextlib.suppress(OSError):
                if path.parent.name == "episodes":
                    shutil.rmtree(path)
                elif path.is_dir():
                    path.rmdir()
                else:
                    path.unlink()
        self._made.clear()
        if self._run_json_before is not None:
            with contextlib.suppress(RecordError):
                write_bytes_atomic(self.run_json, self._run_json_before)

    def _make(self, folder: Path) -> None:
        """Make a folder with its parents and remember each that was not there."""
        missing = [folder] if not folder.exists() else []
        missing += [parent for parent in folder.parents if not parent.exists()] if missing else []
        for path in reversed(missing):
            path.mkdir(exist_ok=True)
            self._made.append(path)


def _is_unfinished(entry: Path) -> bool:
    """Return whether this is what a run killed at its very beginning left: half a file, or an empty folder."""
    if entry.name == "episodes" and entry.is_dir():
        return not any(entry.iterdir())
    return entry.name.startswith(".run.json.") and entry.name.endswith(".tmp")


def describe_run(
    name: str, scenario: Mapping[str, Any], *, seed: int, episodes: Sequence[str], started: str
) -> JsonObject:
    """Return what `run.json` says.

    Args:
        name: What the run is called.
        scenario: The scenario as resolved, or the arguments of a single episode.
        seed: The scenario's seed.
        episodes: The keys of all planned episodes, in order.
        started: ISO time.
    """
    return {
        "format": RUN_FORMAT,
        "name": name,
        "started": started,
        "seed": seed,
        "scenario": dict(scenario),
        "versions": _versions(),
        "machine": {
            "system": platform.platform(),
            "processor": platform.machine(),
            "cpus": os.cpu_count(),
            "python": sys.version.split()[0],
        },
        "episodes": list(episodes),
    }


def _versions() -> dict[str, str | None]:
    """Return the versions of what can change a pixel or a request."""
    versions: dict[str, str | None] = {"pathnav": __version__}
    for package in _RECORDED_PACKAGES:
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            versions[package] = None
    return versions


def _continued(before: JsonObject | None, after: Mapping[str, Any]) -> JsonObject:
    """Return the description of a folder that is run into again."""
    if before is None:
        return dict(after)
    apart = ("started", "episodes", "earlier")
    episodes = list(dict.fromkeys([*before["episodes"], *after["episodes"]]))
    same = all(before.get(field) == after.get(field) for field in {*before, *after} - {*apart})
    if same:
        return {**before, "episodes": episodes}
    earlier = {field: value for field, value in before.items() if field not in ("earlier", "format", "episodes")}
    return {**after, "episodes": episodes, "earlier": [*before.get("earlier", []), earlier]}
