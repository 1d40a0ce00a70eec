"""A slide of pink tissue with three blue squares, one for each magnification: what the planted network looks for."""

from pathlib import Path

import numpy as np
import tifffile

from pathnav.geometry import Box

SIDE_PX = 4096
MPP_UM = 0.25
PINK, BLUE = (225, 150, 190), (120, 80, 170)
PLANTED = {2.5: Box(2048, 512, 1536, 1536), 10.0: Box(640, 2880, 512, 512), 40.0: Box(3008, 3392, 128, 128)}
REGIONS = {2.5: Box(0, 0, SIDE_PX, SIDE_PX), 10.0: Box(0, 2048, 2048, 2048), 40.0: Box(2560, 3072, 1024, 1024)}
"""Search regions, each with one square of a window's size."""


def write_blue_slide(path: Path) -> Path:
    """Write it as a tiled JPEG pyramid of three levels."""
    shades = np.random.default_rng(0).integers(-12, 12, (SIDE_PX // 16, SIDE_PX // 16, 3))
    pixels = np.empty((SIDE_PX, SIDE_PX, 3), np.int16)
    pixels[:] = PINK
    for box in PLANTED.values():
        x, y, width, height = (int(number) for number in box.as_list())
        pixels[y : y + height, x : x + width] = BLUE
    pixels += np.repeat(np.repeat(shades, 16, axis=0), 16, axis=1).astype(np.int16)
    whole = np.clip(pixels, 0, 255).astype(np.uint8)
    with tifffile.TiffWriter(path) as writer:
        for level, step in enumerate((1, 4, 16)):
            side = SIDE_PX // step
            cells = whole.reshape(side, step, side, step, 3).mean(axis=(1, 3)).astype(np.uint8)
            kind = int(level > 0)
            writer.write(cells, tile=(256, 256), compression="jpeg", photometric="rgb", subfiletype=kind, metadata=None)
    return path
