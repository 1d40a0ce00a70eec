"""What the stub reads in a plain picture: digits in dark ink, and where a coloured square lies; from pixels alone."""

import io
from collections.abc import Iterator
from functools import cache

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from pathnav.model.stub_rules import BadRequest, decode_image

Pixels = NDArray[np.uint8]
Ink = NDArray[np.bool_]

COLOURS = ("red", "green", "blue", "orange")
_DARK = 128  # grey level
_HEIGHT, _WIDTH = 32, 24  # cells of a glyph: the widest digit of a plain font is three quarters of its height
_TEMPLATE_PX = 200
_ALIKE = 0.7  # share of cells that ink and digit have in common, of those that either has
_LEAST_PX = 6  # in a row or column that a square reaches; the ink of ticks and JPEG's fringes are thinner


def pixels_of(url: str) -> Pixels:
    """Return the pixels of an inlined image, uint8 RGB, shape (height_px, width_px, 3).

    Raises:
        BadRequest: If it cannot be decoded.
    """
    try:
        with Image.open(io.BytesIO(decode_image(url))) as image:
            return np.asarray(image.convert("RGB"))
    except (OSError, ValueError, Image.DecompressionBombError) as error:
        raise BadRequest(f"an image cannot be decoded: {error}") from error


def read_number(rgb: Pixels) -> str | None:
    """Return the digits that stand in one line of dark ink; None where there is no ink or some of it is no digit."""
    ink = rgb.mean(axis=2) < _DARK
    digits = [_digit(glyph) for glyph in _glyphs(ink)]
    return "".join(digit for digit in digits if digit) if digits and all(digits) else None


def find_square(rgb: Pixels, colour: str) -> tuple[int, int, int, int] | None:
    """Return left, top, right and bottom of what has a colour, pixels; None where nothing has.

    Args:
        rgb: The picture.
        colour: One of `COLOURS`.
    """
    painted = _has_colour(rgb, colour)
    columns = np.flatnonzero(painted.sum(axis=0) >= _LEAST_PX)
    rows = np.flatnonzero(painted.sum(axis=1) >= _LEAST_PX)
    if not len(columns) or not len(rows):
        return None
    return int(columns[0]), int(rows[0]), int(columns[-1]) + 1, int(rows[-1]) + 1


def _has_colour(rgb: Pixels, colour: str) -> Ink:
    red, green, blue = (rgb[:, :, channel].astype(np.int16) for channel in range(3))
    ranges = {
        "red": (red > 150) & (green < 85) & (blue < 85),
        "green": (green - np.maximum(red, blue) > 60) & (red < 110),
        "blue": (blue - np.maximum(red, green) > 80) & (red < 110),
        "orange": (red > 190) & (np.abs(green - 150) < 50) & (blue < 100),
    }
    return ranges[colour]


def _glyphs(ink: Ink) -> Iterator[Ink]:
    """Yield each run of inked columns, cut to its rows."""
    inked = np.concatenate([[False], ink.any(axis=0), [False]])
    edges = np.flatnonzero(inked[1:] != inked[:-1])
    for left, right in zip(edges[::2], edges[1::2], strict=True):
        rows = np.flatnonzero(ink[:, left:right].any(axis=1))
        yield ink[rows[0] : rows[-1] + 1, left:right]


def _digit(glyph: Ink) -> str | None:
    """Return the digit that a glyph is most alike, None where it is like none."""
    cells = _cells(glyph)
    alike = {name: _share(cells, template) for name, template in _templates().items()}
    best = max(alike, key=lambda name: alike[name])
    return best if alike[best] >= _ALIKE else None


def _share(cells: Ink, template: Ink) -> float:
    return float((cells & template).sum() / max(1, (cells | template).sum()))


@cache
def _templates() -> dict[str, Ink]:
    """Return the ten digits, drawn large."""
    font, found = ImageFont.load_default(_TEMPLATE_PX), {}
    for name in "0123456789":
        image = Image.new("L", (2 * _TEMPLATE_PX, 2 * _TEMPLATE_PX), 255)
        ImageDraw.Draw(image).text((_TEMPLATE_PX, _TEMPLATE_PX), name, fill=0, font=font, anchor="mm")
        (glyph,) = _glyphs(np.asarray(image) < _DARK)
        found[name] = _cells(glyph)
    return found


def _cells(glyph: Ink) -> Ink:
    """Return a glyph scaled to one height, shape (_HEIGHT, _WIDTH), with its left edge at the left."""
    height_px, width_px = glyph.shape
    width = max(1, min(_WIDTH, round(_HEIGHT * width_px / height_px)))
    scaled = Image.fromarray(glyph).convert("L").resize((width, _HEIGHT), Image.Resampling.BOX)
    cells = np.zeros((_HEIGHT, _WIDTH), bool)
    cells[:, :width] = np.asarray(scaled) >= _DARK
    return cells
