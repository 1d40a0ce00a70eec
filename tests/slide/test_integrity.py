"""Files that are refused before a reader opens them, and damaged tiles that are only warned of."""

import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pathnav.errors import SlideError
from pathnav.slide.damage import find_damage
from pathnav.slide.integrity import check_complete
from pathnav.slide.tiff_layout import read_directories
from support.tiffs import SIDE_PX, TILE_PX, write_pyramid, write_sparse, write_with_sub_images


def refusal(path: Path | str) -> str:
    with pytest.raises(SlideError) as caught:
        check_complete(str(path))
    message = str(caught.value)
    assert str(path) in message
    assert "\n" not in message
    return message


def test_missing_file_is_refused(tmp_path: Path) -> None:
    assert "does not exist" in refusal(tmp_path / "a.svs")


def test_directory_is_refused(tmp_path: Path) -> None:
    assert "is a directory; expected a slide file" in refusal(tmp_path)


def test_dicom_folder_is_refused_with_an_instance_to_open_instead(tmp_path: Path) -> None:
    (tmp_path / "b.dcm").write_bytes(b"b")
    (tmp_path / "a.dcm").write_bytes(b"a")
    assert str(tmp_path / "a.dcm") in refusal(tmp_path)


def test_mirax_folder_is_refused_with_the_file_to_open_instead(tmp_path: Path) -> None:
    (tmp_path / "slide").mkdir()
    (tmp_path / "slide.mrxs").write_bytes(b"preview")
    assert str(tmp_path / "slide.mrxs") in refusal(tmp_path / "slide")


@pytest.mark.parametrize("name", ["a.svs", "a.mrxs", "a.dcm", "a.unknown"])
def test_empty_file_is_refused_whatever_its_suffix(tmp_path: Path, name: str) -> None:
    (tmp_path / name).touch()
    assert "is empty (0 bytes)" in refusal(tmp_path / name)


@pytest.mark.parametrize("suffix", [".svs", ".SVS", ".tif", ".tiff", ".ndpi", ".scn"])
def test_text_under_a_tiff_suffix_is_refused_with_its_first_bytes(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"a{suffix}"
    path.write_text("<html>404 not found</html>")
    assert "b'<html>40'" in refusal(path)


@pytest.mark.parametrize("name", ["a.dcm", "a.vsi", "a.mrxs", "a.czi", "a.vms"])
def test_formats_with_their_own_layout_pass_through(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"II*\0" + b"\xff" * 200)
    check_complete(str(tmp_path / name))


def test_dicom_file_with_a_tiff_header_in_its_preamble_passes_through(tmp_path: Path) -> None:
    path = tmp_path / "dual.tif"
    path.write_bytes(b"II*\0" + b"\xff" * 124 + b"DICM" + bytes(100))
    check_complete(str(path))


def test_url_passes_through() -> None:
    check_complete("https://example.org/no-such-slide.svs")


@pytest.mark.parametrize("suffix", ["tif", "svs"])
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(share=st.floats(0, 1, exclude_max=True), nested=st.booleans())
def test_a_slide_cut_anywhere_is_refused(tmp_path: Path, suffix: str, share: float, nested: bool) -> None:
    path = tmp_path / f"whole-{nested}.{suffix}"
    if not path.exists():
        (write_with_sub_images if nested else write_pyramid)(path)
    whole = path.read_bytes()
    last = _last_needed_byte(path)
    cut = tmp_path / f"cut.{suffix}"
    cut.write_bytes(whole[: int(share * last)])
    refusal(cut)
    check_complete(str(path))


def _last_needed_byte(path: Path) -> int:
    with path.open("rb") as file:
        directories = read_directories(file, str(path))
    return max(int((directory.offsets + directory.byte_counts).max()) for directory in directories)


def test_tile_left_out_by_the_scanner_is_not_missing(tmp_path: Path) -> None:
    path = write_pyramid(tmp_path / "a.tif")
    _set_first_tile(path, offset=0, count=0)
    check_complete(str(path))
    assert find_damage(str(path)) == ()


def test_offset_near_the_end_of_64_bits_does_not_wrap_round(tmp_path: Path) -> None:
    path = write_pyramid(tmp_path / "a.tif", bigtiff=True)
    _set_first_tile(path, offset=2**64 - 8, count=None)
    assert "is cut short: tile 0 of its 256 x 256 image" in refusal(path)


def _set_first_tile(path: Path, offset: int, count: int | None) -> None:
    """Overwrite the first entries of the tile tables, found by their content."""
    with path.open("rb") as file:
        first = read_directories(file, str(path))[0]
    raw = path.read_bytes()
    width = 8 if raw[2:3] == b"+" else 4
    for table, value in ((first.offsets, offset), (first.byte_counts, count)):
        as_stored = [table.astype(kind).tobytes() for kind in (f"<u{width}", "<u4", "<u2")]
        found = next(packed for packed in as_stored if packed in raw)
        if value is not None:
            entry = len(found) // table.size
            raw = raw.replace(found, value.to_bytes(entry, "little") + found[entry:])
    path.write_bytes(raw)


def test_check_reads_only_the_tables_of_a_slide_of_2_gb(tmp_path: Path) -> None:
    path = write_sparse(tmp_path / "large.svs", file_bytes=2 * 2**30, tiles=160_000)
    started = time.process_time()
    check_complete(str(path))
    assert time.process_time() - started < 0.5  # measured 10 ms; reading 2 GB takes more than 0.5 s


@pytest.mark.parametrize("name", ["corrupt-truncated-50pct-opens.tif", "corrupt-truncated-60pct.svs"])
def test_real_slides_that_were_cut_are_refused(shared: Path, name: str) -> None:
    assert "is cut short" in refusal(shared / "slides" / name)


def test_all_complete_real_files_pass(shared: Path) -> None:
    for path in sorted((shared / "slides").iterdir()):
        if path.is_file() and not path.name.startswith("corrupt"):
            check_complete(str(path))
            assert find_damage(str(path)) == (), path.name


def test_zeroed_tile_in_a_complete_slide_is_a_warning_with_its_failed_share(shared: Path) -> None:
    path = shared / "slides" / "corrupt-one-tile-zeroed.svs"
    check_complete(str(path))
    (damage,) = find_damage(str(path))
    assert (damage.width, damage.height, damage.checked, damage.damaged) == (2220, 2967, 130, 1)
    assert damage.failed_share == pytest.approx(240 * 240 / (2220 * 2967))
    assert damage.warning == "damaged tiles: 1 of 130 in its 2220 x 2967 level (0.87% of the area), shown white"


@pytest.mark.parametrize("compression", ["jpeg", "zlib", "lzw", "jpeg2000", "webp", "zstd"])
def test_zeroed_tile_is_found_in_every_compression(tmp_path: Path, compression: str) -> None:
    path = write_pyramid(tmp_path / "a.tif", compression=compression)
    assert find_damage(str(path)) == ()
    _zero(path, tile=5)
    (damage,) = find_damage(str(path))
    assert (damage.damaged, damage.failed_share) == (1, TILE_PX**2 / SIDE_PX**2)


def test_tile_whose_second_half_is_lost_is_found(tmp_path: Path) -> None:
    path = write_pyramid(tmp_path / "a.tif")
    _zero(path, tile=5, start=0.5)
    assert [damage.damaged for damage in find_damage(str(path))] == [1]


def _zero(path: Path, tile: int, start: float = 0.0) -> None:
    with path.open("r+b") as file:
        level = read_directories(file, str(path))[0]
        count = int(level.byte_counts[tile])
        kept = int(start * count)
        file.seek(int(level.offsets[tile]) + kept)
        file.write(bytes(count - kept))


def test_damage_of_a_large_slide_is_estimated_from_every_nth_tile(tmp_path: Path) -> None:
    path = write_sparse(tmp_path / "large.svs", file_bytes=2**30, tiles=160_000)
    (damage,) = find_damage(str(path))
    assert damage.checked == damage.damaged == 40_000
    assert damage.failed_share == 1


def test_damage_is_not_looked_for_in_formats_with_their_own_layout(tmp_path: Path) -> None:
    (tmp_path / "a.mrxs").write_bytes(b"\xff\xd8\xff\xe0 preview")
    assert find_damage(str(tmp_path / "a.mrxs")) == ()
    assert find_damage("https://example.org/a.svs") == ()


@pytest.mark.parametrize("path", [".", "/", "", ".."])
def test_a_path_without_a_name_is_a_directory(path: str) -> None:
    with pytest.raises(SlideError, match="is a directory"):
        check_complete(path)
