"""Fixtures that every test may use: the real slides where they are at hand."""

import os
from pathlib import Path

import pytest

SHARED = Path(os.environ.get("PATHNAV_SHARED", Path(__file__).parents[2] / "shared"))


@pytest.fixture(scope="session")
def shared() -> Path:
    """Return the folder with real slides and annotations; skip where it is absent."""
    if not (SHARED / "slides").is_dir():
        pytest.skip("the folder of real slides is not at hand")
    return SHARED
