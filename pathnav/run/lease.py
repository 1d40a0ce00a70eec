"""Leases: who is running which episode at the moment, among all processes and machines that share a run folder.

::

    NAME/leases/KEY.1      held; the number counts up each time that a lease which had run out was taken over
    NAME/leases/process-OWNER.1   this process works in the folder
    NAME/leases/joined-OWNER      another process came while OWNER was there

A lease is made by `link`, which fails where the name is there already, on network file systems too: nothing here needs
locks. It is renewed by its file's time every 20 s and runs out after 60 s. Ages are differences of two times that the
same file system gave, so the clocks of the machines need not agree. The lease of a process of this machine that is gone
counts for nothing at once.
"""

import contextlib
import errno
import json
import os
import socket
import threading
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from pathnav.errors import ConfigError
from pathnav.run.lock import OWNER_ONLY

LEASES = "leases"
LEASE_FORMAT = "pathnav-lease-1"
EXPIRY_S = 60.0
RENEWAL_S = 20.0
_OLD_S = 24 * 3600.0  # of a clock's file: far beyond any expiry, and any difference between machines' clocks
_RACES = 20  # times that somebody else may be faster before a claim is given up
_TURN_S = 0.02  # between two tries at what is held for moments only
_NO_LINKS = (errno.EPERM, errno.ENOSYS, errno.EOPNOTSUPP, errno.EMLINK)


@cache
def machine() -> str:
    """Return what tells apart the sets of processes whose numbers can be compared: machine, boot and container."""
    parts = [socket.gethostname()]
    with contextlib.suppress(OSError):
        parts.append(Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip())
        parts.append(str(Path("/proc/self/ns/pid").readlink()))
    return "/".join(parts)


@dataclass(slots=True)
class Lease:
    """A name that this process holds until it releases it, or has not renewed it for a minute.

    Args:
        name: What is held, such as an episode's key.
        path: Its file.
        generation: Counts the takeovers.
        lost: Set once another process has taken it over.
    """

    name: str
    path: Path
    generation: int
    lost: threading.Event = field(default_factory=threading.Event)


class Leases:
    """The leases of one run in one process.

    Args:
        folder: Where the files lie; made with the first lease.
        expiry_s: Age at which a lease that was not renewed may be taken over.
        renewal_s: How often those that are held are renewed, by a thread of their own.
    """

    def __init__(self, folder: Path, expiry_s: float = EXPIRY_S, renewal_s: float = RENEWAL_S) -> None:
        self.folder = folder
        self.owner = uuid.uuid4().hex
        self._expiry_s, self._renewal_s = expiry_s, renewal_s
        self._lock = threading.Lock()
        self._held: dict[str, Lease] = {}
        self._closed = threading.Event()
        self._has_clock = False
        self._renewing: threading.Thread | None = None

    def claim(self, name: str) -> Lease | None:
        """Return a lease of a name, None where another process, or another thread of this one, holds it.

        Raises:
            OSError: If its file cannot be made.
        """
        for _ in range(_RACES):
            found = self._latest(name)
            if found is not None and (is_live := self._is_live(found[1])) is not False:
                if is_live:
                    return None
                continue  # it was released: its number is free again, and the next one is nobody's to take
            generation = found[0] + 1 if found else 1
            path = self.folder / f"{name}.{generation}"
            if not self._make(path):
                continue
            if (now := self._latest(name)) is not None and now[0] > generation:
                path.unlink(missing_ok=True)
                return None
            return self._keep(Lease(name, path, generation))
        return None

    def is_free(self, name: str) -> bool:
        """Return whether nobody holds a name at the moment."""
        found = self._latest(name)
        return found is None or self._is_live(found[1]) is not True

    def holds(self, lease: Lease) -> bool:
        """Return whether a lease still stands: asked of the file system, since this process may have slept."""
        found = self._latest(lease.name)
        if found is None or found[0] != lease.generation or self._owner_of(found[1]) != self.owner:
            lease.lost.set()
        return not lease.lost.is_set()

    def release(self, lease: Lease) -> None:
        """Let others have it; releasing twice does no harm."""
        with self._lock:
            if self._held.get(lease.name) is not lease:
                return
            del self._held[lease.name]
        if self.holds(lease):
            for generation in range(1, lease.generation + 1):  # its own file last, so that no one begins at 1 before
                self._remove(self.folder / f"{lease.name}.{generation}")

    @contextlib.contextmanager
    def alone(self, name: str) -> Iterator[None]:
        """Hold a name for the moments of a block, waiting for those who hold it now.

        Raises:
            ConfigError: If somebody holds it for minutes.
            OSError: If its file cannot be made.
        """
        end_s = time.monotonic() + 3 * self._expiry_s
        while (lease := self.claim(name)) is None:
            if time.monotonic() > end_s:
                raise ConfigError(f"{self.folder.parent} is held by another run for minutes; remove {self.folder}")
            time.sleep(_TURN_S)
        try:
            yield
        finally:
            self.release(lease)

    def names(self) -> list[str]:
        """Return the names that somebody holds at the moment."""
        try:
            found = {path.name.rpartition(".")[0] for path in self.folder.iterdir() if not path.name.startswith(".")}
        except OSError:
            return []
        return sorted(name for name in found - {""} if not self.is_free(name))

    def close(self) -> None:
        """Release all that is held, and remove the folder where nothing is left in it."""
        self._closed.set()
        if self._renewing is not None:
            self._renewing.join()
        for lease in list(self._held.values()):
            self.release(lease)
        self._sweep()
        self._remove(self._clock_file)
        with contextlib.suppress(OSError):
            self.folder.rmdir()

    def _sweep(self) -> None:
        """Remove what processes left that were killed."""
        with contextlib.suppress(OSError):
            names = {path.name for path in self.folder.iterdir()}
            for name in sorted({name.rpartition(".")[0] for name in names if not name.startswith(".")} - {""}):
                if self.is_free(name) and (dead := self.claim(name)) is not None:
                    self.release(dead)
            for left in (self.folder / name for name in names if name.startswith(".")):
                if _is_dead(left) or time.time() - left.stat().st_mtime > _OLD_S:
                    self._remove(left)

    @property
    def _clock_file(self) -> Path:
        return self.folder / f".clock-{self.owner}"

    @property
    def _about(self) -> str:
        """Who this is: the machine and the process are in it."""
        about = {"format": LEASE_FORMAT, "owner": self.owner, "machine": machine(), "process": os.getpid()}
        return json.dumps(about)

    def _touch_clock(self) -> None:
        """Have the file system write its time; the first time, whose clock it is too."""
        if not self._has_clock:
            with os.fdopen(os.open(self._clock_file, os.O_WRONLY | os.O_CREAT, OWNER_ONLY), "w") as file:
                file.write(self._about)
            self._has_clock = True
        self._clock_file.touch(OWNER_ONLY)

    def _keep(self, lease: Lease) -> Lease:
        with self._lock:
            self._held[lease.name] = lease
            if self._renewing is None and not self._closed.is_set():
                self._renewing = threading.Thread(target=self._renew, name="pathnav-leases", daemon=True)
                self._renewing.start()
        return lease

    def _renew(self) -> None:
        while not self._closed.wait(self._renewal_s):
            for lease in list(self._held.values()):
                with contextlib.suppress(OSError):
                    if self.holds(lease):
                        os.utime(lease.path)

    def _latest(self, name: str) -> tuple[int, Path] | None:
        """Return the newest generation of a name and its file."""
        with contextlib.suppress(FileNotFoundError), os.scandir(self.folder) as entries:
            found = [int(end) for entry in entries if (end := entry.name.removeprefix(f"{name}.")).isdigit()]
            if found:
                return max(found), self.folder / f"{name}.{max(found)}"
        return None

    def _make(self, path: Path) -> bool:
        """Make a lease's file; return whether nobody was faster."""
        scratch = self.folder / f".{path.name}-{self.owner}-{threading.get_ident()}"
        self.folder.mkdir(mode=0o700, exist_ok=True)
        try:
            with os.fdopen(os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, OWNER_ONLY), "w") as file:
                file.write(self._about)
            _link(scratch, path)
        except FileExistsError:
            return False
        except FileNotFoundError:  # another process that ended removed the folder
            return False
        finally:
            self._remove(scratch)
        return True

    def _is_live(self, path: Path) -> bool | None:
        """Return whether a lease's holder is at work, as far as can be told; None where the lease is gone."""
        try:
            about = json.loads(path.read_text(encoding="utf-8") or "{}")
            is_ours = about.get("machine") == machine()
            if is_ours and not _is_running(int(about["process"])):
                return False
            self._touch_clock()
            return self._clock_file.stat().st_mtime - path.stat().st_mtime < self._expiry_s
        except FileNotFoundError:
            return None

    def _owner_of(self, path: Path) -> str | None:
        try:
            owner = json.loads(path.read_text(encoding="utf-8") or "{}").get("owner")
        except FileNotFoundError:
            return None
        return str(owner)

    def _remove(self, path: Path) -> None:
        with contextlib.suppress(OSError):
            path.unlink(missing_ok=True)


def _link(scratch: Path, path: Path) -> None:
    """Give a file its name unless that is taken; where links are not offered, copy it into a new one.

    Raises:
        FileExistsError: If it is taken.
    """
    try:
        os.link(scratch, path)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, OWNER_ONLY), "wb") as file:
            file.write(scratch.read_bytes())


def _is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # somebody else's
        return True
    return True


def _is_dead(path: Path) -> bool:
    """Return whether a file was left by a process of this machine that is gone."""
    try:
        about = json.loads(path.read_text(encoding="utf-8"))
        return bool(about["machine"] == machine() and not _is_running(int(about["process"])))
    except (OSError, ValueError, KeyError, TypeError):  # of an older version, or not whole yet
        return False
