"""Fixtures that every test may use: the real slides where they are at hand."""

import os
from pathlib import Path

import pytest
from hypothesis import settings

from support.commands import Bench, Command

# Two busy cores make any deadline a coin toss.
settings.register_profile("pathnav", deadline=None)
settings.load_profile("pathnav")

SHARED = Path(os.environ.get("PATHNAV_SHARED", Path(__file__).parents[2] / "shared"))


@pytest.fixture(scope="session")
def shared() -> Path:
    """Return the folder with real slides and annotations; skip where it is absent."""
    if not (SHARED / "slides").is_dir():
        pytest.skip("the folder of real slides is not at hand")
    return SHARED


@pytest.fixture
def pathnav(capsys: pytest.CaptureFixture[str]) -> Command:
    """Call `pathnav` in this process."""
    return Command(capsys)


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    """Set up a folder with a small slide, its tree and some agents, and work in it."""
    folder = tmp_path / "bench"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setenv("PATHNAV_CACHE", str(folder / "cache"))
    return Bench.set_up(folder)
