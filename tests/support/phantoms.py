"""Phantom slides for tests: each one made once per test session, whichever worker asks first."""

import fcntl
import json
import os
from functools import cache
from pathlib import Path

import pytest
import shapely
from shapely.geometry import shape

from pathnav.phantom import PhantomFiles, make_phantom, phantom_files

SMALL_PX = 2048


@cache
def phantom(folder: Path, seed: int = 0, side: int = SMALL_PX) -> PhantomFiles:
    """Return the files of a phantom in a folder, made on the first call; read them only.

    Args:
        folder: The fixture `phantom_folder`; with another one each test waits for its own phantom.
        seed: Which phantom.
        side: Width and height in level-0 pixels.
    """
    path = folder / f"phantom-{seed}-{side}.tiff"
    with path.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return phantom_files(path) if path.exists() else make_phantom(path, seed=seed, side=side)


@pytest.fixture(scope="session")
def phantom_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the session's folder of phantoms, one for all workers."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "phantoms"
    folder.mkdir(exist_ok=True)
    return folder


@pytest.fixture(scope="session")
def small_phantom(phantom_folder: Path) -> PhantomFiles:
    """Return a phantom of 2,048 px, seed 0."""
    return phantom(phantom_folder)


def annotated(files: PhantomFiles, name: str) -> shapely.Geometry:
    """Return the union of a phantom's annotations of one class, in level-0 pixels."""
    features = json.loads(files.annotation.read_text())["features"]
    found = [shape(f["geometry"]) for f in features if f["properties"]["classification"]["name"] == name]
    return shapely.union_all(found)
