"""Axis guides: ticks at round level-0 coordinates along the edges of an image shown to a model."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from pathnav.geometry import Box

# Haematoxylin and eosin leave no pure green in a brightfield slide, so a tick is never taken for tissue.
GUIDE_COLOUR = (0, 140, 0)
_HALO = (255, 255, 255)
_TICK_PX = 8
_FONT_PX = 13
_LABEL_GAP_PX = 8
# One tick in about so many pixels; a label of six digits is 50 px wide.
_SPACING_PX = (110.0, 80.0)


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
    font = ImageFont.load_default(_FONT_PX)
    _draw_x_axis(draw, image.size, box, Labels(font, per_unit))
    _draw_y_axis(draw, image.size, box, Labels(font, per_unit))
    return np.asarray(image)


Font = ImageFont.ImageFont | ImageFont.FreeTypeFont


@dataclass(frozen=True, slots=True)
class Labels:
    """How ticks are labelled."""

    font: Font
    per_unit: int

    def of(self, tick: int) -> str:
        """Return the label of a tick."""
        return str(tick) if self.per_unit == 1 else f"{tick / self.per_unit:g}"


def _draw_x_axis(draw: ImageDraw.ImageDraw, size_px: tuple[int, int], box: Box, labels: "Labels") -> None:
    width_px, height_px = size_px
    free_from = 0.0
    for tick in round_ticks(box.x, box.width, width_px, _SPACING_PX[0]):
        at = (tick - box.x) * width_px / box.width
        _line(draw, (at, 0), (at, _TICK_PX))
        _line(draw, (at, height_px - 1 - _TICK_PX), (at, height_px - 1))
        label = labels.of(tick)
        label_px = draw.textlength(label, font=labels.font)
        left = min(max(at - label_px / 2, 1.0), width_px - label_px - 1)
        if left >= free_from:
            _text(draw, (left, _TICK_PX + 1), label, labels.font)
            free_from = left + label_px + _LABEL_GAP_PX


def _draw_y_axis(draw: ImageDraw.ImageDraw, size_px: tuple[int, int], box: Box, labels: "Labels") -> None:
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
            _text(draw, (_TICK_PX + 3, top), labels.of(tick), labels.font)
            free_from = top + _FONT_PX + _LABEL_GAP_PX


def _line(draw: ImageDraw.ImageDraw, start: tuple[float, float], end: tuple[float, float]) -> None:
    draw.line([start, end], fill=_HALO, width=3)
    draw.line([start, end], fill=GUIDE_COLOUR, width=1)


def _text(draw: ImageDraw.ImageDraw, at: tuple[float, float], label: str, font: Font) -> None:
    draw.text(at, label, fill=GUIDE_COLOUR, font=font, stroke_width=2, stroke_fill=_HALO)
