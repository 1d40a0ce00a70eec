"""Small networks of open_clip and a slide that one of them knows its way on; only tests marked `clip` ask for them."""

from pathlib import Path

import pytest

from support import tiny_clip
from support.blue_slide import write_blue_slide
from support.planted_clip import save_planted


@pytest.fixture(scope="session")
def tiny_name(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return the name of the tiny architecture, known to open_clip."""
    return tiny_clip.register(tmp_path_factory.mktemp("architectures"))


@pytest.fixture(scope="session")
def tiny_weights(tiny_name: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a file of weights of the tiny architecture."""
    return tiny_clip.save_checkpoint(tmp_path_factory.mktemp("weights") / "tiny.pt")


@pytest.fixture(scope="session")
def planted(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return the architecture of the network that looks for blue."""
    return f"local-dir:{save_planted(tmp_path_factory.mktemp('planted') / 'network')}"


@pytest.fixture(scope="session")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write the slide with three blue squares."""
    return write_blue_slide(tmp_path_factory.mktemp("blue") / "blue.tiff")
