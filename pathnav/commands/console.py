"""What every command prints with: results to stdout, all else to stderr, never with markup."""

import json
import sys
from collections.abc import Mapping
from typing import Any

DONE = 0
INCOMPLETE = 1
BAD_INPUT = 2
INTERRUPTED = 130


def emit(text: str) -> None:
    """Write a line of the result to stdout."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def emit_json(document: Mapping[str, Any]) -> None:
    """Write the one JSON object of a command to stdout."""
    emit(json.dumps(document, ensure_ascii=False, allow_nan=False))


def note(text: str) -> None:
    """Write one line for the reader to stderr; lines of a list of faults are joined."""
    sys.stderr.write("; ".join(text.splitlines()) + "\n")
    sys.stderr.flush()
