"""Is the file on disk whole? Checked before any reader opens it, from the tables alone.

OpenSlide refuses a slide that was cut short, TiffSlide may open it and fail near its end or lose its last level in
silence; so the file's own tables decide, whichever reader would open it.
"""

from pathlib import Path

import numpy as np

from pathnav.errors import SlideError
from pathnav.slide.tiff_layout import Directory, cut_short, is_tiff, read_directories

TIFF_SUFFIXES = frozenset({".svs", ".tif", ".tiff", ".btf", ".tf2", ".tf8", ".ndpi", ".scn", ".bif", ".gtif"})

# Formats of more than one file, or with a TIFF header but a layout of their own: left to their reader.
OWN_LAYOUT_SUFFIXES = frozenset({".dcm", ".vsi", ".mrxs", ".vms", ".vmu", ".svslide", ".czi"})


def is_url(path: str) -> bool:
    """Return whether a path is a URL (for the reader to fetch) rather than a local file."""
    return "://" in path


def check_complete(path: str) -> None:
    """Check that a slide's file exists and holds every byte that its own tables name; costs milliseconds on 2 GB.

    URLs are not looked at. Of formats with their own layout (DICOM, MIRAX, VSI), only the file's presence is checked.

    Raises:
        SlideError: If the file is missing, a directory, empty, not what its suffix says, or cut short.
    """
    if is_url(path):
        return
    _check_file(Path(path))
    try:
        with Path(path).open("rb") as file:
            if has_tiff_layout(path, file.read(132)):
                for directory in read_directories(file, path):
                    _check_tiles(path, directory, Path(path).stat().st_size)
    except OSError as error:
        raise SlideError(f"{path} cannot be read: {error.strerror or error}") from error


def _check_file(path: Path) -> None:
    if path.is_dir():
        raise SlideError(f"{path} is a directory; expected a slide file{_hint(path)}")
    if not path.exists():
        raise SlideError(f"{path} does not exist; expected a slide file")
    if not path.is_file():
        raise SlideError(f"{path} is not a regular file; expected a slide file")
    if path.stat().st_size == 0:
        raise SlideError(f"{path} is empty (0 bytes); expected a slide file, so copy it again from its source")


def _hint(folder: Path) -> str:
    """Return what to name instead of a folder that belongs to a slide."""
    mirax = folder.with_suffix(".mrxs") if folder.name else folder  # "." and "/" have no name to change
    if mirax.is_file():
        return f", here {mirax}"
    instance = min(folder.glob("*.dcm"), default=None)
    return f", such as {instance} for the DICOM slide in it" if instance else ""


def has_tiff_layout(path: str, head: bytes) -> bool:
    """Return whether a file that begins with these (at least 132) bytes keeps its tiles as TIFF says.

    Raises:
        SlideError: If its suffix promises a TIFF and it is none.
    """
    suffix = Path(path).suffix.lower()
    if suffix in OWN_LAYOUT_SUFFIXES or head[128:132] == b"DICM":
        return False
    if is_tiff(head):
        return True
    if suffix in TIFF_SUFFIXES:
        raise SlideError(
            f"{path} is not a slide: a {suffix} file begins with II or MM, this one with {head[:8]!r}; "
            "check what was saved under this name"
        )
    return False


def _check_tiles(path: str, directory: Directory, file_bytes: int) -> None:
    room = np.uint64(file_bytes) - np.minimum(directory.offsets, np.uint64(file_bytes))
    lost = np.flatnonzero((directory.byte_counts > room) | (directory.offsets > file_bytes))
    if lost.size:
        last = int(lost[-1])
        noun = "tile" if directory.is_tiled else "strip"
        what = f"{noun} {last} of its {directory.width} x {directory.height} image"
        raise cut_short(path, what, int(directory.offsets[last]) + int(directory.byte_counts[last]), file_bytes)
