"""What every command prints with: results to stdout, all else to stderr, never with markup."""

import contextlib
import functools
import json
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Any, ParamSpec, TextIO, TypeVar

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")

DONE = 0
INCOMPLETE = 1
BAD_INPUT = 2
INTERRUPTED = 130
TERMINATED = 143

_kept_for_results: list[TextIO] = []
"""Where results go while all that others print goes to stderr; empty at other times."""


def json_alone(command: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Let a command with an option `as_json` print nothing but its JSON on stdout, whatever plug-ins print.

    A plug-in's own `print` would stand beside the object that a program is to read: while the command runs, for all
    its threads, `sys.stdout` is stderr. What a plug-in writes to the file descriptor itself is not caught.
    """

    @functools.wraps(command)
    def kept(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Result:
        if not kwargs.get("as_json"):
            return command(*args, **kwargs)
        _kept_for_results.append(sys.stdout)
        try:
            with contextlib.redirect_stdout(sys.stderr):
                return command(*args, **kwargs)
        finally:
            _kept_for_results.pop()

    return kept


def emit(text: str) -> None:
    """Write a line of the result to stdout."""
    out = _kept_for_results[-1] if _kept_for_results else sys.stdout
    out.write(text + "\n")
    out.flush()


def emit_json(document: Mapping[str, Any]) -> None:
    """Write the one JSON object of a command to stdout."""
    emit(json.dumps(document, ensure_ascii=False, allow_nan=False))


def tell(document: Mapping[str, Any], lines: Iterable[str], as_json: bool) -> None:
    """Write the result of a command to stdout: as one JSON object, or as text."""
    if as_json:
        emit_json(document)
    else:
        for line in lines:
            emit(line)


def note(text: str) -> None:
    """Write one line for the reader to stderr; lines of a list of faults are joined."""
    sys.stderr.write("; ".join(text.splitlines()) + "\n")
    sys.stderr.flush()


def embeddings_line(result: Mapping[str, Any], out: object) -> str | None:
    """Return what the embeddings of a result cost, in words; None where there are none.

    Args:
        result: The result.
        out: The run folder, None where it is not kept.
    """
    costs = result.get("embeddings")
    if costs is None:
        return None
    stored = costs["store_bytes"]
    size = f"{stored / 1e6:.1f} MB kept" if stored >= 1e6 else f"{stored / 1e3:.0f} kB kept"
    told = f"{costs['encoded']} encoded, {costs['kept_from_before']} known from before"
    return told if out is None else f"{told}, {size}"
