"""Glands and vessels as ready-made pictures (decals) that cover what lies below them."""

import math
from dataclasses import dataclass

import numpy as np

from pathnav.cohort.phantom_noise import Plane, Reals, to_plane
from pathnav.cohort.phantom_stamps import StampBank

GLANDS = 16
VESSELS = 8
CELL_HEIGHT_PX = (40, 58)  # columnar epithelium, 10-14 um
GLAND_RADIUS_PX = (95, 215)
VESSEL_RADIUS_PX = (60, 120)


@dataclass(frozen=True, slots=True)
class Decal:
    """A picture in stain planes.

    Args:
        radius_px: Mean radius of the drawn thing in level-0 pixels.
        cover: uint8, 255 where the decal hides what is below; all three planes have shape (n, n), n odd.
        eosin: uint8 stain plane.
        haematoxylin: uint8 stain plane.
    """

    radius_px: float
    cover: Plane
    eosin: Plane
    haematoxylin: Plane

    @property
    def reach(self) -> int:
        """Level-0 pixels from the centre to the edge of the picture."""
        return len(self.cover) // 2

    def turned(self, turn: int) -> "Decal":
        """Return one of the eight rotations and mirror images, `turn` in 0..7."""
        planes = [np.rot90(plane, turn % 4) for plane in (self.cover, self.eosin, self.haematoxylin)]
        if turn >= 4:
            planes = [plane[:, ::-1] for plane in planes]
        cover, eosin, haematoxylin = planes
        return Decal(self.radius_px, cover, eosin, haematoxylin)


def draw_glands(rng: np.random.Generator, nuclei: StampBank) -> tuple[Decal, ...]:
    """Return glands from small to large, turned in eight ways each."""
    radii = np.linspace(*GLAND_RADIUS_PX, GLANDS)
    drawn = [_draw_gland(rng, nuclei, float(radius)) for radius in radii]
    return tuple(gland.turned(turn) for gland in drawn for turn in range(8))


def draw_vessels(rng: np.random.Generator, nuclei: StampBank) -> tuple[Decal, ...]:
    """Return small vessels filled with red cells, turned in eight ways each."""
    radii = np.linspace(*VESSEL_RADIUS_PX, VESSELS)
    drawn = [_draw_vessel(rng, nuclei, float(radius)) for radius in radii]
    return tuple(vessel.turned(turn) for vessel in drawn for turn in range(8))


def _polar(reach: int) -> tuple[Reals, Reals]:
    """Return distance from the centre in pixels and angle of each pixel."""
    y, x = np.mgrid[-reach : reach + 1, -reach : reach + 1].astype(np.float32)
    return np.hypot(x, y), np.arctan2(y, x)


class _Contour:
    """A lobed closed curve: its radius in every direction."""

    def __init__(self, rng: np.random.Generator, radius: float, wobble: float) -> None:
        self._radius = radius
        self._waves = [(k, wobble * rng.standard_normal() / k**0.7, rng.uniform(0, 6.28)) for k in range(2, 8)]

    def at(self, angle: Reals) -> Reals:
        """Return the radius in pixels in the given directions (radians)."""
        swing = np.zeros_like(angle)
        for k, weight, phase in self._waves:
            swing += weight * np.cos(k * angle + phase)
        return np.asarray(self._radius * np.clip(1 + swing, 0.6, 1.35), dtype=np.float32)


def _draw_gland(rng: np.random.Generator, nuclei: StampBank, radius: float) -> Decal:
    """Return a gland: basement membrane, one row of columnar cells with basal nuclei, an open lumen."""
    contour = _Contour(rng, radius, 0.12)
    height = min(rng.uniform(*CELL_HEIGHT_PX), 0.72 * radius)
    distance, angle = _polar(int(radius * 1.35) + 12)
    depth = contour.at(angle) - distance  # px inside the basement membrane
    brush = height * (1 + 0.10 * _Contour(rng, 1, 0.9).at(angle * 3) - 0.10)
    lumen = np.clip((depth - brush) / 5, 0, 1)
    grain = 5 * rng.standard_normal(depth.shape, dtype=np.float32)
    borders = 7 * np.cos(angle * round(2 * math.pi * radius / 30))  # lateral cell borders, 7 um apart
    eosin = (72 + 34 * depth / height + grain + borders + 60 * np.exp(-((depth / 3) ** 2))) * (1 - lumen)
    eosin += lumen * np.clip(rng.uniform(-45, 40) + grain, 0, 70)  # empty, or a pale secretion
    haematoxylin = to_plane((36 - 16 * depth / height) * (1 - lumen))
    _line_with_nuclei(rng, nuclei, haematoxylin, contour, height)
    return Decal(radius, to_plane(255 * np.clip((depth + 3) / 3, 0, 1)), to_plane(eosin), haematoxylin)


def _line_with_nuclei(
    rng: np.random.Generator, nuclei: StampBank, plane: Plane, contour: _Contour, height: float
) -> None:
    """Paste a row of oval nuclei that point to the lumen, on the basal side of the cells."""
    spacing = rng.uniform(25, 33)
    steps = np.linspace(0, 2 * np.pi, 720, endpoint=False, dtype=np.float32)
    length = np.cumsum(contour.at(steps) - 0.36 * height) * (2 * np.pi / 720)
    marks = np.arange(spacing / 2, length[-1], spacing)
    angles = np.asarray(np.interp(marks, length, steps) + rng.normal(0, 0.02, marks.size), dtype=np.float32)
    outs = contour.at(angles) - height * rng.uniform(0.28, 0.52, marks.size)
    for angle, out in zip(angles.tolist(), outs.tolist(), strict=True):
        stamp = nuclei.pointing(angle + rng.normal(0, 0.15))
        paste_darkest(plane, stamp, round(out * math.cos(angle)), round(out * math.sin(angle)))


def paste_darkest(plane: Plane, stamp: Plane, x: int, y: int) -> None:
    """Paste a square stamp into a square plane at an offset between their centres, keeping the darker stain."""
    left, top = len(plane) // 2 - len(stamp) // 2 + x, len(plane) // 2 - len(stamp) // 2 + y
    view = plane[max(0, top) : max(0, top + len(stamp)), max(0, left) : max(0, left + len(stamp))]
    cut = stamp[max(0, -top) :, max(0, -left) :][: view.shape[0], : view.shape[1]]
    np.maximum(view, cut, out=view)


def _draw_vessel(rng: np.random.Generator, nuclei: StampBank, radius: float) -> Decal:
    """Return a vessel: a ring of wall, flat endothelium, red cells in the lumen."""
    contour, wall = _Contour(rng, radius, 0.13), rng.uniform(12, 24)
    distance, angle = _polar(int(radius * 1.35) + 10)
    depth = contour.at(angle) - distance
    lumen = np.clip((depth - wall) / 3, 0, 1)
    eosin = (124 + 9 * rng.standard_normal(depth.shape, dtype=np.float32)) * (1 - lumen)
    eosin = np.maximum(eosin, lumen * _red_cells(rng, len(depth)))
    haematoxylin = to_plane(14 * (1 - lumen))
    turns = np.arange(0, 2 * np.pi, 66 / radius, dtype=np.float32)
    for turn, out in zip(turns.tolist(), (contour.at(turns) - wall + 1).tolist(), strict=True):
        stamp = nuclei.pointing(turn + math.pi / 2)
        paste_darkest(haematoxylin, stamp, round(out * math.cos(turn)), round(out * math.sin(turn)))
    return Decal(radius, to_plane(255 * np.clip(depth / 4, 0, 1)), to_plane(eosin), haematoxylin)


def _red_cells(rng: np.random.Generator, side: int) -> Reals:
    """Return discs of 7 um with a paler middle, eosin 0..255, shape (side, side)."""
    y, x = np.mgrid[-13:14, -13:14].astype(np.float32)
    distance = np.hypot(x, y)
    disc = to_plane(np.clip((13 - distance) / 2.5, 0, 1) * (160 + 4 * distance))
    field = np.zeros((side, side), dtype=np.uint8)
    for x_px, y_px in rng.integers(-side // 2, side // 2, (side**2 // 560, 2)).tolist():
        paste_darkest(field, disc, x_px, y_px)
    return field.astype(np.float32)
