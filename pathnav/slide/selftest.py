"""Check the slide libraries: write a small slide, read it with each of them, compare the pixels."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from pathnav.errors import PathnavError
from pathnav.geometry import Box
from pathnav.slide.open import READERS, open_slide
from pathnav.slide.reader import Rgb

SIDE_PX, TILE_PX = 512, 128
COMPRESSIONS = ("adobe_deflate", "jpeg")
MOST_OFF = {"adobe_deflate": 0, "jpeg": 12}
"""Grey levels that a reader may differ from what was written; JPEG loses some."""


@dataclass(frozen=True, slots=True)
class Read:
    """How one library read one kind of slide.

    Args:
        reader: "openslide" or "tiffslide".
        compression: Of the tiles.
        off: The largest difference to what was written, grey levels; None where it could not be read.
        fault: Why it could not be read or written.
    """

    reader: str
    compression: str
    off: int | None
    fault: str | None = None

    @property
    def is_right(self) -> bool:
        """Whether the pixels are those that were written."""
        return self.off is not None and self.off <= MOST_OFF[self.compression]


def read_back(folder: Path) -> list[Read]:
    """Return how each library reads a tiled TIFF of two levels; all files lie in the given folder.

    Args:
        folder: An empty folder; files stay there.
    """
    found = []
    for compression in COMPRESSIONS:
        path, written = folder / f"{compression}.tif", _gradients()
        try:
            _write(path, written, compression)
        except (OSError, ValueError, ImportError, KeyError) as error:
            fault = f"it cannot be written: {error}"
            found += [Read(reader, compression, None, fault) for reader in READERS]
            continue
        found += [_read(path, reader, compression, written) for reader in READERS]
    return found


def library_version() -> str:
    """Return the version of the OpenSlide library itself, which openslide-bin brings."""
    import openslide

    return str(openslide.__library_version__)


def _gradients() -> Rgb:
    """Return pixels that tell their place, smooth enough for JPEG; uint8, shape (SIDE_PX, SIDE_PX, 3)."""
    ramp = np.linspace(20, 235, SIDE_PX)
    planes = [np.broadcast_to(ramp, (SIDE_PX, SIDE_PX)), np.broadcast_to(ramp[:, None], (SIDE_PX, SIDE_PX))]
    planes.append((planes[0] + planes[1]) / 2)
    return np.stack(planes, axis=-1).astype(np.uint8)


def _write(path: Path, rgb: Rgb, compression: str) -> None:
    import tifffile

    options: dict[str, Any] = {"tile": (TILE_PX, TILE_PX), "photometric": "rgb", "compression": compression}
    with tifffile.TiffWriter(path) as file:
        file.write(rgb, **options)
        file.write(rgb[::2, ::2], subfiletype=1, **options)


def _read(path: Path, reader: str, compression: str, written: Rgb) -> Read:
    try:
        with open_slide(path, mpp=0.5, reader=reader) as slide:
            shown = slide.read(Box(0, 0, SIDE_PX, SIDE_PX), max_side_px=SIDE_PX)
    except (PathnavError, ImportError, OSError) as error:
        return Read(reader, compression, None, str(error))
    return Read(reader, compression, int(np.abs(shown.astype(int) - written.astype(int)).max()))
