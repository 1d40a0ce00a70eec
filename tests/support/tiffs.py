"""Small TIFF files of every dialect, and a sparse one as large as a slide."""

import struct
from pathlib import Path

import numpy as np
import tifffile

SIDE_PX, TILE_PX = 256, 64


def write_pyramid(path: Path, *, bigtiff: bool = False, byteorder: str = "<", compression: str = "jpeg") -> Path:
    """Write a tiled slide of 256 x 256 with a second level of 128 x 128 and a label in strips; return its path."""
    rgb = np.random.default_rng(5).integers(0, 255, (SIDE_PX, SIDE_PX, 3), dtype=np.uint8)
    with tifffile.TiffWriter(path, bigtiff=bigtiff, byteorder=byteorder) as file:
        for level in (rgb, rgb[::2, ::2]):
            kind = 0 if level is rgb else 1
            file.write(level, tile=(TILE_PX, TILE_PX), compression=compression, photometric="rgb", subfiletype=kind)
        file.write(rgb[:40, :40], photometric="rgb", rowsperstrip=16, metadata=None)
    return path


def write_with_sub_images(path: Path) -> Path:
    """Write a tiled slide whose second level is a sub-image of the first; return its path."""
    rgb = np.random.default_rng(6).integers(0, 255, (SIDE_PX, SIDE_PX, 3), dtype=np.uint8)
    with tifffile.TiffWriter(path) as file:
        file.write(rgb, tile=(TILE_PX, TILE_PX), photometric="rgb", subifds=1)
        file.write(rgb[::2, ::2], tile=(TILE_PX, TILE_PX), photometric="rgb", subfiletype=1)
    return path


def write_sparse(path: Path, file_bytes: int, tiles: int, seed: int = 0) -> Path:
    """Write a BigTIFF that is as large as a slide but takes no room: a table of many JPEG tiles, all of them holes."""
    columns = int(np.ceil(np.sqrt(tiles)))
    room = file_bytes - 16 - 40 * tiles
    offsets = np.linspace(16, room, columns * columns).astype("<u8")
    counts = np.random.default_rng(seed).integers(1, 20_000, columns * columns).astype("<u8")
    side = columns * 256
    tables = file_bytes - 16 * columns * columns
    entries = [
        (256, 4, 1, side), (257, 4, 1, side), (259, 3, 1, 7), (322, 3, 1, 256), (323, 3, 1, 256),
        (324, 16, offsets.size, tables), (325, 16, counts.size, tables + offsets.nbytes),
    ]  # fmt: skip
    directory = tables - 8 - 20 * len(entries) - 8
    with path.open("wb") as file:
        file.write(b"II" + struct.pack("<HHHQ", 43, 8, 0, directory))
        file.seek(directory)
        file.write(struct.pack("<Q", len(entries)))
        for tag, kind, count, value in entries:
            file.write(struct.pack("<HHQQ", tag, kind, count, value))
        file.write(struct.pack("<Q", 0) + offsets.tobytes() + counts.tobytes())
    return path


def write_ndpi(path: Path, strip_at: int, strip_bytes: int, file_bytes: int) -> Path:
    """Write a sparse file as Hamamatsu does: classic TIFF whose offsets have their high words behind the directory."""
    entries = [(256, 4, 1, 4096), (257, 4, 1, 4096), (259, 3, 1, 7), (273, 4, 1, strip_at), (279, 4, 1, strip_bytes)]
    directory = file_bytes - (2 + 12 * len(entries) + 8 + 4 * len(entries))
    with path.open("wb") as file:
        file.write(b"II" + struct.pack("<HQ", 42, directory))
        file.seek(directory)
        file.write(struct.pack("<H", len(entries)))
        for tag, kind, count, value in entries:
            file.write(struct.pack("<HHII", tag, kind, count, value & 0xFFFFFFFF))
        file.write(struct.pack("<Q", 0))
        file.write(b"".join(struct.pack("<I", value >> 32) for *_, value in entries))
    return path
