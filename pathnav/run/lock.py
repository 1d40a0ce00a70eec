"""One writer at a time: locks of the operating system on files, which end with the process, however it ends."""

import errno
import fcntl
import logging
import os
from pathlib import Path

from pathnav.errors import ConfigError

logger = logging.getLogger(__name__)

LOCK_FILE = "run.lock"
OWNER_ONLY = 0o600

_NOT_OFFERED = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP)
"""What file systems without locks, as some network ones are, answer."""


def lock_descriptor(descriptor: int) -> bool:
    """Lock an open file for its one writer; the lock goes with the descriptor.

    Returns: False where another process, or another descriptor of this one, holds the lock.
    """
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        if error.errno not in _NOT_OFFERED:
            raise
        logger.warning("this file system offers no locks, so nothing keeps a second run out: %s", error)
    return True


def take(folder: Path) -> int:
    """Lock a run folder and return the descriptor that holds the lock until it is closed.

    Args:
        folder: The run folder, which exists.

    Raises:
        ConfigError: If another run holds the lock.
        OSError: If the lock's file cannot be made.
    """
    path = folder / LOCK_FILE
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, OWNER_ONLY)
        try:
            if not lock_descriptor(descriptor):
                raise in_use(folder)
            # A run that never began removes its lock's file: a lock on what is no longer there keeps nobody out.
            if path.exists() and os.path.samestat(os.fstat(descriptor), path.stat()):
                return descriptor
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)


def refuse_used(folder: Path) -> None:
    """Refuse a run folder that another run holds, without leaving a trace in it.

    Raises:
        ConfigError: If another run holds the lock.
    """
    try:
        descriptor = os.open(folder / LOCK_FILE, os.O_RDWR)
    except OSError:  # no lock's file, no run
        return
    try:
        if not lock_descriptor(descriptor):
            raise in_use(folder)
    finally:
        os.close(descriptor)


def in_use(folder: Path) -> ConfigError:
    """Return the error that says so."""
    return ConfigError(f"the output folder {folder} is in use by another run; wait for it, or name another --out")
