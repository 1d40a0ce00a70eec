"""One tile that cannot be decoded costs its own area, not the reading, not the handle, not the other threads' reads."""

import dataclasses
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import tifffile

from pathnav.errors import SlideError
from pathnav.geometry import Box
from pathnav.slide import open_slide
from pathnav.slide.openslide_reader import OpenSlideReader
from pathnav.slide.pixels import Window
from pathnav.slide.reader import Patch
from pathnav.slide.tiffslide_reader import TiffSlideReader
from pathnav.slide.tile_decoder import TileDecoder, decoder_for, is_proved
from support.coordinates import layout, offsets, write_pyramid

TILE = 240  # of CMU-1-Small-Region.svs
READERS = {"openslide": OpenSlideReader, "tiffslide": TiffSlideReader}


@pytest.fixture
def damaged(shared: Path) -> Path:
    return shared / "slides" / "corrupt-one-tile-zeroed.svs"


def bad_tile(shared: Path) -> Window:
    """Return where the zeroed tile is."""
    paths = (shared / "slides" / name for name in ("CMU-1-Small-Region.svs", "corrupt-one-tile-zeroed.svs"))
    whole, broken = (path.read_bytes() for path in paths)
    first = int(np.flatnonzero(np.frombuffer(whole, np.uint8) != np.frombuffer(broken, np.uint8))[0])
    with tifffile.TiffFile(shared / "slides" / "CMU-1-Small-Region.svs") as file:
        page = file.pages[0]
        index = max(i for i, offset in enumerate(page.dataoffsets) if offset <= first)
    row, column = divmod(index, -(-page.imagewidth // TILE))
    return Window(column * TILE, row * TILE, TILE, TILE)


def test_the_damage_is_white_and_its_share_recorded(damaged: Path, shared: Path) -> None:
    tile = bad_tile(shared)
    box = Box(tile.left - 100, tile.top - 100, 440, 440)
    with open_slide(damaged) as slide, open_slide(shared / "slides" / "CMU-1-Small-Region.svs") as intact:
        found, expected = slide.reading(box, max_side_px=440), intact.read(box, max_side_px=440)
        expected = expected.copy()
        expected[100:340, 100:340] = 255
        assert np.array_equal(found.rgb, expected)
        assert found.failed_share == pytest.approx(TILE**2 / 440**2)
        assert slide.reading(box, magnification=10).failed_share == pytest.approx(TILE**2 / 440**2, rel=0.02)
        assert slide.reading(Box(0, 0, 200, 200), max_side_px=200).failed_share == 0


@pytest.mark.parametrize("kind", sorted(READERS))
def test_each_reader_goes_on_after_a_damaged_tile(kind: str, damaged: Path, shared: Path) -> None:
    tile = bad_tile(shared)
    reader, intact = READERS[kind](str(damaged)), READERS[kind](str(shared / "slides" / "CMU-1-Small-Region.svs"))
    around = Window(tile.left - 300, tile.top - 300, 900, 900)
    expected = intact.read(0, around).rgb.copy()
    expected[300 : 300 + TILE, 300 : 300 + TILE] = 255
    for _ in range(2):
        patch = reader.read(0, around)
        assert np.array_equal(patch.rgb, expected)
        assert sum(part.area for part in patch.failed) == TILE**2
    assert reader.read(0, Window(0, 0, 200, 200)).failed == ()
    reader.close()
    intact.close()


def test_a_damaged_tile_does_not_spoil_other_threads_reads(damaged: Path, shared: Path) -> None:
    tile = bad_tile(shared)
    reader, intact = OpenSlideReader(str(damaged)), OpenSlideReader(str(shared / "slides" / "CMU-1-Small-Region.svs"))
    far = [Window(x, y, 230, 230) for x in (0, 1500) for y in (0, 700, 2600)]
    windows = [window for window in far if not window.intersection(tile).area]

    def look(index: int) -> Patch:
        return reader.read(0, tile if index % 3 == 0 else windows[index % len(windows)])

    with ThreadPoolExecutor(8) as pool:
        patches = list(pool.map(look, range(48)))
    for index, patch in enumerate(patches):
        if index % 3 == 0:
            assert (patch.rgb == 255).all() and patch.failed == (tile,)
        else:
            assert np.array_equal(patch.rgb, intact.read(0, windows[index % len(windows)]).rgb)
    reader.close()
    intact.close()


def test_a_slide_whose_file_is_gone_is_an_error_and_not_white(damaged: Path, shared: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copy(damaged, tmp_path / "copy.svs"))
    reader = OpenSlideReader(str(copy))
    copy.unlink()
    with pytest.raises(SlideError, match=r"copy\.svs can no longer be read"):
        reader.read(0, bad_tile(shared))
    reader.close()


def test_a_damaged_tile_below_level_0_is_left_white_at_its_place(tmp_path: Path) -> None:
    plan = layout(1600, 1200, (4,), "jpeg", 128)
    path = write_pyramid(tmp_path / "pyramid.tif", plan)
    with tifffile.TiffFile(path) as file:
        offset, count = file.pages[1].dataoffsets[5], file.pages[1].databytecounts[5]
    with path.open("r+b") as raw:
        raw.seek(offset)
        raw.write(bytes(count))
    with open_slide(path) as slide:
        found = slide.reading(Box(0, 0, 1600, 1200), magnification=10)
        assert found.level == 1 and found.failed_share == pytest.approx(128**2 / (400 * 300))
        assert (found.rgb[128:256, 128:256] == 255).all()
        clean = slide.reading(Box(1100, 0, 500, 1200), magnification=10)
        assert clean.failed_share == 0 and abs(offsets(clean.rgb, clean.box, 1600, 1200).x or 0) < 0.5


def test_a_tile_that_the_file_leaves_out_is_white_and_no_damage(tmp_path: Path) -> None:
    path = write_pyramid(tmp_path / "whole.tif", layout(700, 500, (), "jpeg", 128))
    sparse = Path(shutil.copy(path, tmp_path / "sparse.tif"))
    with tifffile.TiffFile(sparse, mode="r+") as file:
        tags = file.pages[0].tags
        for code in (324, 325):
            numbers = list(tags[code].value)
            numbers[8] = 0
            tags[code].overwrite(numbers)
    for kind in (None, "openslide", "tiffslide"):
        with open_slide(sparse, reader=kind) as slide, open_slide(path, reader=kind) as whole:
            expected = whole.read(Box(0, 0, 700, 500), max_side_px=700).copy()
            expected[128:256, 256:384] = 255
            found = slide.reading(Box(0, 0, 700, 500), max_side_px=700)
            assert np.array_equal(found.rgb, expected) and found.failed_share == 0, kind


def test_tiles_are_decoded_directly_only_where_they_equal_openslides(shared: Path) -> None:
    path, sparse = (str(shared / "slides" / it) for it in ("CMU-1-Small-Region.svs", "mirax-sparse-bounds.mrxs"))
    mirax = OpenSlideReader(sparse)
    assert decoder_for(sparse, mirax) is None
    mirax.close()
    opened = OpenSlideReader(path)
    decoder = decoder_for(path, opened)
    assert decoder is not None and is_proved(decoder, opened, 0)
    lying = TileDecoder(path, (dataclasses.replace(decoder.levels[0], colorspace="ycbcr"),), opened.properties)
    assert not is_proved(lying, opened, 0)
    for reader in (opened, decoder, lying):
        reader.close()
