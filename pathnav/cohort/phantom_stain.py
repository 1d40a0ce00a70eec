"""The stain of a phantom slide: haematoxylin and eosin planes to RGB by Beer-Lambert."""

import numpy as np
from numpy.typing import NDArray

GLASS = (244, 243, 245)  # RGB of the empty slide under the lamp
# Optical density (red, green, blue) of a plane value of 255; fitted by eye to scanned H&E.
HAEMATOXYLIN = (0.76, 0.92, 0.45)
EOSIN = (0.085, 0.47, 0.255)


def colour_table() -> NDArray[np.uint32]:
    """Return RGB packed as 0x00BBGGRR for each (haematoxylin << 8 | eosin), shape (65536,)."""
    haematoxylin = np.arange(256)[:, None, None] / 255 * np.array(HAEMATOXYLIN)
    eosin = np.arange(256)[None, :, None] / 255 * np.array(EOSIN)
    rgb = np.rint(np.array(GLASS) * 10 ** -(haematoxylin + eosin)).astype(np.uint32)
    packed: NDArray[np.uint32] = rgb[..., 0] | rgb[..., 1] << 8 | rgb[..., 2] << 16
    return np.ascontiguousarray(packed.reshape(-1))


def to_rgb(haematoxylin: NDArray[np.uint8], eosin: NDArray[np.uint8], table: NDArray[np.uint32]) -> NDArray[np.uint8]:
    """Return uint8 RGB, shape (rows, columns, 3), of two stain planes of shape (rows, columns)."""
    index = haematoxylin.astype(np.uint16)
    index <<= 8
    index |= eosin
    packed = np.take(table, index)
    rgb: NDArray[np.uint8] = packed.view(np.uint8).reshape(*index.shape, 4)[..., :3]
    return rgb
