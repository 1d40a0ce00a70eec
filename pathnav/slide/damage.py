"""Damaged tiles inside a complete file: found by how compressed tiles begin and end, without decoding any.

Every compression that scanners use begins with a signature, and JPEG and JPEG 2000 end with a marker; storage that lost
a block gives zeros instead.
"""

from dataclasses import dataclass
from io import RawIOBase
from pathlib import Path

import numpy as np

from pathnav.errors import SlideError
from pathnav.slide.integrity import has_tiff_layout, is_url
from pathnav.slide.tiff_layout import Directory, read_directories

MAX_TILES = 50_000  # looked at in each image; of larger ones every n-th tile
HEAD_BYTES, TAIL_BYTES = 4, 64

_JPEG_2000 = (b"\xff\x4f\xff\x51", b"\0\0\0\x0c")  # a bare code stream, or the JP2 box around it
_ZLIB = tuple(bytes([0x08 | window << 4]) for window in range(8))
_SIGNATURES = {
    5: (b"\x80",),  # LZW
    7: (b"\xff\xd8",),  # JPEG
    8: _ZLIB,
    32946: _ZLIB,
    33003: _JPEG_2000,
    33004: _JPEG_2000,
    33005: _JPEG_2000,
    34712: _JPEG_2000,
    50000: (b"\x28\xb5\x2f\xfd",),  # Zstandard
    50001: (b"RIFF",),  # WebP
}
_ENDS_WITH_MARKER = frozenset({7, 33003, 33004, 33005, 34712})


@dataclass(frozen=True, slots=True)
class Damage:
    """The damaged tiles of one image of a file.

    Args:
        width: Of the image, in its own pixels; a level of the slide.
        height: Likewise.
        checked: Tiles that were looked at.
        damaged: Of these, those that cannot be decoded.
        failed_share: The share of the checked area that they cover.
    """

    width: int
    height: int
    checked: int
    damaged: int
    failed_share: float

    @property
    def warning(self) -> str:
        """One sentence for a user."""
        return (
            f"damaged tiles: {self.damaged} of {self.checked} in its {self.width} x {self.height} level "
            f"({self.failed_share:.2%} of the area), shown white"
        )


def find_damage(path: str) -> tuple[Damage, ...]:
    """Return the images of a complete TIFF slide that have damaged tiles, level 0 first.

    URLs and formats with a layout of their own (DICOM, MIRAX) are not looked at: empty, as for a file without damage.

    Raises:
        SlideError: If the file cannot be read.
    """
    if is_url(path):
        return ()
    try:
        with Path(path).open("rb", buffering=0) as file:
            if not has_tiff_layout(path, file.read(132)):
                return ()
            found = [_damage_of(file, image) for image in _levels(read_directories(file, path))]
    except OSError as error:
        raise SlideError(f"{path} cannot be read: {error.strerror or error}") from error
    return tuple(damage for damage in found if damage.damaged)


def _levels(images: tuple[Directory, ...]) -> list[Directory]:
    """Return the images that can be levels: the tiled ones (labels and previews are in strips), else the first."""
    tiled = [image for image in images if image.is_tiled]
    return tiled or list(images[:1])


def _damage_of(file: RawIOBase, image: Directory) -> Damage:
    stored = np.flatnonzero(image.byte_counts > 0)  # a tile left out has offset and count 0
    chosen = stored[:: max(1, -(-stored.size // MAX_TILES))]
    if image.compression not in _SIGNATURES:
        chosen = chosen[:0]
    spans = zip(image.offsets[chosen].tolist(), image.byte_counts[chosen].tolist(), strict=True)
    lost = np.array([_is_damaged(file, image.compression, start, count) for start, count in spans], dtype=np.bool_)
    areas = image.tile_areas[chosen]
    share = float(areas[lost].sum() / areas.sum()) if lost.any() else 0.0
    return Damage(image.width, image.height, int(chosen.size), int(lost.sum()), share)


def _is_damaged(file: RawIOBase, compression: int, start: int, count: int) -> bool:
    file.seek(start)
    if not (file.read(HEAD_BYTES) or b"").startswith(_SIGNATURES[compression]):
        return True
    if compression not in _ENDS_WITH_MARKER or count < HEAD_BYTES + TAIL_BYTES:
        return False
    file.seek(start + count - TAIL_BYTES)
    return not any(file.read(TAIL_BYTES) or b"")
