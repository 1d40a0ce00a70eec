"""Decoded tiles are kept for their neighbours: within a limit, for open slides only, safe from what readers do."""

from pathlib import Path

import numpy as np
import pytest

from pathnav.geometry import Box
from pathnav.slide import open_slide, reader
from pathnav.slide.reader import DecodedTiles
from support.coordinates import layout, write_pyramid


def tile(value: int) -> np.ndarray[tuple[int, ...], np.dtype[np.uint8]]:
    return np.full((10, 10, 3), value, np.uint8)


def test_the_tiles_used_longest_ago_go_first_and_those_of_a_closed_slide_make_room() -> None:
    held = DecodedTiles(limit_bytes=900)
    for index in range(3):
        held.put((0, 0, index), tile(index))
    assert held.get((0, 0, 0)) is not None
    held.put((0, 0, 3), tile(3))
    assert [held.get((0, 0, index)) is not None for index in range(4)] == [True, False, True, True]
    held.drop(0)
    assert not any(held.get((0, 0, index)) is not None for index in range(4))


@pytest.mark.parametrize("packing", ["jpeg", "sub-images", "striped"])
def test_any_window_is_the_same_with_and_without_kept_tiles(
    tmp_path: Path, packing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_pyramid(tmp_path / "a.ome.tif", layout(700, 500, (2,), packing))
    rng = np.random.default_rng(5)
    with open_slide(path) as slide:
        whole = slide.read(Box(0, 0, 700, 500), max_side_px=1000)
        for _ in range(30):
            left, top = int(rng.integers(0, 600)), int(rng.integers(0, 400))
            width, height = (int(n) for n in rng.integers(1, 100, 2))
            box = Box(left, top, width, height)
            found = slide.read(box, max_side_px=1000)
            assert np.array_equal(found, whole[top : top + height, left : left + width])
            found[:] = 7  # painting over an image does not change the next one
        monkeypatch.setattr(reader, "_decoded", DecodedTiles(limit_bytes=0))
        assert np.array_equal(slide.read(Box(0, 0, 700, 500), max_side_px=1000), whole)
