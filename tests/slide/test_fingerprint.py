"""The same content has the same fingerprint wherever it lies; other content has another one."""

import re
import shutil
import struct
import time
from collections.abc import Callable
from pathlib import Path

import fsspec
import pytest

from pathnav.errors import SlideError
from pathnav.slide import open_slide
from pathnav.slide.dicom import series_uid
from pathnav.slide.fingerprint import fingerprint, slide_files
from support.tiffs import write_pyramid, write_sparse

IMPLICIT, EXPLICIT = "1.2.840.10008.1.2", "1.2.840.10008.1.2.1"


def test_fingerprint_is_64_hexadecimal_digits(tmp_path: Path) -> None:
    assert re.fullmatch("[0-9a-f]{64}", fingerprint(str(write_pyramid(tmp_path / "a.tif"))))


def test_fingerprint_is_the_same_for_a_copy_under_another_name(tmp_path: Path) -> None:
    first = write_pyramid(tmp_path / "a.tif")
    (tmp_path / "other").mkdir()
    second = shutil.copy(first, tmp_path / "other" / "renamed.svs")
    assert fingerprint(str(first)) == fingerprint(str(second))


def test_fingerprint_does_not_depend_on_how_the_path_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_pyramid(tmp_path / "a.tif")
    monkeypatch.chdir(tmp_path)
    assert fingerprint("a.tif") == fingerprint(str(path))


def test_one_changed_byte_of_a_small_slide_changes_the_fingerprint(tmp_path: Path) -> None:
    path = write_pyramid(tmp_path / "a.tif")
    before = fingerprint(str(path))
    raw = bytearray(path.read_bytes())
    raw[len(raw) // 2] ^= 1
    path.write_bytes(raw)
    assert fingerprint(str(path)) != before


def test_large_slides_that_differ_only_in_compressed_tile_sizes_differ(tmp_path: Path) -> None:
    prints = {
        fingerprint(str(write_sparse(tmp_path / f"{seed}.svs", 2**31, tiles=1000, seed=seed))) for seed in range(3)
    }
    assert len(prints) == 3


def test_large_slides_that_differ_in_a_sampled_block_differ(tmp_path: Path) -> None:
    path = write_sparse(tmp_path / "a.svs", 2**31, tiles=1000)
    before = fingerprint(str(path))
    with path.open("r+b") as file:
        file.seek(round(20 * (2**31 - 2**16) / 63) + 1000)  # within the 21st of 64 blocks
        file.write(b"\1")
    assert fingerprint(str(path)) != before


def test_slide_of_2_gb_is_fingerprinted_from_a_few_megabytes(tmp_path: Path) -> None:
    path = write_sparse(tmp_path / "a.svs", 2**31, tiles=160_000)
    started = time.process_time()
    fingerprint(str(path))
    assert time.process_time() - started < 1.0  # measured 0.03 s; hashing 2 GB takes more than 1 s


def test_url_has_the_fingerprint_of_its_local_copy(tmp_path: Path) -> None:
    path = write_pyramid(tmp_path / "a.tif")
    fsspec.filesystem("memory").pipe("/bucket/a.tif", path.read_bytes())
    assert fingerprint("memory://bucket/a.tif") == fingerprint(str(path))


def test_slide_offers_its_fingerprint(shared: Path) -> None:
    path = shared / "slides" / "CMU-1-Small-Region.svs"
    with open_slide(path) as slide:
        assert slide.fingerprint == fingerprint(str(path))


def test_damaged_slide_has_another_fingerprint_than_the_whole_one(shared: Path) -> None:
    names = ("CMU-1-Small-Region.svs", "corrupt-one-tile-zeroed.svs")
    assert len({fingerprint(str(shared / "slides" / name)) for name in names}) == 2


def test_every_instance_of_a_dicom_series_gives_the_same_fingerprint(shared: Path) -> None:
    folder = shared / "slides" / "CMU-1-Small-Region-dicom"
    instances = sorted(folder.iterdir())
    assert len({fingerprint(str(instance)) for instance in instances}) == 1
    assert slide_files(str(instances[0])) == [str(instance) for instance in instances]


def test_dicom_slide_keeps_its_fingerprint_when_files_are_renamed_and_others_join(shared: Path, tmp_path: Path) -> None:
    folder = shared / "slides" / "CMU-1-Small-Region-dicom"
    for number, instance in enumerate(sorted(folder.iterdir(), reverse=True)):
        shutil.copy(instance, tmp_path / f"{number}")  # archives store instances without a suffix
    (tmp_path / "notes.txt").write_text("not of the slide")
    _write_dicom(tmp_path / "other.dcm", "9.9.9", EXPLICIT)
    assert fingerprint(str(tmp_path / "2")) == fingerprint(str(next(folder.iterdir())))


def test_dicom_slide_that_lost_an_instance_has_another_fingerprint(shared: Path, tmp_path: Path) -> None:
    instances = sorted((shared / "slides" / "CMU-1-Small-Region-dicom").iterdir())
    for instance in instances[:-1]:
        shutil.copy(instance, tmp_path)
    assert fingerprint(str(tmp_path / instances[0].name)) != fingerprint(str(instances[0]))


def _element(group: int, element: int, kind: bytes, value: bytes, explicit: bool = True) -> bytes:
    value += b"\0" * (len(value) % 2)
    tag = struct.pack("<HH", group, element)
    if not explicit:
        return tag + struct.pack("<I", len(value)) + value
    if kind in (b"OB", b"SQ", b"UN"):
        return tag + kind + struct.pack("<HI", 0, len(value)) + value
    return tag + kind + struct.pack("<H", len(value)) + value


def _open_ended_sequence(inner: bytes, explicit: bool) -> bytes:
    """Return a sequence and an item that both end with a delimiter instead of stating their length."""
    start = struct.pack("<HH", 0x0008, 0x1115) + (b"SQ\0\0" if explicit else b"") + b"\xff" * 4
    item = struct.pack("<HHI", 0xFFFE, 0xE000, 0xFFFFFFFF) + inner + struct.pack("<HHI", 0xFFFE, 0xE00D, 0)
    return start + item + struct.pack("<HHI", 0xFFFE, 0xE0DD, 0)


def _write_dicom(path: Path, series: str, syntax: str) -> None:
    explicit = syntax != IMPLICIT
    of_another = _element(0x0020, 0x000E, b"UI", b"1.1.1", explicit)
    path.write_bytes(
        bytes(128)
        + b"DICM"
        + _element(0x0002, 0x0001, b"OB", b"\0\1")
        + _element(0x0002, 0x0010, b"UI", syntax.encode())
        + _element(0x0008, 0x0060, b"CS", b"SM", explicit)
        + _open_ended_sequence(of_another, explicit)
        + _element(0x0008, 0x1140, b"SQ", struct.pack("<HHI", 0xFFFE, 0xE000, len(of_another)) + of_another, explicit)
        + _element(0x0020, 0x000E, b"UI", series.encode(), explicit)
    )


@pytest.mark.parametrize("syntax", [IMPLICIT, EXPLICIT])
def test_series_of_a_dicom_file_is_found_behind_nested_sequences(tmp_path: Path, syntax: str) -> None:
    _write_dicom(tmp_path / "a.dcm", "1.2.3.4", syntax)
    assert series_uid(tmp_path / "a.dcm") == "1.2.3.4"


def test_file_that_is_not_dicom_has_no_series(tmp_path: Path) -> None:
    (tmp_path / "a.dcm").write_bytes(b"text")
    assert series_uid(tmp_path / "a.dcm") is None


@pytest.mark.parametrize("length", range(132, 260, 7))
def test_dicom_head_that_was_cut_has_no_series(tmp_path: Path, length: int) -> None:
    path = tmp_path / "a.dcm"
    _write_dicom(path, "1.2.3.4", EXPLICIT)
    path.write_bytes(path.read_bytes()[:length])
    assert series_uid(path) is None


def _mirax(folder: Path) -> Path:
    (folder / "a").mkdir(parents=True)
    (folder / "a.mrxs").write_bytes(b"preview")
    (folder / "a" / "Slidedat.ini").write_text(
        "\ufeff[HIERARCHICAL]\nINDEXFILE = Index.dat\n[DATAFILE]\nFILE_COUNT = 1\nFILE_0 = Data0000.dat\n", "utf-8"
    )
    (folder / "a" / "Index.dat").write_bytes(b"index")
    (folder / "a" / "Data0000.dat").write_bytes(b"pixels")
    return folder / "a.mrxs"


def test_mirax_slide_is_named_by_its_data_files(tmp_path: Path) -> None:
    files = slide_files(str(_mirax(tmp_path)))
    assert [Path(file).name for file in files] == ["Data0000.dat", "Index.dat", "Slidedat.ini"]


@pytest.mark.parametrize(
    ("change", "is_same"),
    [
        (lambda folder: (folder / "a.mrxs").write_bytes(b"another preview"), True),
        (lambda folder: (folder / "a" / "Thumbs.db").write_bytes(b"stray"), True),
        (lambda folder: (folder / "a" / "Data0000.dat").write_bytes(b"pixelz"), False),
        (lambda folder: (folder / "a" / "Index.dat").write_bytes(b"Index"), False),
    ],
)
def test_mirax_fingerprint_changes_with_the_slide_only(
    tmp_path: Path, change: Callable[[Path], int], is_same: bool
) -> None:
    before = fingerprint(str(_mirax(tmp_path)))
    change(tmp_path)
    assert (fingerprint(str(tmp_path / "a.mrxs")) == before) is is_same


def test_mirax_slide_without_its_folder_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "a.mrxs").write_bytes(b"preview")
    with pytest.raises(SlideError, match=r"a\.mrxs needs the folder .*a with its Slidedat\.ini"):
        fingerprint(str(tmp_path / "a.mrxs"))


def test_mirax_index_that_is_no_ini_file_is_an_error(tmp_path: Path) -> None:
    path = _mirax(tmp_path)
    (tmp_path / "a" / "Slidedat.ini").write_text("FILE_0 without a section")
    with pytest.raises(SlideError, match=r"Slidedat\.ini is not a readable index"):
        fingerprint(str(path))


def test_real_mirax_slide_keeps_its_fingerprint_when_copied(shared: Path, tmp_path: Path) -> None:
    source = shared / "slides" / "mirax-sparse-bounds.mrxs"
    shutil.copy(source, tmp_path / "b.mrxs")
    shutil.copytree(source.with_suffix(""), tmp_path / "b")
    assert fingerprint(str(tmp_path / "b.mrxs")) == fingerprint(str(source))


def test_vms_slide_is_named_by_the_images_it_lists(tmp_path: Path) -> None:
    (tmp_path / "a.vms").write_text("[Virtual Microscope Specimen]\nImageFile=a.jpg\nMapFile=missing.jpg\n")
    (tmp_path / "a.jpg").write_bytes(b"pixels")
    assert [Path(file).name for file in slide_files(str(tmp_path / "a.vms"))] == ["a.jpg", "a.vms"]


def test_missing_file_is_an_error_in_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(SlideError, match="cannot be read: No such file"):
        fingerprint(str(tmp_path / "a.svs"))
