"""The files a run leaves: an append-only event log, images by their hash, JSON written in one piece.

Everything here survives SIGKILL at any moment: an event is one flushed line, every other file appears whole or not
at all. Files that show pixels or texts are readable by the user alone.
"""

import contextlib
import errno
import fcntl
import hashlib
import json
import logging
import os
import threading
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any

from pathnav.errors import RecordError

EVENT_FORMAT = "pathnav-event-1"
EVENTS_FILE = "events.jsonl"
OWNER_ONLY = 0o600
SHORTEST_SECRET = 6
_secrets: set[str] = set()
_NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP)
"""What file systems without locks, as some network ones are, answer."""

logger = logging.getLogger(__name__)

JsonObject = dict[str, Any]


class InUse(RecordError):
    """Raised when another process, or another thread of this one, holds a file of a run."""


def redacted(value: Any, secret: str | None) -> Any:
    """Return JSON, or a text, with `[key]` wherever a text holds the secret, or the secret as JSON writes it.

    A key of fewer than 6 characters is none: local servers take any text, such as `x`, and replacing that would tear
    words and hashes apart.
    """
    if secret is None or len(secret) < SHORTEST_SECRET:
        return value
    if isinstance(value, str):
        return value.replace(json.dumps(secret)[1:-1], "[key]").replace(secret, "[key]")
    if isinstance(value, Mapping):
        return {redacted(name, secret): redacted(item, secret) for name, item in value.items()}
    return [redacted(item, secret) for item in value] if isinstance(value, list | tuple) else value


def remember(secret: str | None) -> None:
    """Keep a key in mind, so that `masked` knows it."""
    if secret is not None:
        _secrets.add(secret)


def masked(text: str) -> str:
    """Return a text for the screen with `[key]` for every key that this process was given."""
    for secret in sorted(_secrets, key=len, reverse=True):
        text = str(redacted(text, secret))
    return text


def utc_now() -> datetime:
    """Return the present moment in UTC."""
    return datetime.now(UTC)


def _lock(descriptor: int, path: Path, how: int) -> None:
    """Lock an open file for its one writer, until it is closed or its process ends, however it ends."""
    try:
        fcntl.flock(descriptor, how)
    except BlockingIOError as error:
        raise InUse(f"{path} is in use by another run") from error
    except OSError as error:
        if error.errno not in _NO_LOCKS:
            raise RecordError(f"{path} cannot be locked: {error.strerror or error}") from error
        logger.warning("%s: this file system has no locks, so let one process alone use the folder", path)


@contextlib.contextmanager
def locked(path: Path, *, wait: bool = False) -> Iterator[None]:
    """Hold the lock of a file, made where absent in a folder that exists, for the time of a block.

    Raises:
        InUse: If somebody else holds it, and the caller does not wait.
        RecordError: If the file cannot be made.
    """
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, OWNER_ONLY)
    except OSError as error:
        raise RecordError(f"{path} cannot be opened: {error.strerror or error}") from error
    try:
        _lock(descriptor, path, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        yield
    finally:
        os.close(descriptor)


def write_bytes_atomic(path: Path, content: bytes, *, durable: bool = True) -> None:
    """Write a file whole or not at all, readable by its owner only.

    Args:
        path: Where to; the folder exists.
        content: The bytes.
        durable: Whether the bytes must reach the disk before the name does, so that a power cut leaves the old file
            or the new one. It costs a few ms: too much for each of a run's thousands of images.

    Raises:
        RecordError: If the file cannot be written.
    """
    scratch = path.with_name(f".{path.name}.{os.getpid()}-{threading.get_ident()}.tmp")
    try:
        with os.fdopen(os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, OWNER_ONLY), "wb") as file:
            file.write(content)
            if durable:
                file.flush()
                os.fsync(file.fileno())
        scratch.replace(path)
    except OSError as error:
        with contextlib.suppress(OSError):
            scratch.unlink(missing_ok=True)
        raise RecordError(f"{path} cannot be written: {error.strerror or error}") from error


def write_json_atomic(path: Path, document: Mapping[str, Any]) -> None:
    """Write a JSON object whole or not at all.

    Raises:
        RecordError: If the file cannot be written.
        ValueError: If the object holds a number that JSON has no form for (NaN, infinity).
    """
    text = json.dumps(document, ensure_ascii=False, allow_nan=False, indent=1)
    write_bytes_atomic(path, (text + "\n").encode())


def read_json(path: Path, expected_format: str) -> JsonObject:
    """Return a JSON object of ours.

    Raises:
        RecordError: If the file cannot be read, is not a JSON object, or has another `format`.
    """
    try:
        document = json.loads(path.read_bytes())
    except OSError as error:
        raise RecordError(f"{path} cannot be read: {error.strerror or error}") from error
    except ValueError as error:
        raise RecordError(f"{path} is not JSON: {error}") from error
    found = document.get("format") if isinstance(document, dict) else None
    if found != expected_format:
        raise RecordError(f"{path} should have the format {expected_format!r}, but has {found!r}")
    return dict(document)


def _parsed_event(line: bytes, path: Path, number: int) -> JsonObject:
    """Return the event of one line; `number` is the line's, from 1."""
    try:
        event = json.loads(line)
    except ValueError as error:
        raise RecordError(f"{path}, line {number}, is not JSON: {error}") from error
    if not isinstance(event, dict) or event.get("format") != EVENT_FORMAT or not isinstance(event.get("id"), str):
        raise RecordError(f"{path}, line {number}, is not an event of the format {EVENT_FORMAT!r}")
    return event


def _whole_lines(content: bytes) -> list[bytes]:
    """Return the lines that a killed writer finished: all but a last one without its newline, or not JSON."""
    lines = content.split(b"\n")[:-1]
    if lines:
        try:
            json.loads(lines[-1])
        except ValueError:
            lines.pop()
    return lines


def read_events(path: Path) -> list[JsonObject]:
    """Return the events of a log in their order, without a torn last line; the file stays as it is.

    Raises:
        RecordError: If the file cannot be read, or an earlier line is not an event of ours.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise RecordError(f"{path} cannot be read: {error.strerror or error}") from error
    return [_parsed_event(line, path, number) for number, line in enumerate(_whole_lines(content), start=1)]


class EventLog:
    """An append-only file of events, one JSON object a line, each flushed before `append` returns.

    Events are known by their `id`: one that is already there is not written twice, so a step that runs again after a
    crash may record itself again. Threads may share a log.

    Args:
        path: `events.jsonl`; made where absent, in a folder that exists. A torn last line is cut. Locked while open.
        now: Gives the time that new events carry.
        secret: A key that must not stand in the file; `[key]` stands in its place.

    Raises:
        RecordError: If the file cannot be opened, or an earlier line is not an event of ours.
        InUse: If another log has it open.
    """

    def __init__(self, path: Path, now: Callable[[], datetime] = utc_now, secret: str | None = None) -> None:
        self.path = path
        self._now = now
        self._secret = secret
        self._lock = threading.Lock()
        self._events: dict[str, JsonObject] = {}
        try:
            self._file = os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, OWNER_ONLY), "r+b")
        except OSError as error:
            raise RecordError(f"{path} cannot be opened: {error.strerror or error}") from error
        try:
            _lock(self._file.fileno(), path, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._take_over()
        except RecordError:
            self._file.close()
            raise

    def _take_over(self) -> None:
        """Read what is there and cut a torn last line."""
        lines = _whole_lines(self._file.read())
        for number, line in enumerate(lines, start=1):
            event = _parsed_event(line, self.path, number)
            self._events[event["id"]] = event
        self._file.truncate(sum(len(line) + 1 for line in lines))
        self._file.seek(0, os.SEEK_END)

    def append(self, event: Mapping[str, Any]) -> JsonObject:
        """Write an event unless its id is there already; return the one that is in the log.

        Args:
            event: JSON types with an `id`; `format` and `time` are added.

        Raises:
            RecordError: If the line cannot be written.
            ValueError: If the event holds a number that JSON has no form for.
        """
        with self._lock:
            if (known := self._events.get(event["id"])) is not None:
                return known
            plain = redacted(event, self._secret)
            whole = {"format": EVENT_FORMAT, **plain, "time": self._now().isoformat(timespec="milliseconds")}
            line = json.dumps(whole, ensure_ascii=False, allow_nan=False) + "\n"
            try:
                self._file.write(line.encode())
                self._file.flush()
            except OSError as error:
                raise RecordError(f"{self.path} cannot be written: {error.strerror or error}") from error
            self._events[event["id"]] = whole
            return whole

    def get(self, event_id: str) -> JsonObject | None:
        """Return the event with this id, None where there is none."""
        with self._lock:
            return self._events.get(event_id)

    def __iter__(self) -> Iterator[JsonObject]:
        """Go through the events in their order."""
        with self._lock:
            return iter(list(self._events.values()))

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def __enter__(self) -> "EventLog":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class ImageStore:
    """The JPEG files of a run, each named by the SHA-256 of its bytes, written once.

    Args:
        folder: `images/`; made with the first image, for the user alone.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def path(self, sha256: str) -> Path:
        """Return where the image of this name lies."""
        return self.folder / f"{sha256}.jpg"

    def save(self, jpeg: bytes) -> str:
        """Store an image and return its name, the SHA-256 of its bytes in hexadecimal.

        Raises:
            RecordError: If it cannot be written.
        """
        sha256 = hashlib.sha256(jpeg).hexdigest()
        path = self.path(sha256)
        if path.exists():
            return sha256
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise RecordError(f"{self.folder} cannot be made: {error.strerror or error}") from error
        write_bytes_atomic(path, jpeg, durable=False)
        return sha256

    def load(self, sha256: str) -> bytes:
        """Return the bytes of an image.

        Raises:
            RecordError: If it is not there, or its bytes no longer have this hash.
        """
        path = self.path(sha256)
        try:
            jpeg = path.read_bytes()
        except OSError as error:
            raise RecordError(f"{path} cannot be read: {error.strerror or error}") from error
        if hashlib.sha256(jpeg).hexdigest() != sha256:
            raise RecordError(f"{path} was changed: its bytes no longer have the hash that is its name")
        return jpeg
