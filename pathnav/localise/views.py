"""What a model is shown: pixels of a box, enlarged where a server would refuse them, with guides, as JPEG."""

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from pathnav.cohort.protocol import JPEG_QUALITY, MIN_IMAGE_SIDE_PX, VIEW_LIMIT_PX
from pathnav.errors import ConfigError
from pathnav.geometry import Box
from pathnav.model.profile import Frame
from pathnav.slide import Reading
from pathnav.slide.pixels import encode_jpeg

Pixels = NDArray[np.uint8]

_TICKS_PER_UNIT = {Frame.UNIT: 1000}
# Haematoxylin and eosin leave no pure green in a brightfield slide, so a tick is never taken for tissue.
GUIDE_COLOUR = (0, 140, 0)
_HALO = (255, 255, 255)
_TICK_PX = 8
_FONT_PX = 13
_LABEL_GAP_PX = 8
# One tick in about so many pixels; a label of six digits is 50 px wide.
_SPACING_PX = (110.0, 80.0)


@dataclass(frozen=True, slots=True)
class ViewSettings:
    """How images are shown; all of it can change an answer, so all of it is in the episode's key.

    Args:
        view_px: Limit of an image's long side in pixels.
        guides: Whether ticks with level-0 coordinates are drawn along the edges.
        jpeg_quality: 1 to 95.
        blank_images: A control: white instead of pixels.
        frame: What the ticks count; that of the endpoint's profile.
    """

    view_px: int = VIEW_LIMIT_PX
    guides: bool = True
    jpeg_quality: int = JPEG_QUALITY
    blank_images: bool = False
    frame: Frame = Frame.LEVEL0

    def __post_init__(self) -> None:
        if self.view_px < MIN_IMAGE_SIDE_PX:
            raise ConfigError(f"view_px must be at least {MIN_IMAGE_SIDE_PX} px, got {self.view_px}")
        if not 1 <= self.jpeg_quality <= 95:
            raise ConfigError(f"jpeg_quality must be 1 to 95, got {self.jpeg_quality}")

    def as_dict(self) -> Mapping[str, Any]:
        """Return the settings as plain JSON."""
        fields = asdict(self)
        if self.frame is Frame.LEVEL0:
            del fields["frame"]  # as in records from before there were frames
        return fields


@dataclass(frozen=True, slots=True)
class View:
    """One image of an episode.

    Args:
        rgb: uint8, shape (height_px, width_px, 3): the pixels alone, neither enlarged nor with guides.
        jpeg: What a model is sent.
        sha256: Name of the JPEG in the record.
        box: Whole level-0 pixels shown.
        magnification: Effective magnification of `rgb`.
        image_size_px: Width and height that the box takes in the JPEG, from its top-left corner.
        padded_size_px: Width and height of the JPEG; larger than `image_size_px` only for slivers.
        enlarged: Whole factor by which `rgb` was enlarged for the JPEG.
        failed_share: Share of the box whose pixels could not be decoded (white).
        outside_share: Share of the box outside the scanned area (white).
    """

    rgb: Pixels
    jpeg: bytes
    sha256: str
    box: Box
    magnification: float
    image_size_px: tuple[int, int]
    padded_size_px: tuple[int, int]
    enlarged: int
    failed_share: float
    outside_share: float

    def facts(self) -> dict[str, Any]:
        """Return what a model is told and a record keeps about the image."""
        facts: dict[str, Any] = {
            "box": self.box.as_list(),
            "magnification": float(f"{self.magnification:.3g}"),
            "image_width_px": self.image_size_px[0],
            "image_height_px": self.image_size_px[1],
        }
        if self.padded_size_px != self.image_size_px:
            facts["padded_with_white_to_px"] = list(self.padded_size_px)
        if self.enlarged > 1:
            facts["enlarged"] = self.enlarged
        if self.failed_share > 0:
            facts["unreadable_share"] = round(self.failed_share, 4)
        if self.outside_share > 0:
            facts["outside_share"] = round(self.outside_share, 4)
        return facts


def view_of(reading: Reading, settings: ViewSettings, keep: Callable[[bytes], str]) -> View:
    """Return a reading as a model is shown it, the JPEG without ICC profile or EXIF; `keep` stores it and names it."""
    rgb = np.full_like(reading.rgb, 255) if settings.blank_images else reading.rgb
    factor = whole_factor(rgb.shape[1], rgb.shape[0], settings.view_px)
    pixels = np.repeat(np.repeat(rgb, factor, axis=0), factor, axis=1) if factor > 1 else rgb
    if settings.guides:
        pixels = draw_guides(pixels, _axes(reading.box, pixels, settings.frame), _TICKS_PER_UNIT.get(settings.frame, 1))
    padded = _padded(pixels)
    jpeg = encode_jpeg(padded, settings.jpeg_quality)
    return View(
        rgb=rgb,
        jpeg=jpeg,
        sha256=keep(jpeg),
        box=reading.box,
        magnification=reading.magnification,
        image_size_px=(pixels.shape[1], pixels.shape[0]),
        padded_size_px=(padded.shape[1], padded.shape[0]),
        enlarged=factor,
        failed_share=reading.failed_share,
        outside_share=reading.outside_share,
    )


def _axes(box: Box, pixels: Pixels, frame: Frame) -> Box:
    """Return what the image's axes run over: level-0 pixels, its own pixels, or thousandths of its padded sides."""
    height_px, width_px = pixels.shape[:2]
    if frame is Frame.LEVEL0:
        return box
    if frame is Frame.VIEW_PX:
        return Box(0, 0, width_px, height_px)
    full_width, full_height = max(width_px, MIN_IMAGE_SIDE_PX), max(height_px, MIN_IMAGE_SIDE_PX)
    return Box(0, 0, 1000 * width_px / full_width, 1000 * height_px / full_height)


def whole_factor(width_px: int, height_px: int, limit_px: int) -> int:
    """Return the factor that brings the short side to 64 px, as far as the long side's limit allows."""
    wanted = math.ceil(MIN_IMAGE_SIDE_PX / min(width_px, height_px))
    return max(1, min(wanted, limit_px // max(width_px, height_px)))


def _padded(pixels: Pixels) -> Pixels:
    """Return the pixels with white below and to the right, up to 64 px a side; only slivers need it."""
    height_px, width_px = pixels.shape[:2]
    below, beside = max(0, MIN_IMAGE_SIDE_PX - height_px), max(0, MIN_IMAGE_SIDE_PX - width_px)
    if not below and not beside:
        return pixels
    return np.pad(pixels, ((0, below), (0, beside), (0, 0)), constant_values=255)


def round_step(span: float, most_ticks: float) -> int:
    """Return the smallest of 1, 2, 5, 10, 20, 50, ... that puts at most `most_ticks` ticks into a span."""
    least = max(span / max(most_ticks, 1.0), 1.0)
    power = 10 ** math.floor(math.log10(least))
    return next(int(factor * power) for factor in (1, 2, 5, 10) if factor * power >= least * (1 - 1e-9))


def round_ticks(start: float, span: float, length_px: float, spacing_px: float) -> list[int]:
    """Return the round level-0 coordinates to mark on one axis.

    Args:
        start: First level-0 coordinate shown.
        span: Level-0 pixels shown.
        length_px: Image pixels they take.
        spacing_px: About how many image pixels a tick should have to itself.

    Returns: Ascending coordinates in [start, start + span); at least one where a whole coordinate lies inside.
    """
    step = round_step(span, length_px / spacing_px)
    while step > 1 and math.ceil(start / step) * step >= start + span:
        step = round_step(span, span / (step / 2.5))
    first = math.ceil(start / step) * step
    return list(range(first, math.ceil(start + span), step))


def draw_guides(rgb: NDArray[np.uint8], box: Box, per_unit: int = 1) -> NDArray[np.uint8]:
    """Return a copy of an image with ticks on all four edges and labels at the top (x) and at the left (y).

    Args:
        rgb: uint8, shape (height_px, width_px, 3): the pixels of `box`.
        box: What the axes run over: the box that the image shows, in level-0 pixels, or the range of another frame.
        per_unit: How many of these make 1 in the labels: 1000 labels thousandths as shares.
    """
    image = Image.fromarray(rgb)
    draw = ImageDraw.Draw(image)
    draw.font = ImageFont.load_default(_FONT_PX)
    _draw_x_axis(draw, image.size, box, per_unit)
    _draw_y_axis(draw, image.size, box, per_unit)
    return np.asarray(image)


def _draw_x_axis(draw: ImageDraw.ImageDraw, size_px: tuple[int, int], box: Box, per_unit: int) -> None:
    width_px, height_px = size_px
    free_from = 0.0
    for tick in round_ticks(box.x, box.width, width_px, _SPACING_PX[0]):
        at = (tick - box.x) * width_px / box.width
        _line(draw, (at, 0), (at, _TICK_PX))
        _line(draw, (at, height_px - 1 - _TICK_PX), (at, height_px - 1))
        label = _label(tick, per_unit)
        label_px = draw.textlength(label)
        left = min(max(at - label_px / 2, 1.0), width_px - label_px - 1)
        if left >= free_from:
            _text(draw, (left, _TICK_PX + 1), label)
            free_from = left + label_px + _LABEL_GAP_PX


def _draw_y_axis(draw: ImageDraw.ImageDraw, size_px: tuple[int, int], box: Box, per_unit: int) -> None:
    width_px, height_px = size_px
    free_from = float(_TICK_PX + _FONT_PX + _LABEL_GAP_PX)
    # Small images get a second tick: the first may lie under the labels of the x axis.
    spacing_px = min(_SPACING_PX[1], height_px / 2.5)
    for tick in round_ticks(box.y, box.height, height_px, spacing_px):
        at = (tick - box.y) * height_px / box.height
        _line(draw, (0, at), (_TICK_PX, at))
        _line(draw, (width_px - 1 - _TICK_PX, at), (width_px - 1, at))
        top = min(at - _FONT_PX / 2, height_px - _FONT_PX - 2.0)
        if top >= free_from:
            _text(draw, (_TICK_PX + 3, top), _label(tick, per_unit))
            free_from = top + _FONT_PX + _LABEL_GAP_PX


def _label(tick: int, per_unit: int) -> str:
    return str(tick) if per_unit == 1 else f"{tick / per_unit:g}"


def _line(draw: ImageDraw.ImageDraw, start: tuple[float, float], end: tuple[float, float]) -> None:
    draw.line([start, end], fill=_HALO, width=3)
    draw.line([start, end], fill=GUIDE_COLOUR, width=1)


def _text(draw: ImageDraw.ImageDraw, at: tuple[float, float], label: str) -> None:
    draw.text(at, label, fill=GUIDE_COLOUR, stroke_width=2, stroke_fill=_HALO)
