"""Phantom slides for tests: each one made once per test session."""

import json
from functools import cache
from pathlib import Path

import pytest
import shapely
from shapely.geometry import shape

from pathnav.cohort.phantom import PhantomFiles, make_phantom

SMALL_PX = 2048


@cache
def phantom(folder: Path, seed: int = 0, side: int = SMALL_PX) -> PhantomFiles:
    """Return the files of a phantom in a folder, made on the first call; read them only.

    Args:
        folder: An existing folder; give the same one for the session, or each test waits for its own phantom.
        seed: Which phantom.
        side: Width and height in level-0 pixels.
    """
    return make_phantom(folder / f"phantom-{seed}-{side}.tiff", seed=seed, side=side)


@pytest.fixture(scope="session")
def phantom_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the session's folder of phantoms."""
    return tmp_path_factory.mktemp("phantoms")


@pytest.fixture(scope="session")
def small_phantom(phantom_folder: Path) -> PhantomFiles:
    """Return a phantom of 2,048 px, seed 0."""
    return phantom(phantom_folder)


def annotated(files: PhantomFiles, name: str) -> shapely.Geometry:
    """Return the union of a phantom's annotations of one class, in level-0 pixels."""
    features = json.loads(files.annotation.read_text())["features"]
    found = [shape(f["geometry"]) for f in features if f["properties"]["classification"]["name"] == name]
    return shapely.union_all(found)
