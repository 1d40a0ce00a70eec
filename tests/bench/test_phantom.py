"""What a phantom slide costs; printed, and failed only when three times too slow or too large.

Run with `pytest -o addopts= -s --import-mode=importlib tests/bench`.
"""

import subprocess
import sys
from pathlib import Path

import pytest

from support.peak_memory import PEAK_MB

SLACK = 3
"""Machines differ and are shared: a figure fails above this multiple of its goal."""

TIMER = (
    PEAK_MB
    + """
import resource, sys, time
start = time.perf_counter()
from pathnav.phantom import make_phantom
make_phantom(sys.argv[1], side=int(sys.argv[2]), threads=2)
cpu = resource.getrusage(resource.RUSAGE_SELF)
print(time.perf_counter() - start, cpu.ru_utime + cpu.ru_stime, peak_mb())
"""
)


@pytest.mark.parametrize(("side", "goal_s", "goal_mb"), [(8192, 8, 500), (16_384, 20, 500)])
def test_a_phantom_is_quick_and_small(side: int, goal_s: float, goal_mb: float, tmp_path: Path) -> None:
    command = [sys.executable, "-c", TIMER, str(tmp_path / "a.tiff"), str(side)]
    output = subprocess.run(command, capture_output=True, check=True).stdout
    wall_s, cpu_s, peak_mb = map(float, output.split())
    sys.stdout.write(
        f"\nphantom of {side:,} px: {wall_s:.1f} s (goal {goal_s}), CPU {cpu_s:.1f} s, "
        f"peak {peak_mb:.0f} MB (goal {goal_mb})\n"
    )
    assert cpu_s <= SLACK * goal_s, "CPU time: the clock on the wall also counts the neighbours"
    assert peak_mb <= goal_mb
