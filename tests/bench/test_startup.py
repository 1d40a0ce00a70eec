"""What a user waits for before anything happens; printed, and failed only when three times too slow.

Run with `pytest -o addopts= -s --import-mode=importlib tests/bench`.
"""

import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

REPEATS = 5
SLACK = 3
"""Machines differ and are shared: a figure fails above this multiple of its goal."""

IMPORT_TIMER = "import time; start = time.perf_counter(); import pathnav; print(time.perf_counter() - start)"


def import_seconds() -> float:
    """Return how long `import pathnav` takes in a fresh interpreter."""
    return float(subprocess.run([sys.executable, "-c", IMPORT_TIMER], capture_output=True, check=True).stdout)


def help_seconds() -> float:
    """Return how long `pathnav --help` takes from start to end of the process."""
    start = time.perf_counter()
    subprocess.run([Path(sys.executable).with_name("pathnav"), "--help"], capture_output=True, check=True)
    return time.perf_counter() - start


@pytest.mark.parametrize(
    ("what", "measure", "goal_s"),
    [("import pathnav", import_seconds, 0.3), ("pathnav --help", help_seconds, 0.7)],
    ids=["import", "help"],
)
def test_start_up_is_quick(what: str, measure: Callable[[], float], goal_s: float) -> None:
    median_s = statistics.median(measure() for _ in range(REPEATS))
    sys.stdout.write(f"\n{what}: {median_s:.3f} s (median of {REPEATS}; goal {goal_s} s)\n")
    assert median_s <= SLACK * goal_s, f"{what} takes {median_s:.2f} s; the goal is {goal_s} s"
