"""What a model is shown: pixels of a box, enlarged where a server would refuse them, with guides, as JPEG."""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pathnav.cohort.protocol import JPEG_QUALITY, MIN_IMAGE_SIDE_PX, VIEW_LIMIT_PX
from pathnav.errors import ConfigError
from pathnav.geometry import Box
from pathnav.localise.guides import draw_guides
from pathnav.model.profile import Frame
from pathnav.slide import Reading
from pathnav.slide.pixels import encode_jpeg

Pixels = NDArray[np.uint8]

_TICKS_PER_UNIT = {Frame.UNIT: 1000}


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

    def caption(self, what: str) -> str:
        """Return the line that stands before the image in a message."""
        size = "{} x {} px".format(*self.image_size_px)
        if self.padded_size_px != self.image_size_px:
            size += " (padded with white to {} x {} px)".format(*self.padded_size_px)
        return f"{what}: {size} at {self.magnification:.3g}x, level-0 box {self.box.as_list()}"


@dataclass(frozen=True, slots=True)
class Picture:
    """An encoded image before it has a name."""

    jpeg: bytes
    size_px: tuple[int, int]
    padded_size_px: tuple[int, int]
    enlarged: int


def draw_picture(reading: Reading, settings: ViewSettings) -> Picture:
    """Return the JPEG of a reading as a model is shown it, without ICC profile or EXIF."""
    factor = whole_factor(reading.rgb.shape[1], reading.rgb.shape[0], settings.view_px)
    pixels = np.repeat(np.repeat(reading.rgb, factor, axis=0), factor, axis=1) if factor > 1 else reading.rgb
    if settings.guides:
        pixels = draw_guides(pixels, _axes(reading.box, pixels, settings.frame), _TICKS_PER_UNIT.get(settings.frame, 1))
    padded = _padded(pixels)
    jpeg = encode_jpeg(padded, settings.jpeg_quality)
    return Picture(jpeg, (pixels.shape[1], pixels.shape[0]), (padded.shape[1], padded.shape[0]), factor)


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
