"""A small slide of which every test knows where the tissue is: purple blots on white glass."""

import io
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path

import numpy as np
import tifffile

from pathnav.geometry import Box

TISSUE_RGB = (170, 90, 160)


def write_blot_slide(path: Path, width: int, height: int, blots: Iterable[Box]) -> Path:
    """Write a tiled one-level TIFF with blots of tissue; it has no physical scale of its own."""
    path.write_bytes(_blot_file(width, height, tuple(blots)))
    return path


@lru_cache(maxsize=16)
def _blot_file(width: int, height: int, blots: tuple[Box, ...]) -> bytes:
    rgb = np.full((height, width, 3), 250, dtype=np.uint8)
    for blot in blots:
        left, top, right, bottom = (int(edge) for edge in (blot.x, blot.y, blot.right, blot.bottom))
        rgb[top:bottom, left:right] = TISSUE_RGB
        rgb[top:bottom:5, left:right:3] -= 30
    file = io.BytesIO()
    tifffile.imwrite(file, rgb, tile=(256, 256), photometric="rgb", compression="deflate")
    return file.getvalue()
