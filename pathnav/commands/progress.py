"""How far a run is, on stderr: a bar on a terminal, a line now and then elsewhere."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING

from pathnav.commands.console import note

if TYPE_CHECKING:
    from pathnav.run.runner import OnProgress, Progress

SECONDS_BETWEEN_LINES = 10.0


def tell_of_the_stub(progress: "Progress", *, named: bool = False) -> None:
    """Say once, before the first episode, that no model answers, and what to do where no endpoint was named."""
    if progress.latest is not None or progress.model is None or progress.tiles is not None:
        return
    from pathnav.model.stub import STUB_MODEL

    if progress.model == STUB_MODEL:
        way = "" if named else "; --model NAME and --base-url URL put a real one in its place"
        note(f"{STUB_MODEL} answers: pathnav's offline stub, which is no model{way}")


class _Failures:
    """Says once for each agent that it failed by itself: its episodes are scored, and a table alone would not tell."""

    def __init__(self) -> None:
        self._said: set[str] = set()

    def __call__(self, progress: "Progress") -> None:
        latest = progress.latest
        if latest is None or latest["reason"] is None or latest["outcome"] in ("infra_error", "interrupted"):
            return
        if latest["agent"] not in self._said:
            self._said.add(latest["agent"])
            note(
                f"warning: agent {latest['agent']!r} failed, and is scored as it stood (said once): {latest['reason']}"
            )


@contextmanager
def progress_shown(*, named: bool = False) -> Iterator["OnProgress"]:
    """Give a callback that shows the progress of a run; `named` where the user named an endpoint."""
    with _bar() if sys.stderr.isatty() else nullcontext(_Lines()) as show:
        failures = _Failures()

        def on_progress(progress: "Progress") -> None:
            tell_of_the_stub(progress, named=named)
            failures(progress)
            show(progress)

        yield on_progress


class _Lines:
    """One line after the first episode, at the end, and every ten seconds between."""

    def __init__(self) -> None:
        self._last = float("-inf")

    def __call__(self, progress: "Progress") -> None:
        now = time.monotonic()
        if progress.done == 0 and progress.left and progress.tiles is None:
            return  # nothing has happened yet, and may not: the endpoint may be out of reach
        if progress.left == 0 or now - self._last >= SECONDS_BETWEEN_LINES:
            self._last = now
            note(_line(progress))


def _line(progress: "Progress") -> str:
    """Return the progress as one line."""
    parts = [f"{progress.kept + progress.done} of {progress.planned} {progress.units}"]
    if progress.done == 0 and progress.kept:
        parts.append(f"{progress.kept} kept from before")
    if progress.tiles:
        parts.append(progress.tiles)
    if progress.rois:
        parts.append(f"{progress.rois} ROIs")
    if progress.failed:
        parts.append(f"{progress.failed} lost to infrastructure")
    if progress.left and progress.seconds_left is not None:
        parts.append(f"about {_duration(progress.seconds_left)} left")
    return ", ".join(parts)


def _duration(seconds: float) -> str:
    """Return a duration in words."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


@contextmanager
def _bar() -> Iterator["OnProgress"]:
    """Give a callback that moves a bar."""
    from rich import progress as bars
    from rich.console import Console

    columns = (
        bars.TextColumn("{task.completed:.0f} of {task.total:.0f} {task.fields[units]}", markup=False),
        bars.BarColumn(),
        bars.TextColumn("{task.fields[doing]}", markup=False),
        bars.TimeElapsedColumn(),
        bars.TimeRemainingColumn(),
    )
    with bars.Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        tasks: list[bars.TaskID] = []

        def on_progress(progress: "Progress") -> None:
            if not tasks:
                tasks.append(bar.add_task("", total=progress.planned, doing="", units=progress.units))
            bar.update(
                tasks[0], completed=progress.kept + progress.done, doing=progress.tiles or f"{progress.rois} ROIs"
            )

        yield on_progress
