"""The folder of a run: where each file lies, whose it is, and how to leave no trace of a run that never began.

::

    NAME/run.json                     what was asked, versions, seed, machine, keys of all episodes
    NAME/run.lock                     empty; locked by the one run that writes here
    NAME/episodes/KEY/events.jsonl    everything that happened
    NAME/episodes/KEY/result.json     the outcome; absent while an episode is unfinished
    NAME/episodes/KEY/checkpoint.sqlite   to resume from; gone once the outcome stands
    NAME/images/SHA256.jpg            what the model saw
    NAME/scores.sqlite                scores of tiles, shared by all explorations
"""

import contextlib
import os
import shutil
import tempfile
import weakref
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pathnav.errors import ConfigError, RecordError
from pathnav.run import lock
from pathnav.run.description import RUN_FORMAT, continued
from pathnav.run.record import ImageStore, JsonObject, read_json, write_bytes_atomic, write_json_atomic

RESULT_FORMAT = "pathnav-result-1"
EXPLORATION_FORMAT = "pathnav-exploration-1"
RESULT_FILE = "result.json"
CHECKPOINT = "checkpoint.sqlite"
SCORES_FILE = "scores.sqlite"


class RunFolder:
    """A run's folder; making the object touches nothing.

    From `open` to `close` no other run can open it; the lock ends with the process or the object at the latest.

    Args:
        path: The folder, which may not exist yet.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.images = ImageStore(path / "images")
        self._made: list[Path] = []
        self._run_json_before: bytes | None = None
        self._unlock: weakref.finalize[[int], RunFolder] | None = None

    def check(self) -> None:
        """Refuse a folder that holds something that is not ours.

        Raises:
            ConfigError: If the path is a file, or a folder that is neither empty nor a run's, or is not readable, or
                in use by another run.
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
        if self._unlock is None:
            lock.refuse_used(self.path)
        if not names:
            return
        if "run.json" not in names:
            raise ConfigError(
                f"the output folder {self.path} is not empty and has no run.json, so it is not one of pathnav's; "
                "name another --out"
            )
        self.description()

    def open(self, description: Mapping[str, Any]) -> None:
        """Make the folder where absent, lock it, and write `run.json`, unless the same is there already.

        Args:
            description: From `describe_run`. Episodes of earlier runs into this folder stay listed; a different
                scenario, version or machine moves the earlier description into `earlier`.

        Raises:
            ConfigError: If the folder is not ours, is in use by another run, or cannot be made.
        """
        self.check()
        try:
            self._make(self.path)
            self._lock()
            self._make(self.path / "episodes")
        except OSError as error:
            self.undo()
            raise ConfigError(f"the output folder {self.path} cannot be made: {error.strerror or error}") from error
        before = self.description() if self.run_json.exists() else None
        after = continued(before, description)
        if after != before:
            self._remember_run_json()
            write_json_atomic(self.run_json, after)

    def close(self) -> None:
        """Let other runs in."""
        if self._unlock is not None:
            self._unlock()
            self._unlock = None

    def _lock(self) -> None:
        """Keep other runs out; a folder that is locked already stays so."""
        if self._unlock is not None:
            return
        path = self.path / lock.LOCK_FILE
        is_new = not path.exists()
        self._unlock = weakref.finalize(self, os.close, lock.take(self.path))
        if is_new:
            self._made.append(path)

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

    def result(self, key: str, expected_format: str = RESULT_FORMAT) -> JsonObject | None:
        """Return the result of an episode or an exploration, None where there is none yet.

        Raises:
            RecordError: If the file is damaged or of another format.
        """
        path = self.episode(key) / RESULT_FILE
        return read_json(path, expected_format) if path.exists() else None

    def scores(self) -> Path:
        """Return where the scores of tiles lie, noting whether this object is the one that makes the file."""
        path = self.path / SCORES_FILE
        if not path.exists() and path not in self._made:
            self._made += [path, *(path.with_name(f"{SCORES_FILE}-{tail}") for tail in ("shm", "wal"))]
        return path

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


@contextlib.contextmanager
def kept_or_temporary(folder: RunFolder | None) -> Iterator[RunFolder]:
    """Give the user's folder, or one that is removed at the end."""
    if folder is not None:
        yield folder
        return
    with tempfile.TemporaryDirectory(prefix="pathnav-") as path:
        yield RunFolder(Path(path))


def _is_unfinished(entry: Path) -> bool:
    """Return whether this is what a run killed at its very beginning left: half a file, or an empty folder."""
    if entry.name == "episodes" and entry.is_dir():
        return not any(entry.iterdir())
    return entry.name == lock.LOCK_FILE or (entry.name.startswith(".run.json.") and entry.name.endswith(".tmp"))
