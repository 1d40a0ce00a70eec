"""A folder with a small slide, its tree and some agents, and the command line."""

from pathlib import Path

import pytest

from support.commands import Bench, Command


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    """Set up a folder with all that an episode needs."""
    (tmp_path / "bench").mkdir()
    return Bench.set_up(tmp_path / "bench")


@pytest.fixture
def pathnav(capsys: pytest.CaptureFixture[str]) -> Command:
    """Call `pathnav` in this process."""
    return Command(capsys)
