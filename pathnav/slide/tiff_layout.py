"""Where a TIFF file keeps its tiles: the directories of TIFF, BigTIFF and NDPI files, without any pixels.

tifffile logs a broken chain of pages and goes on without the rest, so a file cut short would lose levels in silence;
this reader raises instead, keeps the tables as arrays (a 2 GB slide has 10^5 tiles) and reads only the directories.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from pathnav.errors import SlideError

Offsets = NDArray[np.uint64]

MAX_DIRECTORIES = 10_000  # real slides have under 100; a damaged chain may go round in circles

_WIDTH, _HEIGHT, _COMPRESSION = 256, 257, 259
_STRIP_OFFSETS, _ROWS_PER_STRIP, _STRIP_BYTE_COUNTS = 273, 278, 279
_TILE_WIDTH, _TILE_HEIGHT, _TILE_OFFSETS, _TILE_BYTE_COUNTS = 322, 323, 324, 325
_SUB_DIRECTORIES = 330
_WANTED = frozenset(
    {_WIDTH, _HEIGHT, _COMPRESSION, _STRIP_OFFSETS, _ROWS_PER_STRIP, _STRIP_BYTE_COUNTS}
    | {_TILE_WIDTH, _TILE_HEIGHT, _TILE_OFFSETS, _TILE_BYTE_COUNTS, _SUB_DIRECTORIES}
)
_DTYPES = {1: "u1", 3: "u2", 4: "u4", 13: "u4", 16: "u8", 18: "u8"}  # BYTE, SHORT, LONG, IFD, LONG8, IFD8


@dataclass(frozen=True, slots=True, eq=False)
class Directory:
    """One image of a TIFF file.

    Args:
        width: Columns, in pixels of this image.
        height: Rows.
        compression: The TIFF compression number (7 is JPEG).
        is_tiled: Whether the image is cut into tiles; otherwise into strips.
        tile_width: Columns of a tile; of a strip the whole width.
        tile_height: Rows of a tile or strip.
        offsets: uint64, shape (n,); the byte at which each tile starts, row by row; 0 with count 0 for a tile left out.
        byte_counts: uint64, shape (n,).
    """

    width: int
    height: int
    compression: int
    is_tiled: bool
    tile_width: int
    tile_height: int
    offsets: Offsets
    byte_counts: Offsets

    @property
    def tile_areas(self) -> NDArray[np.int64]:
        """The pixels of the image that each tile holds: int64, shape (n,), 0 for those beyond it (further planes)."""
        columns = -(-self.width // max(1, self.tile_width))
        row, column = np.divmod(np.arange(self.offsets.size), max(1, columns))
        across = np.clip(self.width - column * self.tile_width, 0, self.tile_width)
        down = np.clip(self.height - row * self.tile_height, 0, self.tile_height)
        return np.asarray(across * down, dtype=np.int64)


@dataclass(frozen=True, slots=True)
class _Dialect:
    """How numbers are laid out: byte order, bytes of a tag count, a value and an offset, and NDPI's high words."""

    order: str
    count_bytes: int
    value_bytes: int
    offset_bytes: int
    is_ndpi: bool

    def number(self, raw: bytes) -> int:
        """Return an unsigned number."""
        return int.from_bytes(raw, "little" if self.order == "<" else "big")


class _Cursor:
    """Reads exact byte ranges of one file; a range beyond its end means that the file is cut short."""

    def __init__(self, file: BinaryIO, name: str) -> None:
        self._file, self._name = file, name
        self.file_bytes = file.seek(0, 2)

    def read(self, offset: int, length: int, what: str) -> bytes:
        if offset + length > self.file_bytes:
            raise cut_short(self._name, what, offset + length, self.file_bytes)
        self._file.seek(offset)
        raw = self._file.read(length)
        if len(raw) != length:
            raise cut_short(self._name, what, offset + length, offset + len(raw))
        return raw


def cut_short(name: str, what: str, expected_end: int, file_bytes: int) -> SlideError:
    """Return the error for a file that ends before one of its parts does, in bytes."""
    return SlideError(
        f"{name} is cut short: {what} ends at byte {expected_end}, but the file ends at byte {file_bytes}; "
        "copy it again from its source"
    )


def is_tiff(head: bytes) -> bool:
    """Return whether a file that begins with these (at least 4) bytes is a TIFF or BigTIFF."""
    return head[:4] in (b"II*\0", b"MM\0*", b"II+\0", b"MM\0+")


def read_directories(file: BinaryIO, name: str) -> tuple[Directory, ...]:
    """Return the images of a TIFF file in the order of its chain, each followed by its sub-images.

    Args:
        file: The open file, seekable.
        name: How messages call it; a name ending in `.ndpi` is read with Hamamatsu's 64-bit extension of TIFF.

    Raises:
        SlideError: If it is not a TIFF, or if a directory or tile table lies beyond the end of the file.
    """
    cursor = _Cursor(file, name)
    head = cursor.read(0, min(16, cursor.file_bytes), "its header")
    if not is_tiff(head):
        raise SlideError(f"{name} is not a TIFF file: expected it to begin with II or MM, got {head[:8]!r}")
    order = "<" if head[:2] == b"II" else ">"
    if b"+" in head[:4]:
        dialect, start = _Dialect(order, 8, 8, 8, False), 8
    elif name.lower().endswith(".ndpi"):
        dialect, start = _Dialect(order, 2, 4, 8, True), 4
    else:
        dialect, start = _Dialect(order, 2, 4, 4, False), 4
    first = dialect.number(cursor.read(start, dialect.offset_bytes, "its header"))
    return tuple(_chain(cursor, dialect, first, name))


def _chain(cursor: _Cursor, dialect: _Dialect, first: int, name: str) -> Iterator[Directory]:
    pending, seen = [first], set[int]()
    while pending:
        offset = pending.pop()
        if offset == 0 or offset in seen:
            continue
        seen.add(offset)
        if len(seen) > MAX_DIRECTORIES:
            raise SlideError(f"{name} is damaged: its chain of pages does not end after {MAX_DIRECTORIES}")
        tags, following = _tags(cursor, dialect, offset)
        pending.append(following)
        pending.extend(int(sub) for sub in reversed(tags.get(_SUB_DIRECTORIES, _nothing())))
        yield _directory(tags)


def _tags(cursor: _Cursor, dialect: _Dialect, offset: int) -> tuple[dict[int, Offsets], int]:
    """Return the wanted tags of the directory at a byte offset, and the offset of the next directory (0: none)."""
    what = f"the page directory at byte {offset}"
    count = dialect.number(cursor.read(offset, dialect.count_bytes, what))
    at = offset + dialect.count_bytes
    entry_bytes = 4 + 2 * dialect.value_bytes
    high_bytes = 4 * count if dialect.is_ndpi else 0
    raw = cursor.read(at, count * entry_bytes + dialect.offset_bytes + high_bytes, what)
    after = count * entry_bytes
    following = dialect.number(raw[after : after + dialect.offset_bytes])
    high = raw[after + dialect.offset_bytes :]
    tags = {}
    for index in range(count):
        entry = raw[index * entry_bytes : (index + 1) * entry_bytes]
        number = dialect.number(entry[:2])
        if number in _WANTED:
            tags[number] = _values(cursor, dialect, entry, high[4 * index : 4 * index + 4])
    return tags, following


def _values(cursor: _Cursor, dialect: _Dialect, entry: bytes, high: bytes) -> Offsets:
    """Return the numbers of one tag; empty for a type that cannot hold an offset or a size."""
    dtype = _DTYPES.get(dialect.number(entry[2:4]))
    if dtype is None:
        return _nothing()
    count = dialect.number(entry[4 : 4 + dialect.value_bytes])
    value = entry[4 + dialect.value_bytes :]
    length = count * int(dtype[1])
    if dialect.is_ndpi and count == 1 and dtype == "u4":
        return np.array([dialect.number(value + high)], dtype=np.uint64)  # NDPI is little-endian: low word, high word
    if length > dialect.value_bytes:
        place = dialect.number(value + high if dialect.is_ndpi else value)
        value = cursor.read(place, length, f"the tile table at byte {place}")
    return np.frombuffer(value[:length], dtype=dialect.order + dtype).astype(np.uint64)


def _directory(tags: dict[int, Offsets]) -> Directory:
    def one(tag: int, default: int) -> int:
        values = tags.get(tag, _nothing())
        return int(values[0]) if values.size else default

    is_tiled = _TILE_OFFSETS in tags
    offsets = tags.get(_TILE_OFFSETS if is_tiled else _STRIP_OFFSETS, _nothing())
    counts = tags.get(_TILE_BYTE_COUNTS if is_tiled else _STRIP_BYTE_COUNTS, _nothing())
    width, height = one(_WIDTH, 0), one(_HEIGHT, 0)
    return Directory(
        width=width,
        height=height,
        compression=one(_COMPRESSION, 1),
        is_tiled=is_tiled,
        tile_width=one(_TILE_WIDTH, width) if is_tiled else width,
        tile_height=one(_TILE_HEIGHT, height) if is_tiled else min(height, one(_ROWS_PER_STRIP, height)),
        offsets=offsets,
        byte_counts=_sized(counts, offsets.size),
    )


def _sized(counts: Offsets, length: int) -> Offsets:
    """Return the byte counts cut or padded with 0 to one for each offset; a writer may leave them out."""
    return np.concatenate([counts[:length], np.zeros(max(0, length - counts.size), dtype=np.uint64)])


def _nothing() -> Offsets:
    return np.zeros(0, dtype=np.uint64)
