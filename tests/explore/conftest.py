"""A slide full of tissue, for searches: 2,048 x 1,536 px at 40x, so 12, 192 and 3,072 tiles of 32 px."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from pathnav.explore import TileTree
from pathnav.geometry import Box
from pathnav.slide import open_slide
from support.blot_slide import write_blot_slide
from support.phantoms import phantom, phantom_folder

__all__ = ["phantom_folder", "tiles_of", "tissue_path", "tree"]

WIDTH, HEIGHT = 2048, 1536


@pytest.fixture(scope="session")
def tissue_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("explore") / "tissue.tiff"
    return write_blot_slide(path, WIDTH, HEIGHT, [Box(200, 200, 1700, 1200)])


@pytest.fixture(scope="session")
def tree(tissue_path: Path) -> Iterator[TileTree]:
    with open_slide(tissue_path, mpp=0.25) as slide:
        yield TileTree(slide, 32)


@pytest.fixture(scope="session")
def tiles_of(phantom_folder: Path) -> Iterator[TileTree]:
    """A phantom of 2,048 px in tiles of 96 px: no level divides it, so that every level has cut edge tiles."""
    with open_slide(phantom(phantom_folder).slide) as slide:
        yield TileTree(slide, 96, min_tissue=0)
