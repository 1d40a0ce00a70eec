"""The pictures that `pathnav doctor` shows a model: numbers drawn large, coloured squares at known places."""

import hashlib
import io
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from pathnav.geometry import Box
from pathnav.model.parts import Message, image_part

VIEW_PX = (1024, 1024)
"""As large as an image of a run."""
SMALL_PX = (224, 160)
BOARD_PX = (640, 400)
"""Not square, and no side near 1,000: pixels, thousandths and shares of a side give different numbers."""
COLOURS = {"red": (220, 20, 20), "green": (20, 160, 40), "blue": (30, 60, 220), "orange": (255, 150, 0)}
BOARD_BOX = Box(12_000, 34_000, 5_120, 3_200)
"""Where a board with ticks says that it lies on a slide, level-0 pixels: 8 for one of the picture."""
TICK_PX = 80
_QUALITY = 92
_WHITE, _BLACK = (255, 255, 255), (0, 0, 0)
_CELLS = ((0.04, 0.08), (0.55, 0.05), (0.20, 0.55), (0.72, 0.60))  # corners of four squares, shares of the sides
_SIDES_PX = (50, 96)
_JITTER_PX = 30


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture and what it shows.

    Args:
        jpeg: The file's bytes.
        number: The digits that it shows; empty for a board.
        squares: The squares that it shows by colour, pixels of the picture; empty for a number.
        width_px: Width.
        height_px: Height.
    """

    jpeg: bytes
    number: str
    squares: Mapping[str, Box]
    width_px: int
    height_px: int

    @property
    def sha256(self) -> str:
        """Name of the JPEG in the record."""
        return hashlib.sha256(self.jpeg).hexdigest()

    def part(self) -> Message:
        """Return the picture as a part of a message."""
        return image_part(self.jpeg)


def number_picture(rng: np.random.Generator, digits: int, extent_px: tuple[int, int] = VIEW_PX) -> Picture:
    """Return a picture of a number, black on white, as large as it fits.

    Args:
        rng: Draws the digits; the first is not 0.
        digits: How many.
        extent_px: Width and height.
    """
    number = str(rng.integers(10 ** (digits - 1), 10**digits))
    image = Image.new("RGB", extent_px, _WHITE)
    draw = ImageDraw.Draw(image)
    font_px = min(extent_px[1] * 0.6, extent_px[0] * 1.5 / digits)
    centre = (extent_px[0] / 2, extent_px[1] / 2)
    draw.text(centre, number, fill=_BLACK, font=ImageFont.load_default(font_px), anchor="mm")
    return Picture(_encoded(image), number, {}, *extent_px)


def board_picture(rng: np.random.Generator, ticks: bool) -> Picture:
    """Return a picture of four squares on white, each of its own colour.

    Args:
        rng: Draws sides, places and which colour goes where.
        ticks: Whether ticks along the edges tell level-0 pixels, as on the images of a run.
    """
    image = Image.new("RGB", BOARD_PX, _WHITE)
    draw = ImageDraw.Draw(image)
    squares: dict[str, Box] = {}
    names = [list(COLOURS)[index] for index in rng.permutation(len(COLOURS))]
    for name, (across, down) in zip(names, _CELLS, strict=True):
        side = int(rng.integers(*_SIDES_PX))
        x, y = (int(share * px + rng.integers(_JITTER_PX)) for share, px in zip((across, down), BOARD_PX, strict=True))
        squares[name] = Box(x, y, side, side)
        draw.rectangle((x, y, x + side - 1, y + side - 1), fill=COLOURS[name])
    if ticks:
        _draw_ticks(draw)
    return Picture(_encoded(image), "", {name: squares[name] for name in COLOURS}, *BOARD_PX)


def _draw_ticks(draw: ImageDraw.ImageDraw) -> None:
    font = ImageFont.load_default(10)
    scale = BOARD_BOX.width / BOARD_PX[0]
    for x in range(TICK_PX, BOARD_PX[0], TICK_PX):
        draw.line((x, 0, x, 8), fill=_BLACK)
        draw.text((x + 2, 0), f"{BOARD_BOX.x + x * scale:.0f}", fill=_BLACK, font=font)
    for y in range(TICK_PX, BOARD_PX[1], TICK_PX):
        draw.line((0, y, 8, y), fill=_BLACK)
        draw.text((0, y + 1), f"{BOARD_BOX.y + y * scale:.0f}", fill=_BLACK, font=font)


def _encoded(image: Image.Image) -> bytes:
    file = io.BytesIO()
    image.save(file, "JPEG", quality=_QUALITY)
    return file.getvalue()
