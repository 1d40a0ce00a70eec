"""The folder of a run: where each file lies.

::

    NAME/run.json                     what was asked, versions, seed, machine, keys of all episodes
    NAME/run.lock                     held while `run.json` is changed
    NAME/episodes/KEY/events.jsonl    everything that happened; locked by the process that runs the episode
    NAME/episodes/KEY/result.json     the outcome; absent while an episode is unfinished
    NAME/images/SHA256.jpg            what the model saw
    NAME/scores/NAME.sqlite           scores of a slide's tiles by one scorer, shared by its schedules
    NAME/embeddings/                  what image-text models made of windows and tiles
"""

import contextlib
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pathnav.errors import ConfigError, RecordError
from pathnav.records import (
    EVENTS_FILE,
    ImageStore,
    JsonObject,
    locked,
    read_json,
    write_bytes_atomic,
    write_json_atomic,
)
from pathnav.run.description import RUN_FORMAT, continued

if TYPE_CHECKING:
    from pathnav.retrieval import EmbeddingStore

RESULT_FORMAT = "pathnav-result-1"
EXPLORATION_FORMAT = "pathnav-exploration-1"
RESULT_FILE = "result.json"
SCORES = "scores"
EMBEDDINGS = "embeddings"
LOCK_FILE = "run.lock"


class RunFolder:
    """A run's folder; making the object touches nothing. Several processes may run into it.

    Args:
        path: The folder, which may not exist yet.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.images = ImageStore(path / "images")
        self._before: set[Path] = set()
        self._description_before: bytes | None = None
        self._made_folders: list[Path] = []

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
        self._made_folders = [path for path in (self.path, *self.path.parents) if not path.exists()]
        self._before = set(self.path.rglob("*"))
        self._description_before = self.run_json.read_bytes() if self.run_json in self._before else None
        try:
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise ConfigError(f"the output folder {self.path} cannot be made: {error.strerror or error}") from error
        try:
            with locked(self.path / LOCK_FILE, wait=True):
                before = self.description() if self.run_json.exists() else None
                after = continued(before, description)
                if after != before:
                    write_json_atomic(self.run_json, after)
        except RecordError as error:
            raise ConfigError(f"the output folder {self.path} cannot be written: {error}") from error

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
        return self._made(self.episode(key))

    def result(self, key: str, expected_format: str = RESULT_FORMAT) -> JsonObject | None:
        """Return the result of an episode or an exploration, None where there is none yet.

        Raises:
            RecordError: If the file is damaged or of another format.
        """
        path = self.episode(key) / RESULT_FILE
        return read_json(path, expected_format) if path.exists() else None

    def scores(self, name: str) -> Path:
        """Return where the scores of this name lie, in a folder that is made where absent.

        Raises:
            RecordError: If it cannot be made.
        """
        return self._made(self.path / SCORES) / f"{name}.sqlite"

    def embeddings(self, reader: str, mpp_um: Sequence[float]) -> "EmbeddingStore":
        """Return the embeddings of windows and tiles of a slide that is read so, at this scale."""
        from pathnav.retrieval import EmbeddingStore

        return EmbeddingStore(self.path / EMBEDDINGS, {"reader": reader, "mpp_um": list(mpp_um)})

    def undo(self) -> None:
        """Leave the folder as `open` found it, where nothing was learnt: for a run that turned out to be impossible.

        Nothing is undone once a result is new, or while another process is at work.
        """
        with contextlib.suppress(RecordError, OSError), contextlib.ExitStack() as others:
            for held in (*self.path.glob(f"episodes/*/{EVENTS_FILE}"), *self.path.glob(f"{SCORES}/*.lock")):
                others.enter_context(locked(held))
            new = set(self.path.rglob("*")) - self._before
            if any(path.name == RESULT_FILE for path in new):
                return
            for path in sorted(new, reverse=True):  # what lies in a folder before the folder
                path.rmdir() if path.is_dir() else path.unlink(missing_ok=True)
            if self._description_before is not None:
                write_bytes_atomic(self.run_json, self._description_before)
            for folder in self._made_folders:
                folder.rmdir()

    def _made(self, folder: Path) -> Path:
        try:
            for path in (folder.parent, folder):
                path.mkdir(mode=0o700, exist_ok=True)
        except OSError as error:
            raise RecordError(f"{folder} cannot be made: {error.strerror or error}") from error
        return folder


@contextlib.contextmanager
def kept_or_temporary(folder: RunFolder | None) -> Iterator[RunFolder]:
    """Give the user's folder, or one that is removed at the end."""
    if folder is not None:
        yield folder
        return
    with tempfile.TemporaryDirectory(prefix="pathnav-") as path:
        yield RunFolder(Path(path))


def _is_unfinished(entry: Path) -> bool:
    """Return whether this is what a run killed at its very beginning left."""
    return entry.name == LOCK_FILE or (entry.name.startswith(".run.json.") and entry.name.endswith(".tmp"))
