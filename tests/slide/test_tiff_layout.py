"""The TIFF directory reader against tifffile, and what it does with files that tifffile passes over in silence."""

import struct
from pathlib import Path

import numpy as np
import pytest
import tifffile

from pathnav.errors import SlideError
from pathnav.slide.tiff_layout import Directory, read_directories
from support.tiffs import write_ndpi, write_pyramid, write_with_sub_images


def read(path: Path) -> tuple[Directory, ...]:
    with path.open("rb") as file:
        return read_directories(file, str(path))


def assert_same_as_tifffile(path: Path) -> None:
    found = read(path)
    with tifffile.TiffFile(path) as tiff:
        pages = [page for first in tiff.pages for page in (first, *(first.pages or ()))]
        assert len(found) == len(pages)
        for directory, page in zip(found, pages, strict=True):
            assert directory.offsets.tolist() == list(page.dataoffsets)
            assert directory.byte_counts.tolist() == list(page.databytecounts)
            assert (directory.width, directory.height) == (page.imagewidth, page.imagelength)
            assert (directory.is_tiled, directory.compression) == (page.is_tiled, page.compression)
            assert directory.tile_areas.sum() == page.imagewidth * page.imagelength


@pytest.mark.parametrize("bigtiff", [False, True])
@pytest.mark.parametrize("byteorder", ["<", ">"])
def test_tables_equal_those_of_tifffile_in_every_dialect(tmp_path: Path, bigtiff: bool, byteorder: str) -> None:
    assert_same_as_tifffile(write_pyramid(tmp_path / "a.tif", bigtiff=bigtiff, byteorder=byteorder))


def test_sub_images_follow_their_image(tmp_path: Path) -> None:
    assert_same_as_tifffile(write_with_sub_images(tmp_path / "a.tif"))


@pytest.mark.parametrize("name", ["CMU-1-Small-Region.svs", "svs-40x-3levels.svs", "ome-subifd.ome.tif"])
def test_tables_of_real_slides_equal_those_of_tifffile(shared: Path, name: str) -> None:
    assert_same_as_tifffile(shared / "slides" / name)


def test_tile_areas_are_cut_at_the_right_and_lower_edge() -> None:
    nothing = np.zeros(6, dtype=np.uint64)
    directory = Directory(100, 150, 7, True, 64, 64, nothing, nothing)
    assert directory.tile_areas.tolist() == [64 * 64, 36 * 64, 64 * 64, 36 * 64, 64 * 22, 36 * 22]


def test_ndpi_offsets_beyond_4_gib_are_read_with_their_high_word(tmp_path: Path) -> None:
    path = write_ndpi(tmp_path / "a.ndpi", strip_at=5 * 2**30, strip_bytes=2**20, file_bytes=6 * 2**30)
    (directory,) = read(path)
    assert directory.offsets.tolist() == [5 * 2**30]
    assert directory.byte_counts.tolist() == [2**20]


def test_chain_that_goes_round_in_circles_ends(tmp_path: Path) -> None:
    path = tmp_path / "a.tif"
    path.write_bytes(b"II*\0" + struct.pack("<IHI", 8, 0, 8))
    assert len(read(path)) == 1


def test_directory_beyond_the_end_of_the_file_is_an_error_not_a_lost_level(tmp_path: Path) -> None:
    path = tmp_path / "a.tif"
    path.write_bytes(b"II*\0" + struct.pack("<IHI", 8, 0, 5000))
    with pytest.raises(SlideError, match="cut short: the page directory at byte 5000"):
        read(path)


def test_tile_count_that_no_file_could_hold_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "a.tif"
    path.write_bytes(b"II*\0" + struct.pack("<IH", 8, 1) + struct.pack("<HHII", 324, 4, 0xFFFFFFFF, 8) + bytes(4))
    with pytest.raises(SlideError, match="cut short: the tile table"):
        read(path)


def test_file_that_is_no_tiff_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.tif"
    path.write_bytes(b"\x89PNG and more")
    with pytest.raises(SlideError, match="is not a TIFF file"):
        read(path)
