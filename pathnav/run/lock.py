"""One writer at a time: locks of the operating system on files, which end with the process, however it ends."""

import errno
import fcntl
import logging

logger = logging.getLogger(__name__)

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
        logger.warning("this file system offers no locks, so only leases keep a second run out: %s", error)
    return True
