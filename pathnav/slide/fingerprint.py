"""A name for a slide's content that survives copying, moving and renaming, at the cost of a few megabytes read.

Files of up to 64 MiB are hashed whole. Of larger ones: the size, the tile tables of a TIFF (they change whenever any
tile's compressed size does) and 64 evenly spaced blocks of 64 KiB, the first and the last bytes among them. A slide of
several files (DICOM, MIRAX, VMS) is named by all the files that hold its data, whichever of them was opened.
"""

import configparser
import hashlib
from collections.abc import Iterable
from pathlib import Path
from typing import BinaryIO, cast

from pathnav.errors import SlideError
from pathnav.slide.dicom import series_files
from pathnav.slide.integrity import is_url
from pathnav.slide.tiff_layout import is_tiff, read_directories

WHOLE_FILE_BYTES = 64 * 2**20
BLOCKS = 64
BLOCK_BYTES = 64 * 2**10

_VERSION = b"pathnav-fingerprint-1"  # changes whenever the rule does, so that old and new never agree by accident


def fingerprint(path: str) -> str:
    """Return the content's name, 64 hexadecimal digits: the same for every copy, and for every instance of a series.

    Raises:
        SlideError: If a file that belongs to the slide is missing or cannot be read.
    """
    try:
        digests = sorted(_file_digest(part) for part in slide_files(path))
    except OSError as error:
        raise SlideError(f"{path} cannot be read: {error.strerror or error}") from error
    return hashlib.sha256(_VERSION + b"".join(digests)).hexdigest()


def slide_files(path: str) -> list[str]:
    """Return the files that hold a slide's pixels and structure, sorted; the path itself for a slide of one file.

    Raises:
        SlideError: If the index of a MIRAX slide is missing or cannot be read.
    """
    if is_url(path):
        return [path]
    local = Path(path)
    suffix = local.suffix.lower()
    if suffix == ".mrxs":
        files: Iterable[Path] = _mirax_files(local)
    elif suffix in (".vms", ".vmu"):
        files = [local, *_named_files(local, local.parent)]
    else:
        files = series_files(local)
    return sorted(str(file) for file in files)


def _mirax_files(path: Path) -> list[Path]:
    """Return the index and data files; the .mrxs itself is only a preview and may be replaced by an empty file."""
    index = path.with_suffix("") / "Slidedat.ini"
    if not index.is_file():
        raise SlideError(f"{path} needs the folder {index.parent} with its Slidedat.ini; keep the two side by side")
    return [index, *_named_files(index, index.parent)]


def _named_files(index: Path, folder: Path) -> list[Path]:
    """Return the existing files of a folder that an INI file names in any of its values, each once."""
    parser = configparser.ConfigParser(interpolation=None, strict=False, allow_no_value=True)
    try:
        parser.read_string(index.read_text(encoding="utf-8-sig", errors="replace"))
    except configparser.Error as error:
        reason = str(error).splitlines()[0]
        raise SlideError(f"{index} is not a readable index of a slide: {reason}; copy it again") from error
    values = {value for section in parser.sections() for _, value in parser.items(section) if value}
    named = {folder / value for value in values if Path(value).name == value}
    return sorted(file for file in named if file.is_file() and file != index)


def _file_digest(path: str) -> bytes:
    with _open(path) as file:
        file_bytes = file.seek(0, 2)
        digest = hashlib.sha256(str(file_bytes).encode())
        if file_bytes > WHOLE_FILE_BYTES:
            _add_tile_tables(digest, file, path)
            starts = [round(i * (file_bytes - BLOCK_BYTES) / (BLOCKS - 1)) for i in range(BLOCKS)]
            length = BLOCK_BYTES
        else:
            starts, length = [0], file_bytes
        for start in starts:
            file.seek(start)
            digest.update(file.read(length))
    return digest.digest()


def _add_tile_tables(digest: "hashlib._Hash", file: BinaryIO, path: str) -> None:
    file.seek(0)
    if not is_tiff(file.read(4)):
        return
    for directory in read_directories(file, path):
        digest.update(f"{directory.width}x{directory.height}".encode())
        digest.update(directory.offsets.astype("<u8").tobytes())
        digest.update(directory.byte_counts.astype("<u8").tobytes())


def _open(path: str) -> BinaryIO:
    if not is_url(path):
        return Path(path).open("rb")
    import fsspec

    # The default block of 5 MiB would fetch 320 MiB for 64 samples.
    return cast(BinaryIO, fsspec.open(path, "rb", block_size=BLOCK_BYTES).open())
