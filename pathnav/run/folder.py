"""The folder of a run: where each file lies, whose it is, and how to leave no trace of a run that never began.

::

    NAME/run.json                     what was asked, versions, seed, machine, keys of all episodes
    NAME/leases/                      who is running what at the moment; gone when nobody is
    NAME/episodes/KEY/events.jsonl    everything that happened
    NAME/episodes/KEY/result.json     the outcome; absent while an episode is unfinished
    NAME/images/SHA256.jpg            what the model saw
    NAME/scores.sqlite                scores of tiles, shared by all explorations
    NAME/embeddings/                  what image-text models made of windows and tiles
"""

import contextlib
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pathnav.errors import ConfigError, RecordError
from pathnav.run.description import RUN_FORMAT, continued
from pathnav.run.lease import LEASES, Lease, Leases
from pathnav.run.record import ImageStore, JsonObject, read_json, write_bytes_atomic, write_json_atomic

if TYPE_CHECKING:
    from pathnav.retrieval import EmbeddingStore

RESULT_FORMAT = "pathnav-result-1"
EXPLORATION_FORMAT = "pathnav-exploration-1"
RESULT_FILE = "result.json"
SCORES_FILE = "scores.sqlite"
EMBEDDINGS = "embeddings"
OLD_LOCK = "run.lock"
"""Empty; from before there were leases."""
_DESCRIBING = "describing"
"""Held for moments, while `run.json` is read, changed and written."""


class RunFolder:
    """A run's folder; making the object touches nothing.

    Several processes may have it open: what each of them is running is held by a lease.

    Args:
        path: The folder, which may not exist yet.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.images = ImageStore(path / "images")
        self._made: list[Path] = []
        self._run_json_before: bytes | None = None
        self._leases: Leases | None = None
        self._was_joined = False

    @property
    def leases(self) -> Leases:
        """The leases of this run; they end with `close`, or with the process."""
        if self._leases is None:
            self._leases = Leases(self.path / LEASES)
        return self._leases

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
        """Make the folder where absent, and write `run.json`, unless the same is there already.

        Args:
            description: From `describe_run`. Episodes of earlier runs into this folder stay listed; a different
                scenario, version or machine moves the earlier description into `earlier`.

        Raises:
            ConfigError: If the folder is not ours, or cannot be made.
        """
        self.check()
        try:
            self._make(self.path)
            with self.leases.alone(_DESCRIBING):
                self._join()
                self._make(self.path / "episodes")
                self._describe(description)
        except OSError as error:
            self.undo()
            raise ConfigError(f"the output folder {self.path} cannot be made: {error.strerror or error}") from error

    def _describe(self, description: Mapping[str, Any]) -> None:
        before = self.description() if self.run_json.exists() else None
        after = continued(before, description)
        if after != before:
            self._remember_run_json()
            write_json_atomic(self.run_json, after)

    def _join(self) -> None:
        """Make this process known to the others, which then leave in place what this one may build on."""
        for name in self.leases.names():
            kind, _, owner = name.partition("-")
            if kind == "process" and owner != self.leases.owner:
                (self.leases.folder / f"joined-{owner}").touch()
        self.leases.claim(f"process-{self.leases.owner}")

    def close(self) -> None:
        """Let go of all that this process holds."""
        if self._leases is not None:
            joined = self._leases.folder / f"joined-{self._leases.owner}"
            self._was_joined = self._was_joined or joined.exists()
            joined.unlink(missing_ok=True)
            self._leases.close()
            self._leases = None

    def claim(self, keys: Iterable[str]) -> list[Lease] | None:
        """Return leases of episodes, None where another process or thread is at one of them.

        Raises:
            RecordError: If the leases cannot be written.
        """
        held: list[Lease] = []
        try:
            for key in sorted(keys):
                lease = self.leases.claim(key)
                if lease is None:
                    self.release(held)
                    return None
                held.append(lease)
        except OSError as error:
            raise RecordError(f"{self.leases.folder} cannot be written: {error.strerror or error}") from error
        return held

    def release(self, held: Iterable[Lease]) -> None:
        """Let others run these episodes."""
        for lease in held:
            self.leases.release(lease)

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

    def embeddings(self, reader: str, mpp_um: Sequence[float]) -> "EmbeddingStore":
        """Return the embeddings of windows and tiles of a slide that is read so, at this scale."""
        from pathnav.retrieval import EmbeddingStore

        return EmbeddingStore(self.path / EMBEDDINGS, {"reader": reader, "mpp_um": list(mpp_um)})

    def undo(self) -> None:
        """Remove what this object made: for a run that turned out to be impossible before anything was learnt.

        What was there before stays; so does a folder that something else was put into, and, where another process came
        meanwhile, all that it may build on.
        """
        if not self._made and self._run_json_before is None:
            self.close()
            return
        mine: list[Path] = []
        with contextlib.suppress(OSError), self.leases.alone(_DESCRIBING):
            is_joined = self._was_joined or (self.leases.folder / f"joined-{self.leases.owner}").exists()
            mine = [path for path in self._made if path.parent.name == "episodes" or not is_joined]
            if not is_joined:
                self.images.undo()
                self._restore_run_json()
            _remove(path for path in mine if path != self.path and path not in self.path.parents)
        self.close()
        _remove(path for path in mine if path == self.path or path in self.path.parents)
        self._made.clear()

    def _restore_run_json(self) -> None:
        if self._run_json_before is not None:
            with contextlib.suppress(RecordError):
                write_bytes_atomic(self.run_json, self._run_json_before)

    def _make(self, folder: Path) -> None:
        """Make a folder with its parents and remember each that was not there."""
        missing = [folder] if not folder.exists() else []
        missing += [parent for parent in folder.parents if not parent.exists()] if missing else []
        for path in reversed(missing):
            path.mkdir(mode=0o700, exist_ok=True)
            self._made.append(path)


@contextlib.contextmanager
def kept_or_temporary(folder: RunFolder | None) -> Iterator[RunFolder]:
    """Give the user's folder, or one that is removed at the end."""
    if folder is not None:
        yield folder
        return
    with tempfile.TemporaryDirectory(prefix="pathnav-") as path:
        yield RunFolder(Path(path))


def _remove(made: Iterable[Path]) -> None:
    """Remove files and folders, the latest first; what holds something else stays."""
    for path in reversed(list(made)):
        with contextlib.suppress(OSError):
            if path.parent.name == "episodes":
                shutil.rmtree(path)
            elif path.is_dir():
                path.rmdir()
            else:
                path.unlink()


def _is_unfinished(entry: Path) -> bool:
    """Return whether this is what a run killed at its very beginning left: half a file, or an empty folder."""
    if entry.name == "episodes" and entry.is_dir():
        return not any(entry.iterdir())
    return entry.name in (LEASES, OLD_LOCK) or (entry.name.startswith(".run.json.") and entry.name.endswith(".tmp"))
