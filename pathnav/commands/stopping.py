"""What a command that may run for hours says when Ctrl-C or SIGTERM ends it."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

from pathnav.commands.console import INTERRUPTED, TERMINATED

_GOES_ON = "; its run folder keeps what was done, and the same command goes on from there"
_NOTHING_KEPT = "; nothing is kept without --out DIR, with which the same command would go on from there"
_TOO_EARLY = "; nothing was done yet"

_kept: list[str] = []
"""What the command that was stopped keeps, as the end of a sentence; empty where it does not say."""


@contextlib.contextmanager
def stoppable(out: Path | None) -> Iterator[None]:
    """Let SIGTERM end a block as Ctrl-C does, and note what is kept then.

    Args:
        out: The run folder; None where the record is not kept.
    """
    from pathnav.run.stopped import sigterm_stops

    _kept.clear()
    with sigterm_stops():
        try:
            yield
        except KeyboardInterrupt:
            _kept.append(_NOTHING_KEPT if out is None else _GOES_ON if (out / "run.json").exists() else _TOO_EARLY)
            raise


def stop_told() -> tuple[str, int]:
    """Return the sentence about the stop of the latest command, and the exit code."""
    from pathnav.run.stopped import is_terminated, stopped_by

    sentence = stopped_by() + "".join(_kept)
    _kept.clear()
    return sentence, TERMINATED if is_terminated() else INTERRUPTED
