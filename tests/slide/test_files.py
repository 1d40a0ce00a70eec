"""Files refused before a reader opens them, damaged tiles that are only warned of, and names for a slide's content."""

import re
import shutil
import struct
import time
from collections.abc import Callable
from pathlib import Path

import fsspec
import numpy as np
import pytest
import tifffile
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pathnav.errors import SlideError
from pathnav.slide import open_slide
from pathnav.slide.files import check_complete, find_damage, fingerprint
from support.tiffs import SIDE_PX, TILE_PX, write_ndpi, write_pyramid, write_sparse, write_with_sub_images


def refusal(path: Path | str) -> str:
    with pytest.raises(SlideError) as caught:
        check_complete(str(path))
    message = str(caught.value)
    assert str(path) in message and "\n" not in message
    return message


def spans(path: Path) -> list[list[tuple[int, int]]]:
    """Return where each tile of each image lies: offset and byte count."""
    with tifffile.TiffFile(path) as file:
        pages = [page for first in file.pages for page in (first, *(first.pages or ()))]
        return [list(zip(page.dataoffsets, page.databytecounts, strict=True)) for page in pages]


def set_first_tile(path: Path, offset: int, count: int | None = None) -> None:
    """Overwrite the first entries of the first image's tile tables."""
    with tifffile.TiffFile(path, mode="r+") as file:
        tags = file.pages[0].tags
        for tag, value in ((324, offset), (325, count)):
            if value is not None:
                tags[tag].overwrite([value, *tags[tag].value[1:]])


def test_what_is_no_slide_file_is_refused_with_what_to_open_instead(tmp_path: Path) -> None:
    assert "does not exist" in refusal(tmp_path / "a.svs")
    assert "is a directory; expected a slide file" in refusal(tmp_path)
    for path in (".", "/", "", ".."):
        with pytest.raises(SlideError, match="is a directory"):
            check_complete(path)
    for name in ("a.svs", "a.mrxs", "a.dcm", "a.unknown"):
        (tmp_path / name).touch()
        assert "is empty (0 bytes)" in refusal(tmp_path / name)
    assert str(tmp_path / "a.dcm") in refusal(tmp_path)
    (tmp_path / "a").mkdir()
    assert str(tmp_path / "a.mrxs") in refusal(tmp_path / "a")


@pytest.mark.parametrize("suffix", [".svs", ".SVS", ".tif", ".ndpi", ".scn"])
def test_text_under_a_tiff_suffix_is_refused_with_its_first_bytes(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"a{suffix}"
    path.write_text("<html>404 not found</html>")
    assert "b'<html>40'" in refusal(path)


def test_formats_with_their_own_layout_and_urls_pass_through(tmp_path: Path) -> None:
    for name in ("a.dcm", "a.vsi", "a.mrxs", "a.czi", "a.vms"):
        (tmp_path / name).write_bytes(b"II*\0" + b"\xff" * 200)
        check_complete(str(tmp_path / name))
        assert find_damage(str(tmp_path / name)) == ()
    dual = tmp_path / "dual.tif"
    dual.write_bytes(b"II*\0" + b"\xff" * 124 + b"DICM" + bytes(100))
    check_complete(str(dual))
    check_complete("https://example.org/no-such-slide.svs")
    assert find_damage("https://example.org/a.svs") == ()


@pytest.mark.parametrize("suffix", ["tif", "svs"])
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(share=st.floats(0, 1, exclude_max=True), nested=st.booleans())
def test_a_slide_cut_anywhere_is_refused(tmp_path: Path, suffix: str, share: float, nested: bool) -> None:
    path = tmp_path / f"whole-{nested}.{suffix}"
    if not path.exists():
        (write_with_sub_images if nested else write_pyramid)(path)
    last = max(offset + count for image in spans(path) for offset, count in image)
    cut = tmp_path / f"cut.{suffix}"
    cut.write_bytes(path.read_bytes()[: int(share * last)])
    refusal(cut)
    check_complete(str(path))


@pytest.mark.parametrize("bigtiff", [False, True])
@pytest.mark.parametrize("byteorder", ["<", ">"])
def test_a_tile_beyond_the_end_is_found_in_every_dialect(tmp_path: Path, bigtiff: bool, byteorder: str) -> None:
    path = write_pyramid(tmp_path / "a.tif", bigtiff=bigtiff, byteorder=byteorder)
    check_complete(str(path))
    set_first_tile(path, offset=2**64 - 8 if bigtiff else 2**32 - 8)  # near the largest offset: it must not wrap round
    assert "tile 0 of its 256 x 256 image" in refusal(path)


@pytest.mark.parametrize(
    "directory",
    [
        struct.pack("<IHI", 8, 0, 5000),  # no tags, and a next page beyond the end
        struct.pack("<IHHHII", 8, 2, 256, 4, 1, 9) + struct.pack("<HHII", 324, 4, 0xFFFFFFFF, 8) + bytes(4),
        struct.pack("<IH", 5000, 0),
    ],
)
def test_a_page_or_table_beyond_the_end_is_an_error_not_a_lost_level(tmp_path: Path, directory: bytes) -> None:
    path = tmp_path / "a.tif"
    path.write_bytes(b"II*\0" + directory)
    assert "cut short" in refusal(path)


def test_ndpi_offsets_beyond_4_gib_are_read_with_their_high_word(tmp_path: Path) -> None:
    path = write_ndpi(tmp_path / "a.ndpi", strip_at=5 * 2**30, strip_bytes=2**20, file_bytes=6 * 2**30)
    check_complete(str(path))
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size - 4)
    refusal(path)


def test_check_reads_only_the_tables_of_a_slide_of_2_gb(tmp_path: Path) -> None:
    path = write_sparse(tmp_path / "large.svs", file_bytes=2 * 2**30, tiles=160_000)
    check_complete(str(path))
    started = time.process_time()
    check_complete(str(path))
    fingerprint(str(path))
    assert time.process_time() - started < 0.5  # measured 0.07 s; reading 2 GB takes more than 0.5 s


def test_real_slides_pass_but_for_those_that_were_cut(shared: Path) -> None:
    for path in sorted((shared / "slides").iterdir()):
        if "truncated" in path.name:
            assert "is cut short" in refusal(path)
        elif path.is_file() and not path.name.startswith("corrupt"):
            check_complete(str(path))
            assert find_damage(str(path)) == (), path.name


def test_a_zeroed_tile_in_a_complete_slide_is_a_warning_with_its_failed_share(shared: Path) -> None:
    path = shared / "slides" / "corrupt-one-tile-zeroed.svs"
    check_complete(str(path))
    (damage,) = find_damage(str(path))
    assert (damage.width, damage.height, damage.checked, damage.damaged) == (2220, 2967, 130, 1)
    assert damage.failed_share == pytest.approx(240 * 240 / (2220 * 2967))
    assert damage.warning == "damaged tiles: 1 of 130 in its 2220 x 2967 level (0.87% of the area), shown white"


def zero(path: Path, start: float) -> None:
    """Overwrite the sixth tile with zeros, from a share of its bytes on."""
    offset, count = spans(path)[0][5]
    raw = bytearray(path.read_bytes())
    raw[offset + int(start * count) : offset + count] = bytes(count - int(start * count))
    path.write_bytes(raw)


@pytest.mark.parametrize("start", [0, 0.5])
@pytest.mark.parametrize("compression", ["jpeg", "jpeg2000", "zlib", "lzw", "webp", "zstd"])
def test_a_zeroed_tile_is_found_in_every_compression_and_half_of_one_in_jpeg(
    tmp_path: Path, compression: str, start: float
) -> None:
    path = write_pyramid(tmp_path / "a.tif", compression=compression)
    assert find_damage(str(path)) == ()
    zero(path, start)
    found = find_damage(str(path))
    if start == 0 or compression.startswith("jpeg"):
        assert [(it.damaged, it.failed_share) for it in found] == [(1, TILE_PX**2 / SIDE_PX**2)]


def test_a_tile_that_the_scanner_left_out_is_neither_missing_nor_damaged(tmp_path: Path) -> None:
    path = write_pyramid(tmp_path / "a.tif")
    set_first_tile(path, offset=0, count=0)
    check_complete(str(path))
    assert find_damage(str(path)) == ()


def test_damage_of_a_large_slide_is_estimated_from_every_nth_tile(tmp_path: Path) -> None:
    path = write_sparse(tmp_path / "large.svs", file_bytes=2**30, tiles=160_000)
    (damage,) = find_damage(str(path))
    assert damage.checked == damage.damaged == 40_000
    assert damage.failed_share == 1


def change_last_byte(path: Path) -> None:
    raw = bytearray(path.read_bytes())
    raw[-1] ^= 1
    path.write_bytes(raw)


def copied(source: Path, folder: Path) -> Path:
    """Copy a slide with all its files under other names; return the copy to open."""
    folder.mkdir()
    if source.parent.name.endswith("dicom"):
        for number, instance in enumerate(sorted(source.parent.iterdir())):
            shutil.copy(instance, folder / f"{number}")  # archives store instances without a suffix
        (folder / "notes.txt").write_text("not of the slide")
        shutil.copy(instance, folder / "another series")
        raw = (folder / "another series").read_bytes()
        (folder / "another series").write_bytes(
            raw.replace(b".21577574112843936045397065457192622591", b".2" + b"7" * 37)
        )
        return folder / "1"
    if source.suffix == ".mrxs":
        shutil.copytree(source.with_suffix(""), folder / "b")
        (folder / "b" / "Thumbs.db").write_bytes(b"stray")
    return Path(shutil.copy(source, folder / f"b{source.suffix}"))


ONE_FILE = ["CMU-1-Small-Region.svs", "tiff-pyramid-0.5um.tif", "tiff-striped-not-tiled.tif", "ome-subifd.ome.tif"]


@pytest.mark.parametrize("name", [*ONE_FILE, "mirax-sparse-bounds.mrxs", "CMU-1-Small-Region-dicom"])
def test_a_copy_under_another_name_has_the_same_fingerprint_with_any_reader(
    shared: Path, tmp_path: Path, name: str
) -> None:
    source = shared / "slides" / name
    source = min(source.iterdir()) if source.is_dir() else source
    with open_slide(source) as slide, open_slide(copied(source, tmp_path / "copy")) as copy:
        assert re.fullmatch("[0-9a-f]{64}", slide.fingerprint)
        assert slide.fingerprint == copy.fingerprint
    if name in ONE_FILE:
        with open_slide(source, reader="tiffslide") as slide:
            assert slide.fingerprint == fingerprint(str(source))


def test_real_slides_have_different_fingerprints(shared: Path) -> None:
    names = [*ONE_FILE, "corrupt-one-tile-zeroed.svs", "tiff-pyramid-72dpi.tif", "svs-decimal-comma-mpp.svs"]
    assert len({fingerprint(str(shared / "slides" / name)) for name in names}) == len(names)


def test_every_instance_of_a_dicom_series_gives_the_same_fingerprint_unless_one_is_lost(
    shared: Path, tmp_path: Path
) -> None:
    instances = sorted((shared / "slides" / "CMU-1-Small-Region-dicom").iterdir())
    (found,) = {fingerprint(str(instance)) for instance in instances}
    for instance in instances[:-1]:
        shutil.copy(instance, tmp_path)
    assert fingerprint(str(tmp_path / instances[1].name)) != found


@pytest.mark.parametrize(
    ("change", "is_same"),
    [
        (lambda folder: (folder / "b.mrxs").write_bytes((folder / "b.mrxs").read_bytes() + b"preview"), True),
        (lambda folder: change_last_byte(folder / "b" / "Data0000.dat"), False),
        (
            lambda folder: (folder / "b" / "Index.dat").write_bytes((folder / "b" / "Index.dat").read_bytes() + b" "),
            False,
        ),
    ],
)
def test_a_mirax_fingerprint_changes_with_the_slide_only(
    shared: Path, tmp_path: Path, change: Callable[[Path], object], is_same: bool
) -> None:
    path = copied(shared / "slides" / "mirax-sparse-bounds.mrxs", tmp_path / "copy")
    before = fingerprint(str(path))
    change(path.parent)
    assert (fingerprint(str(path)) == before) is is_same


def test_a_file_without_quickhash_and_a_url_are_named_by_size_and_both_ends(tmp_path: Path) -> None:
    path = tmp_path / "a.tif"
    rgb = np.random.default_rng(3).integers(0, 255, (1200, 1200, 3), dtype=np.uint8)
    tifffile.imwrite(path, rgb, photometric="rgb", metadata=None)
    whole = path.read_bytes()
    found = set()
    for at in (None, 1000, len(whole) - 1000):
        raw = bytearray(whole)
        if at is not None:
            raw[at] ^= 1
        path.write_bytes(raw)
        fsspec.filesystem("memory").pipe("/bucket/a.tif", bytes(raw))
        assert fingerprint("memory://bucket/a.tif") == fingerprint(str(path))
        found.add(fingerprint(str(path)))
    assert len(found) == 3


def test_a_missing_file_is_an_error_in_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(SlideError, match=r"a\.svs cannot be read"):
        fingerprint(str(tmp_path / "a.svs"))
