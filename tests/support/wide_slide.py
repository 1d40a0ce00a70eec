"""A slide of one level only, as large as wanted, made by repeating a few encoded tiles: 20,000 px in a second."""

from collections.abc import Iterator
from pathlib import Path

import imagecodecs
import numpy as np
import tifffile

TILE_PX = 256


def write_wide_slide(path: Path, side_px: int, packing: str = "jpeg") -> Path:
    """Write a square one-level TIFF whose mean colour falls from left (240) to right (100).

    Args:
        path: Where to write it.
        side_px: Its side in level-0 pixels, a multiple of 256.
        packing: "jpeg" (tiles decoded directly) or "deflate" (read by OpenSlide).
    """
    columns = side_px // TILE_PX
    greys = np.linspace(240, 100, columns)
    rng = np.random.default_rng(1)

    def encode(grey: float) -> bytes:
        pixels = np.clip(
            grey + rng.integers(-8, 9, (TILE_PX // 8, TILE_PX // 8, 3)).repeat(8, 0).repeat(8, 1), 0, 255
        ).astype(np.uint8)
        if packing == "jpeg":
            return bytes(imagecodecs.jpeg8_encode(pixels, level=80, colorspace="rgb", outcolorspace="ycbcr"))
        return bytes(imagecodecs.zlib_encode(pixels, level=1))

    row = [encode(float(grey)) for grey in greys]

    def tiles() -> Iterator[bytes]:
        for _ in range(columns):
            yield from row

    tifffile.imwrite(
        path,
        tiles(),
        shape=(side_px, side_px, 3),
        dtype=np.uint8,
        tile=(TILE_PX, TILE_PX),
        compression="jpeg" if packing == "jpeg" else "deflate",
        photometric="ycbcr" if packing == "jpeg" else "rgb",
        subsampling=(2, 2) if packing == "jpeg" else None,
        resolution=(20000, 20000),
        resolutionunit="CENTIMETER",
    )
    return path
