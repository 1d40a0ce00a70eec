"""Opening a slide: which reader, and what goes wrong, in one sentence."""

import os
from collections.abc import Callable
from functools import partial
from urllib.parse import unquote, urlsplit

from pathnav.errors import SlideError
from pathnav.slide.integrity import check_complete, is_url
from pathnav.slide.metadata import read_metadata
from pathnav.slide.openslide_reader import OpenSlideReader
from pathnav.slide.reader import Reader, reader_errors, reason_of
from pathnav.slide.slide import Slide, SlideArguments
from pathnav.slide.tiffslide_reader import TiffSlideReader
from pathnav.slide.tile_decoder import decoder_for

READERS = ("openslide", "tiffslide")


def open_slide(
    path: str | os.PathLike[str],
    mpp: float | None = None,
    objective_power: float | None = None,
    reader: str | None = None,
) -> Slide:
    """Open a slide.

    Args:
        path: The slide's file, or a URL that fsspec can open.
        mpp: Micrometres per level-0 pixel; wins over what the file says.
        objective_power: The objective's power; counts where the file has no micrometres per pixel.
        reader: "openslide" or "tiffslide"; None tries OpenSlide first, TiffSlide where it refuses or sees fewer levels.

    Raises:
        SlideError: If the file is missing, not a slide, damaged as a whole, or an argument is out of range.
    """
    return reopen_slide(SlideArguments(_local(os.fspath(path)), mpp, objective_power, reader))


def reopen_slide(arguments: SlideArguments) -> Slide:
    """Open a slide from the arguments that a pickled one carries."""
    path = arguments.path
    if arguments.reader is not None and arguments.reader not in READERS:
        raise SlideError(f"reader must be one of {', '.join(READERS)}, got {arguments.reader!r}")
    check_complete(path)
    reopen = partial(_open_reader, path, arguments.reader)
    opened = reopen()
    try:
        metadata = read_metadata(
            path,
            opened.properties,
            *opened.level_dimensions[0],
            mpp=arguments.mpp,
            objective_power=arguments.objective_power,
        )
    except SlideError:
        opened.close()
        raise
    return Slide(arguments, opened, reopen, metadata)


def _local(path: str) -> str:
    """Return the local path of a file:// URL; anything else as it is."""
    parts = urlsplit(path)
    return unquote(parts.path) if parts.scheme == "file" and parts.netloc in ("", "localhost") else path


def _open_reader(path: str, wanted: str | None) -> Reader:
    if wanted == "tiffslide" or (wanted is None and is_url(path)):
        return _attempt(path, [TiffSlideReader])
    if wanted == "openslide":
        return _attempt(path, [_fast_openslide])
    return _attempt(path, [_complete_openslide, TiffSlideReader])


def _attempt(path: str, kinds: list[Callable[[str], Reader]]) -> Reader:
    """Return the first reader that opens the file; otherwise raise with every reader's reason."""
    reasons = []
    for kind in kinds:
        try:
            return kind(path)
        except SlideError:
            raise
        except reader_errors() as error:
            reasons.append(reason_of(error))
    raise SlideError(f"{path} cannot be opened as a slide: {'; '.join(dict.fromkeys(reasons))}")


def _fast_openslide(path: str) -> Reader:
    """Open a slide with OpenSlide, and decode its tiles directly where that is proved to give the same pixels."""
    opened = OpenSlideReader(path)
    decoder = decoder_for(path, opened)
    if decoder is None:
        return opened
    opened.close()
    return decoder


def _complete_openslide(path: str) -> Reader:
    """Open a slide with OpenSlide, or with TiffSlide where that sees more levels (those kept as sub-images)."""
    opened = _fast_openslide(path)
    if opened.properties.get("openslide.vendor") != "generic-tiff" or not _has_sub_images(path):
        return opened
    refusals: tuple[type[Exception], ...] = (SlideError, *reader_errors())
    try:
        other = TiffSlideReader(path)
    except refusals:
        return opened
    better, worse = (other, opened) if len(other.level_dimensions) > len(opened.level_dimensions) else (opened, other)
    worse.close()
    return better


def _has_sub_images(path: str) -> bool:
    """Return whether a TIFF keeps images inside its first page; asked first, since TiffSlide costs 0.3 s to import."""
    import tifffile

    try:
        with tifffile.TiffFile(path) as file:
            return bool(file.pages.first.subifds)
    except reader_errors():
        return False
