"""A tiny network of open_clip and its weights, made once; only tests marked `clip` ask for them."""

from pathlib import Path

import pytest

from support import tiny_clip


@pytest.fixture(scope="session")
def tiny_name(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return the name of the tiny architecture, known to open_clip."""
    return tiny_clip.register(tmp_path_factory.mktemp("architectures"))


@pytest.fixture(scope="session")
def tiny_weights(tiny_name: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a file of weights of the tiny architecture."""
    return tiny_clip.save_checkpoint(tmp_path_factory.mktemp("weights") / "tiny.pt")
