"""A large tiled slide from the encoded tiles of a small real one, each stored once however often it is shown."""

import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tifffile

SHORT, LONG, RATIONAL, UNDEFINED, ASCII = 3, 4, 5, 7, 2
FACTOR = 4

Tag = tuple[int, bytes, int]
"""A value of a directory: type, bytes, count."""


def write_mosaic(path: Path, source: Path, side_px: int, mpp_um: float) -> Path:
    """Write a square slide of levels 1, 4 and 16 whose tiles are those of a real slide's levels, over and over.

    What the levels show does not agree, which matters to no reader. A slide of 65,536 px takes a few megabytes.

    Args:
        path: Where to write it; Aperio's kind if it ends in `.svs`, else a generic TIFF.
        source: A slide of JPEG tiles.
        side_px: Its side in level-0 pixels.
        mpp_um: Its micrometres per pixel.
    """
    described = f"Aperio Image Library v1\r\nmosaic|AppMag = 40|MPP = {mpp_um}" if path.suffix == ".svs" else "mosaic"
    with path.open("wb") as file, tifffile.TiffFile(source) as real:
        pages = [page for page in real.pages if page.is_tiled]
        file.write(b"II*\0" + struct.pack("<I", 0))
        next_at = 4
        for level in range(3):
            page: Any = pages[min(level, len(pages) - 1)]
            offsets, counts = _stored(file, real, page)
            side = side_px // FACTOR**level
            tiles = -(-side // page.tilewidth) * -(-side // page.tilelength)
            order = np.random.default_rng(level).integers(0, len(offsets), tiles)
            tags = _tags(page, side, described, mpp_um)
            tags[324] = LONG, np.array(offsets, "<u4")[order].tobytes(), tiles
            tags[325] = LONG, np.array(counts, "<u4")[order].tobytes(), tiles
            if level and path.suffix != ".svs":  # Aperio flags its label as reduced, not its levels
                tags[254] = LONG, struct.pack("<I", 1), 1
            next_at = _write_directory(file, tags, next_at)
            if level == 0 and path.suffix == ".svs":
                next_at = _write_thumbnail(file, described, next_at)
    return path


def _stored(file: Any, real: Any, page: Any) -> tuple[list[int], list[int]]:
    """Copy a page's whole tiles and return where they now are, in bytes."""
    columns, rows = page.imagewidth // page.tilewidth, page.imagelength // page.tilelength
    across = -(-page.imagewidth // page.tilewidth)
    offsets, counts = [], []
    for index in [row * across + column for row in range(max(1, rows)) for column in range(max(1, columns))]:
        real.filehandle.seek(page.dataoffsets[index])
        offsets.append(file.tell())
        counts.append(file.write(real.filehandle.read(page.databytecounts[index])))
    return offsets, counts


def _write_thumbnail(file: Any, described: str, next_at: int) -> int:
    """Write the small image that Aperio has after level 0, in one strip; TiffSlide finds no levels without it."""
    pixels, side = bytes([200]) * (64 * 64 * 3), 64
    at = file.tell()
    file.write(pixels)
    text = described.encode() + b"\0"
    tags = {
        256: _numbers(LONG, [side]), 257: _numbers(LONG, [side]), 258: _numbers(SHORT, [8, 8, 8]),
        259: _numbers(SHORT, [1]), 262: _numbers(SHORT, [2]), 270: (ASCII, text, len(text)), 273: _numbers(LONG, [at]),
        277: _numbers(SHORT, [3]), 278: _numbers(LONG, [side]), 279: _numbers(LONG, [len(pixels)]),
        284: _numbers(SHORT, [1]),
    }  # fmt: skip
    return _write_directory(file, tags, next_at)


def _numbers(kind: int, values: Sequence[int]) -> Tag:
    return kind, struct.pack(f"<{len(values)}{'H' if kind == SHORT else 'I'}", *values), len(values)


def _tags(page: Any, side: int, described: str, mpp_um: float) -> dict[int, Tag]:
    """Return a directory's tags but for its tile tables."""
    text = described.encode() + b"\0"
    resolution = RATIONAL, struct.pack("<II", round(1e8 / mpp_um), 10_000), 1
    tags = {
        256: _numbers(LONG, [side]), 257: _numbers(LONG, [side]), 258: _numbers(SHORT, [8, 8, 8]),
        259: _numbers(SHORT, [7]), 262: _numbers(SHORT, [int(page.photometric)]), 270: (ASCII, text, len(text)),
        277: _numbers(SHORT, [3]), 282: resolution, 283: resolution, 284: _numbers(SHORT, [1]),
        296: _numbers(SHORT, [3]), 322: _numbers(LONG, [page.tilewidth]), 323: _numbers(LONG, [page.tilelength]),
    }  # fmt: skip
    if page.jpegtables:
        tags[347] = UNDEFINED, page.jpegtables, len(page.jpegtables)
    if page.photometric == tifffile.PHOTOMETRIC.YCBCR:
        tags[530] = _numbers(SHORT, page.subsampling)
    return tags


def _write_directory(file: Any, tags: dict[int, Tag], next_at: int) -> int:
    """Write a directory, point the one before it here, and return where it says which one follows."""
    entries = b""
    for number, (kind, values, count) in sorted(tags.items()):
        field = values.ljust(4, b"\0")
        if len(values) > 4:
            file.seek(file.tell() % 2, 1)
            field = struct.pack("<I", file.tell())
            file.write(values)
        entries += struct.pack("<HHI", number, kind, count) + field
    file.seek(file.tell() % 2, 1)
    at = file.tell()
    file.write(struct.pack("<H", len(tags)) + entries + struct.pack("<I", 0))
    file.seek(next_at)
    file.write(struct.pack("<I", at))
    file.seek(0, 2)
    return at + 2 + len(entries)
