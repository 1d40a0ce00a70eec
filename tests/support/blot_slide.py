"""A small slide of which every test knows where the tissue is: purple blots on white glass."""

from collections.abc import Iterable
from pathlib import Path

import numpy as np
import tifffile

from pathnav.geometry import Box

TISSUE_RGB = (170, 90, 160)


def write_blot_slide(path: Path, width: int, height: int, blots: Iterable[Box]) -> Path:
    """Write a tiled one-level TIFF with blots of tissue; it has no physical scale of its own."""
    rgb = np.full((height, width, 3), 250, dtype=np.uint8)
    for blot in blots:
        left, top, right, bottom = (int(edge) for edge in (blot.x, blot.y, blot.right, blot.bottom))
        rgb[top:bottom, left:right] = TISSUE_RGB
        rgb[top:bottom:5, left:right:3] -= 30
    tifffile.imwrite(path, rgb, tile=(256, 256), photometric="rgb", compression="deflate")
    return path
