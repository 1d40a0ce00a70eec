"""Open a slide with the reader that suits it, and see any box at any magnification as uint8 RGB."""

import math
import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from types import TracebackType
from typing import Any, Self
from urllib.parse import unquote, urlsplit

import numpy as np

from pathnav.errors import RoiError, SlideError
from pathnav.geometry import Box
from pathnav.slide.files import check_complete, fingerprint, is_url
from pathnav.slide.metadata import GENERIC, Properties
from pathnav.slide.openslide_reader import OpenSlideReader
from pathnav.slide.pixels import Pair, Rgb
from pathnav.slide.reader import Reader, reader_errors, reason_of
from pathnav.slide.sampling import LEVEL_TOLERANCE, Raster, choose_level, level_downsamples, sample
from pathnav.slide.scale import SCALE_OPTIONS, UM_AT_1X, check_user_scale, find_scale
from pathnav.slide.tiffslide_reader import TiffSlideReader
from pathnav.slide.tile_decoder import decoder_for
from pathnav.slide.tissue import TissueMask, find_tissue

READERS = ("openslide", "tiffslide")

_inherited: list[dict[int, Reader]] = []  # readers of a parent process: closing them in the child could wait for ever


Arguments = tuple[str, float | None, float | None, str | None]
"""What a slide was opened with, in the order of `open_slide`."""


@dataclass(frozen=True, slots=True, eq=False)
class Reading:
    """Pixels and how they came about.

    Args:
        rgb: uint8 RGB, shape (height_px, width_px, 3).
        box: What is really shown: the box asked for, its edges rounded to whole level-0 pixels.
        mpp_um: Micrometres per pixel of `rgb` (x, y); None on a slide without a scale.
        level: The pyramid level that was read.
        level_downsample: Level-0 pixels per pixel of that level (x, y).
        upsampled: 1.0, or the factor by which native pixels were enlarged (where more than 2 %).
        failed_share: Share of the box whose pixels could not be decoded; white there.
        outside_share: Share of the box outside the scanned area; white there.
    """

    rgb: Rgb
    box: Box
    mpp_um: Pair | None
    level: int
    level_downsample: Pair
    upsampled: float
    failed_share: float
    outside_share: float

    @property
    def magnification(self) -> float:
        """10 / um per pixel of `rgb`, geometric mean of the axes.

        Raises:
            SlideError: If the slide has no scale.
        """
        if self.mpp_um is None:
            raise SlideError(f"the slide's micrometres per pixel are not known; give {SCALE_OPTIONS}")
        return UM_AT_1X / math.sqrt(self.mpp_um[0] * self.mpp_um[1])


class Slide:
    """An open whole-slide image; made by `open_slide`, closed by `close` or at the end of a `with` block.

    Threads may share it, as long as it is closed after their last read. It pickles as the arguments it was opened
    with, and opens its file anew in a forked child. Boxes are level-0 pixels of the slide's own plane and may reach
    beyond it.
    """

    def __init__(self, arguments: Arguments, reopen: Callable[[], Reader]) -> None:
        self._arguments, self._reopen, self._is_closed = arguments, reopen, False
        reader = reopen()
        self._readers = {os.getpid(): reader}
        self.path = arguments[0]
        self.reader = reader.name
        self.level_dimensions = reader.level_dimensions
        self.level_downsamples = level_downsamples(reader.level_dimensions)
        self.width, self.height = reader.level_dimensions[0]
        known = Properties(reader.properties)
        scale = find_scale(known, self.width, self.height, *arguments[1:3])
        self.bounds, warnings = known.scanned(Box(0, 0, self.width, self.height))
        self.format = known.format
        self.warnings = scale.warnings + warnings
        self.is_phantom = known.is_phantom
        self.objective_power = scale.objective_power
        self.mpp_source = scale.source
        self._mpp_um = scale.mpp_um

    @property
    def has_mpp(self) -> bool:
        """Whether the slide has a physical scale."""
        return self._mpp_um is not None

    @property
    def mpp_um(self) -> Pair:
        """Micrometres per level-0 pixel (x, y).

        Raises:
            SlideError: If they are not known.
        """
        if self._mpp_um is None:
            raise SlideError(f"{self.path} does not say how many micrometres a pixel is; give {SCALE_OPTIONS}")
        return self._mpp_um

    @property
    def native_magnification(self) -> float:
        """10 / um per level-0 pixel, geometric mean of the axes."""
        return UM_AT_1X / math.sqrt(self.mpp_um[0] * self.mpp_um[1])

    @cached_property
    def fingerprint(self) -> str:
        """The content's name, the same for every copy of the slide."""
        return fingerprint(self.path)

    def downsample(self, magnification: float) -> Pair:
        """Return level-0 pixels per pixel at a magnification (x, y); below 1 for more than native."""
        if not (math.isfinite(magnification) and magnification > 0):
            raise RoiError(f"magnification must be a positive number, got {magnification}")
        return UM_AT_1X / magnification / self.mpp_um[0], UM_AT_1X / magnification / self.mpp_um[1]

    def area_mm2(self, square_px: float) -> float:
        """Return an area in mm2, given in square level-0 pixels."""
        return square_px * self.mpp_um[0] * self.mpp_um[1] / 1e6

    def reading(self, box: Box, *, magnification: float | None = None, max_side_px: int | None = None) -> Reading:
        """Return a box's pixels with the record of how they came about.

        Args:
            box: Level-0 pixels; its edges are rounded to whole ones. Parts beyond the plane are white.
            magnification: Show it at this magnification; native pixels are enlarged where it is above native.
            max_side_px: Or: show it so that its long side has at most so many pixels, never enlarged.

        Raises:
            RoiError: If the box is empty, or not exactly one of the two is given.
            SlideError: If a magnification is asked for on a slide without a scale.
        """
        whole = _whole_pixels(box)
        raster = self._raster(whole, magnification, max_side_px)
        level = choose_level(self.level_downsamples, raster.step)
        found = sample(self._reader_of_this_process(), level, raster)
        mpp = self._mpp_um
        factor = 1 / math.sqrt(raster.step[0] * raster.step[1])
        return Reading(
            rgb=found.rgb,
            box=whole,
            mpp_um=None if mpp is None else (mpp[0] * raster.step[0], mpp[1] * raster.step[1]),
            level=level,
            level_downsample=self.level_downsamples[level],
            upsampled=factor if factor > 1 + LEVEL_TOLERANCE else 1.0,
            failed_share=found.failed_share,
            outside_share=1 - whole.intersection(self.bounds).area / whole.area,
        )

    def read(self, box: Box, *, magnification: float | None = None, max_side_px: int | None = None) -> Rgb:
        """Return `reading(...).rgb`: uint8 RGB, shape (height_px, width_px, 3)."""
        return self.reading(box, magnification=magnification, max_side_px=max_side_px).rgb

    def overview(self, region: Box | None = None, max_side_px: int = 1024) -> Rgb:
        """Return a region (default: the scanned area) with at most so many pixels on its long side, as uint8 RGB."""
        return self.read(self.bounds if region is None else region, max_side_px=max_side_px)

    def tissue_mask(self, region: Box | None = None, max_side_px: int = 1024) -> TissueMask:
        """Return where a region (default: the scanned area) holds tissue, found on its overview."""
        found = self.reading(self.bounds if region is None else region, max_side_px=max_side_px)
        height_px, width_px = found.rgb.shape[:2]
        scanned_rows = _inside(found.box.y, found.box.bottom, height_px, self.bounds.y, self.bounds.bottom)
        scanned_columns = _inside(found.box.x, found.box.right, width_px, self.bounds.x, self.bounds.right)
        return find_tissue(found.rgb, found.box, np.logical_and.outer(scanned_rows, scanned_columns))

    def close(self) -> None:
        """Release the file; reading afterwards raises SlideError. Closing twice does no harm."""
        self._is_closed = True
        reader = self._readers.pop(os.getpid(), None)
        if reader is not None:
            reader.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __reduce__(self) -> tuple[Any, ...]:
        return open_slide, self._arguments

    def __repr__(self) -> str:
        return f"Slide({self.path!r}, {self.width} x {self.height}, {len(self.level_dimensions)} levels, {self.reader})"

    def _reader_of_this_process(self) -> Reader:
        """Return the reader, opened anew after a fork: native handles keep mutexes and positions of their process."""
        if self._is_closed:
            raise SlideError(f"{self.path} has been closed; open it again")
        pid = os.getpid()
        if pid not in self._readers:
            _inherited.append(dict(self._readers))
            self._readers.setdefault(pid, self._reopen())
        return self._readers[pid]

    def _raster(self, box: Box, magnification: float | None, max_side_px: int | None) -> Raster:
        if (magnification is None) == (max_side_px is None):
            raise RoiError("give either magnification or max_side_px, not both and not neither")
        if magnification is not None:
            step = self.downsample(magnification)
        else:
            if max_side_px is None or max_side_px < 1:
                raise RoiError(f"max_side_px must be at least 1, got {max_side_px}")
            step = (max(1.0, max(box.width, box.height) / max_side_px),) * 2
        return Raster(box, max(1, round(box.width / step[0])), max(1, round(box.height / step[1])))


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
    where = _local(os.fspath(path))
    if reader is not None and reader not in READERS:
        raise SlideError(f"reader must be one of {', '.join(READERS)}, got {reader!r}")
    check_user_scale(where, mpp, objective_power)
    has_sub_images = check_complete(where)
    return Slide((where, mpp, objective_power, reader), partial(_open_reader, where, reader, has_sub_images))


def _local(path: str) -> str:
    """Return the local path of a file:// URL; anything else as it is."""
    parts = urlsplit(path)
    return unquote(parts.path) if parts.scheme == "file" and parts.netloc in ("", "localhost") else path


def _open_reader(path: str, wanted: str | None, has_sub_images: bool) -> Reader:
    if wanted == "tiffslide" or (wanted is None and is_url(path)):
        return _attempt(path, [TiffSlideReader])
    if wanted == "openslide":
        return _attempt(path, [_fast_openslide])
    return _attempt(path, [_complete_openslide if has_sub_images else _fast_openslide, TiffSlideReader])


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
    if opened.properties.get("openslide.vendor") != GENERIC:
        return opened
    refusals: tuple[type[Exception], ...] = (SlideError, *reader_errors())
    try:
        other = TiffSlideReader(path)
    except refusals:
        return opened
    better, worse = (other, opened) if len(other.level_dimensions) > len(opened.level_dimensions) else (opened, other)
    worse.close()
    return better


def _whole_pixels(box: Box) -> Box:
    """Return the box with its edges rounded to whole pixels, at least one pixel a side."""
    if box.is_empty:
        raise RoiError(f"a box to look at must have an area, got {box.as_list()}")
    left, top = math.floor(box.x + 0.5), math.floor(box.y + 0.5)
    right, bottom = math.floor(box.right + 0.5), math.floor(box.bottom + 0.5)
    return Box(left, top, max(1, right - left), max(1, bottom - top))


def _inside(start: float, end: float, pixels: int, low: float, high: float) -> "np.ndarray[Any, np.dtype[np.bool_]]":
    """Return which pixels of an axis from start to end have their centre between low and high."""
    centres = start + (np.arange(pixels) + 0.5) * (end - start) / pixels
    return np.asarray((centres >= low) & (centres < high))
