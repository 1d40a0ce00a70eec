"""The files of a slide: are they whole, which tiles are damaged, and what names their content."""

import hashlib
import logging
import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from io import RawIOBase
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np
from numpy.typing import NDArray

from pathnav.errors import SlideError
from pathnav.slide.reader import reader_errors, reason_of

TIFF_SUFFIXES = frozenset({".svs", ".tif", ".tiff", ".btf", ".tf2", ".tf8", ".ndpi", ".scn", ".bif", ".gtif"})

# Formats of more than one file, or with a TIFF header but a layout of their own: left to their reader.
OWN_LAYOUT_SUFFIXES = frozenset({".dcm", ".vsi", ".mrxs", ".vms", ".vmu", ".svslide", ".czi"})

MAX_TILES = 50_000  # looked at in each image for damage; of larger ones every n-th tile
HEAD_BYTES, TAIL_BYTES = 4, 64  # of a tile

END_BYTES = 2**20  # at each end of a file, to name its content: files of up to 2 MiB are hashed whole
DICOM_HEAD_BYTES = 64 * 2**10  # a series stood within the first 2 kB of every file seen; sequences may push it on
_VERSION = b"pathnav-fingerprint-2"  # changes whenever the rule does, so that old and new never agree by accident

_COMPRESSION, _ROWS_PER_STRIP, _JPEG_OFFSET = 259, 278, 513
_STRIPS, _TILES = (273, 279), (324, 325)  # the tags that hold offsets and byte counts

# Every compression that scanners use begins with a signature, and JPEG and JPEG 2000 end with a marker; storage that
# lost a block gives zeros instead.
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

_silent = logging.NullHandler()


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


@dataclass(frozen=True, slots=True, eq=False)
class _Image:
    """One image of a TIFF file: offsets and byte counts are uint64, shape (n,), row by row, 0 for a tile left out.

    Args:
        is_sub_image: Whether it is kept inside a page.
        is_tiled: Whether it is cut into tiles; otherwise into strips.
        tile: Width and height of a tile or strip.
    """

    width: int
    height: int
    compression: int
    is_sub_image: bool
    is_tiled: bool
    tile: tuple[int, int]
    offsets: NDArray[np.uint64]
    byte_counts: NDArray[np.uint64]

    @property
    def tile_areas(self) -> NDArray[np.int64]:
        """The pixels of the image that each tile holds: int64, shape (n,), 0 for those beyond it (further planes)."""
        row, column = np.divmod(np.arange(self.offsets.size), max(1, -(-self.width // max(1, self.tile[0]))))
        across = np.clip(self.width - column * self.tile[0], 0, self.tile[0])
        down = np.clip(self.height - row * self.tile[1], 0, self.tile[1])
        return np.asarray(across * down, dtype=np.int64)


def is_url(path: str) -> bool:
    """Return whether a path is a URL (for the reader to fetch) rather than a local file."""
    return "://" in path


def check_complete(path: str) -> bool:
    """Check that a slide's file exists and holds every byte that its own tables name; costs milliseconds on 2 GB.

    OpenSlide refuses a slide that was cut short, TiffSlide may open it and fail near its end or lose its last level in
    silence; so the file's own tables decide, whichever reader would open it. URLs are not looked at. Of formats with
    their own layout (DICOM, MIRAX, VSI), only the file's presence is checked.

    Returns: Whether a page of a TIFF file keeps images inside it, which OpenSlide does not see.

    Raises:
        SlideError: If the file is missing, a directory, empty, not what its suffix says, or cut short.
    """
    if is_url(path):
        return False
    file_bytes = _size_of(Path(path))
    images = _tiff_images(path)
    for image in images:
        room = np.uint64(file_bytes) - np.minimum(image.offsets, np.uint64(file_bytes))
        lost = np.flatnonzero((image.byte_counts > room) | (image.offsets > file_bytes))
        if lost.size:
            what = f"{'tile' if image.is_tiled else 'strip'} {lost[-1]} of its {image.width} x {image.height} image"
            raise _cut_short(path, f"{what} ends beyond its last byte, {file_bytes}")
    return any(image.is_sub_image for image in images)


def find_damage(path: str) -> tuple[Damage, ...]:
    """Return the images of a complete TIFF slide that have damaged tiles, level 0 first, without decoding any.

    URLs and formats with a layout of their own (DICOM, MIRAX) are not looked at: empty, as for a file without damage.

    Raises:
        SlideError: If the file cannot be read.
    """
    if is_url(path):
        return ()
    images = _tiff_images(path)
    levels = [image for image in images if image.is_tiled] or images[:1]  # labels and previews are in strips
    try:
        with Path(path).open("rb", buffering=0) as file:
            found = [_damage_of(file, image) for image in levels]
    except OSError as error:
        raise _not_read(path, error) from error
    return tuple(damage for damage in found if damage.damaged)


def fingerprint(path: str) -> str:
    """Return a name for a slide's content: 64 hexadecimal digits, the same for every copy and every file of the slide.

    OpenSlide's `quickhash-1` covers the smallest level and what is written about the image, but not the scale and no
    other level, so mpp and size stand beside it. Where OpenSlide gives none, and for slides of several files (MIRAX,
    DICOM), the size and both ends of each file count instead; so it is for a URL.

    Raises:
        SlideError: If a file that belongs to the slide cannot be read.
    """
    try:
        known = {} if is_url(path) else _openslide_properties(path)
        quickhash = known.get("openslide.quickhash-1")
        if quickhash is None or known["openslide.vendor"] in ("mirax", "dicom"):
            parts = sorted(_digest_of_ends(file) for file in _slide_files(path, known))
        else:
            words = quickhash, known.get("openslide.mpp-x"), known.get("openslide.mpp-y"), Path(path).stat().st_size
            parts = [repr(words).encode()]
    except OSError as error:
        raise _not_read(path, error) from error
    return hashlib.sha256(_VERSION + b"".join(parts)).hexdigest()


def _size_of(path: Path) -> int:
    """Return the size of a file in bytes; raise where it cannot be a slide's."""
    if path.is_dir():
        raise SlideError(f"{path} is a directory; expected a slide file{_hint(path)}")
    if not path.exists():
        raise SlideError(f"{path} does not exist; expected a slide file")
    if not path.is_file():
        raise SlideError(f"{path} is not a regular file; expected a slide file")
    file_bytes = path.stat().st_size
    if file_bytes == 0:
        raise SlideError(f"{path} is empty (0 bytes); expected a slide file, so copy it again from its source")
    return file_bytes


def _hint(folder: Path) -> str:
    """Return what to name instead of a folder that belongs to a slide."""
    mirax = folder.with_suffix(".mrxs") if folder.name else folder  # "." and "/" have no name to change
    if mirax.is_file():
        return f", here {mirax}"
    instance = min(folder.glob("*.dcm"), default=None)
    return f", such as {instance} for the DICOM slide in it" if instance else ""


def _cut_short(path: str, what: str) -> SlideError:
    return SlideError(f"{path} is cut short or damaged: {what}; copy it again from its source")


def _not_read(path: str, error: OSError) -> SlideError:
    return SlideError(f"{path} cannot be read: {error.strerror or error}")


def _tiff_images(path: str) -> list[_Image]:
    """Return the images of a TIFF file, each followed by its sub-images; none where its layout is not TIFF's.

    Raises:
        SlideError: If its suffix promises a TIFF and it is none, or if a directory or table lies beyond its end.
    """
    import tifffile

    try:
        with Path(path).open("rb") as file:
            head = file.read(132)
    except OSError as error:
        raise _not_read(path, error) from error
    suffix = Path(path).suffix.lower()
    if suffix in OWN_LAYOUT_SUFFIXES or head[128:] == b"DICM":
        return []
    if head[:4] not in (b"II*\0", b"MM\0*", b"II+\0", b"MM\0+"):
        if suffix in TIFF_SUFFIXES:
            raise SlideError(
                f"{path} is not a slide: a {suffix} file begins with II or MM, this one with {head[:8]!r}; "
                "check what was saved under this name"
            )
        return []
    logging.getLogger("tifffile").addHandler(_silent)  # what it would print about a broken file is said in the error
    try:
        with tifffile.TiffFile(path) as file:
            return list(_images(file))
    except reader_errors() as error:
        raise _cut_short(path, f"its tables cannot be read, {reason_of(error)}") from error


def _images(file: Any) -> Iterator[_Image]:
    """Yield the images of a `TiffFile`; where a chain of pages breaks, tifffile logs it and goes on without the rest.

    Raises:
        ValueError: If the chain or a table breaks.
    """
    for page in file.pages:
        yield _image(page, is_sub_image=False)
        yield from (_image(sub, is_sub_image=True) for sub in page.pages or ())
        if page.subifds and len(page.pages) < len(page.subifds):
            raise ValueError("a sub-image lies beyond its end")
    file.filehandle.seek(file.pages.next_page_offset)
    if struct.unpack(file.tiff.offsetformat, file.filehandle.read(file.tiff.offsetsize)) != (0,):
        raise ValueError(f"its chain of pages breaks off after {len(file.pages)}")


def _image(page: Any, is_sub_image: bool) -> _Image:
    is_tiled = _TILES[0] in page.tags
    # The tags, not tifffile's tables: of NDPI it makes tiles that begin with no signature.
    tables = (page.tags.valueof(tag, ()) for tag in (_TILES if is_tiled else _STRIPS))
    offsets, byte_counts = (np.atleast_1d(np.asarray(table, np.uint64)) for table in tables)
    width, height = page.imagewidth, page.imagelength
    if width and _JPEG_OFFSET not in page.tags and not 0 < offsets.size == byte_counts.size:
        raise ValueError(f"its {width} x {height} image has {offsets.size} offsets and {byte_counts.size} byte counts")
    tile = page.tilewidth, page.tilelength
    if not is_tiled:
        tile = width, min(height, page.tags.valueof(_ROWS_PER_STRIP, height))
    compression = int(page.tags.valueof(_COMPRESSION, 1))
    return _Image(width, height, compression, is_sub_image, is_tiled, tile, offsets, byte_counts)


def _damage_of(file: RawIOBase, image: _Image) -> Damage:
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


def _openslide_properties(path: str) -> dict[str, str]:
    """Return what OpenSlide says about a local slide; nothing where it does not open it."""
    import openslide

    try:
        with openslide.OpenSlide(path) as slide:
            return dict(slide.properties)
    except openslide.OpenSlideError:
        return {}


def _slide_files(path: str, properties: dict[str, str]) -> list[str]:
    """Return the files that hold a slide's pixels: of DICOM the instances of its series, of MIRAX its index and data.

    The .mrxs file itself is only a preview and may be replaced by an empty file.
    """
    local = Path(path)
    if properties.get("openslide.vendor") == "mirax":
        folder = local.with_suffix("")
        return [str(file) for file in (folder / "Slidedat.ini", *folder.glob("*.dat"))]
    series = properties.get("dicom.SeriesInstanceUID")
    if series is None:
        return [path]
    return [str(file) for file in local.parent.iterdir() if file.is_file() and _is_instance(file, series)]


def _is_instance(file: Path, series: str) -> bool:
    """Return whether a file is a DICOM instance whose head names a series."""
    with file.open("rb") as opened:
        head = opened.read(DICOM_HEAD_BYTES)
    named = rb"(?<![0-9.])" + re.escape(series.encode()) + rb"(?![0-9.])"
    return head[128:132] == b"DICM" and re.search(named, head) is not None


def _digest_of_ends(path: str) -> bytes:
    """Return the hash of a file's size, its first and its last bytes."""
    with _opened(path) as file:
        file_bytes = file.seek(0, 2)
        digest = hashlib.sha256(str(file_bytes).encode())
        for start in (0, max(END_BYTES, file_bytes - END_BYTES)):
            file.seek(start)
            digest.update(file.read(END_BYTES))
    return digest.digest()


def _opened(path: str) -> BinaryIO:
    if not is_url(path):
        return Path(path).open("rb")
    import fsspec

    return cast(BinaryIO, fsspec.open(path, "rb", block_size=END_BYTES).open())
