"""A tiny vision for test servers: reads the digits of number pictures and finds coloured squares, from pixels alone."""

from functools import cache

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

Mask = NDArray[np.bool_]

COLOURS = {"red": (220, 20, 20), "green": (20, 160, 40), "blue": (30, 60, 220), "orange": (255, 150, 0)}
_CELLS = 30
_NEAR = 60  # grey levels


def read_number(image: Image.Image) -> str:
    """Return the digits of a picture; empty where nothing dark is on it."""
    dark = np.asarray(image.convert("L")) < 128
    columns = dark.any(axis=0)
    edges = np.flatnonzero(np.diff(np.concatenate([[False], columns, [False]]).astype(int)))
    return "".join(_digit(dark[:, left:right]) for left, right in zip(edges[::2], edges[1::2], strict=True))


def find_square(image: Image.Image, colour: str) -> tuple[int, int, int, int] | None:
    """Return left, top, right and bottom of a colour's square in pixels, None where there is none."""
    off = np.abs(np.asarray(image.convert("RGB")).astype(int) - COLOURS[colour]).max(axis=-1)
    near = off < _NEAR
    rows, columns = np.flatnonzero(near.sum(axis=1) > 8), np.flatnonzero(near.sum(axis=0) > 8)
    if not len(rows) or not len(columns):
        return None
    return int(columns[0]), int(rows[0]), int(columns[-1]) + 1, int(rows[-1]) + 1


def _digit(glyph: Mask) -> str:
    cells = _normal(glyph)
    return min(_templates(), key=lambda name: float(np.abs(_templates()[name] - cells).sum()))


@cache
def _templates() -> dict[str, NDArray[np.float64]]:
    found = {}
    for name in "0123456789":
        image = Image.new("L", (400, 400), 255)
        ImageDraw.Draw(image).text((200, 200), name, fill=0, font=ImageFont.load_default(220), anchor="mm")
        found[name] = _normal(np.asarray(image) < 128)
    return found


def _normal(glyph: Mask) -> NDArray[np.float64]:
    """Return a glyph cut to its ink, scaled to one height, on a square field."""
    rows, columns = np.flatnonzero(glyph.any(axis=1)), np.flatnonzero(glyph.any(axis=0))
    cut = Image.fromarray(glyph[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1])
    width = max(1, min(_CELLS, round(_CELLS * cut.width / cut.height)))
    field = np.zeros((_CELLS, _CELLS))
    field[:, :width] = np.asarray(cut.convert("L").resize((width, _CELLS))) / 255
    return field
