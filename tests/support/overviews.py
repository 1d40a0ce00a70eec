"""Painted overviews of slides: glass, tissue, fat, dust and marker ink, for tests of the tissue mask."""

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFilter

Rgb = NDArray[np.uint8]
Mask = NDArray[np.bool_]

GLASS = (243, 243, 242)
INKS = {
    "blue": (30, 60, 150),
    "light blue": (90, 130, 200),
    "green": (20, 120, 80),
    "teal": (30, 110, 120),
    "black": (44, 42, 52),
    "red": (200, 35, 55),
    "pink": (215, 60, 90),
}


def blank(side_px: int = 512, colour: tuple[int, int, int] = GLASS, noise: float = 2.0, seed: int = 0) -> Rgb:
    """Return glass of a colour with the noise of a camera, in standard deviations of 255."""
    rng = np.random.default_rng(seed)
    return _as_rgb(np.array(colour) + rng.normal(0, noise, (side_px, side_px, 3)))


def with_tissue(rgb: Rgb, strength: float = 1.0) -> tuple[Rgb, Mask]:
    """Return an overview with an H&E-like ellipse in its middle, and the ellipse; strength 1 is usual staining."""
    side_px = rgb.shape[0]
    rows, columns = np.mgrid[:side_px, :side_px] / side_px - 0.5
    inside = (rows / 0.2) ** 2 + (columns / 0.28) ** 2 < 1
    rng = np.random.default_rng(1)
    coarse = Image.fromarray(rng.integers(0, 255, (side_px // 6, side_px // 6), dtype=np.uint8))
    haematoxylin = np.asarray(coarse.resize((side_px, side_px), Image.Resampling.BICUBIC))[..., None] / 255 * 0.5
    density = 0.25 * np.array([0.09, 0.95, 0.3]) + haematoxylin * np.array([0.65, 0.7, 0.29])
    return _as_rgb(rgb * np.where(inside[..., None], 10 ** (-strength * density), 1.0)), inside


def with_pen(rgb: Rgb, ink: tuple[int, int, int]) -> tuple[Rgb, Mask]:
    """Return an overview with a stroke of a marker around its left and upper side, and where the stroke is."""
    height, width = rgb.shape[:2]
    stroke = Image.new("L", (width, height), 0)
    points = [(width * 0.45, height * 0.9), (width * 0.07, height * 0.7), (width * 0.1, height * 0.12), (width, 0)]
    ImageDraw.Draw(stroke).line(points, fill=255, width=round(width * 0.035))
    cover = np.asarray(stroke.filter(ImageFilter.GaussianBlur(2)))[..., None] / 255
    streaks = np.random.default_rng(2).integers(200, 255, (height // 20, width // 20), dtype=np.uint8)
    pressure = np.asarray(Image.fromarray(streaks).resize((width, height), Image.Resampling.BICUBIC))[..., None] / 255
    return _as_rgb(rgb * (np.array(ink) / 245) ** (cover * pressure)), np.asarray(stroke) > 127


def with_dust(rgb: Rgb) -> Rgb:
    """Return an overview with coloured specks of 2 x 2 pixels, 30 pixels apart."""
    dusty = rgb.copy()
    for row in range(15, rgb.shape[0] - 15, 30):
        for column in range(15, rgb.shape[1] - 15, 30):
            dusty[row : row + 2, column : column + 2] = (120, 60, 90)
    return dusty


def _as_rgb(values: NDArray[np.float64]) -> Rgb:
    return np.clip(np.round(values), 0, 255).astype(np.uint8)
