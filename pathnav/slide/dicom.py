"""Which files make up one DICOM slide: just enough of the format to read a series identifier from a file's head.

A DICOM slide is a folder of instances (levels, label, overview) that share a SeriesInstanceUID; any of them opens it.
"""

import struct
from pathlib import Path

HEAD_BYTES = (
    64 * 2**10
)  # the identifier stood within the first 2 kB of every file seen; nested sequences may push it on

_SERIES_UID = (0x0020, 0x000E)
_TRANSFER_SYNTAX = (0x0002, 0x0010)
_IMPLICIT_LITTLE_ENDIAN = b"1.2.840.10008.1.2"
_LONG_FORM = frozenset({b"OB", b"OD", b"OF", b"OL", b"OV", b"OW", b"SQ", b"SV", b"UC", b"UN", b"UR", b"UT", b"UV"})
_ITEM_GROUP = 0xFFFE
_UNDEFINED_LENGTH = 0xFFFFFFFF


def series_files(path: Path) -> list[Path]:
    """Return the files of the folder that share the file's DICOM series, sorted; the file alone if it is not DICOM."""
    series = series_uid(path)
    if series is None:
        return [path]
    return sorted(file for file in path.parent.iterdir() if file.is_file() and series_uid(file) == series)


def series_uid(path: Path) -> str | None:
    """Return the SeriesInstanceUID of a DICOM file, None for any other file."""
    with path.open("rb") as file:
        head = file.read(132)
        if head[128:] != b"DICM":
            return None
        return _find_series(head + file.read(HEAD_BYTES - len(head)))


def _find_series(head: bytes) -> str | None:
    """Walk the elements from byte 132; those inside sequences of undefined length are walked too, but do not count."""
    at, depth, explicit = 132, 0, True
    while at + 8 <= len(head):
        group, element = struct.unpack_from("<HH", head, at)
        tag = (group, element)
        length, value_at = _length(head, at, explicit or group == 2)
        is_open_ended = length == _UNDEFINED_LENGTH
        depth += 1 if is_open_ended else 0
        depth -= 1 if group == _ITEM_GROUP and element != 0xE000 else 0
        value = b"" if is_open_ended else head[value_at : value_at + length].rstrip(b"\0 ")
        if tag == _TRANSFER_SYNTAX:
            explicit = value != _IMPLICIT_LITTLE_ENDIAN
        if tag == _SERIES_UID and depth <= 0:
            return value.decode("ascii", "replace")
        at = value_at if is_open_ended else value_at + length
    return None


def _length(head: bytes, at: int, explicit: bool) -> tuple[int, int]:
    """Return an element's length in bytes and the place of its value."""
    if explicit and struct.unpack_from("<H", head, at)[0] != _ITEM_GROUP:
        if head[at + 4 : at + 6] in _LONG_FORM:
            return (struct.unpack_from("<I", head, at + 8)[0] if at + 12 <= len(head) else 0), at + 12
        return struct.unpack_from("<H", head, at + 6)[0], at + 8
    return struct.unpack_from("<I", head, at + 4)[0], at + 8
