"""Nuclei, glands and vessels as small pictures in stain planes: drawn once per slide, pasted thousands of times."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from pathnav.phantom.noise import Plane, Reals, smooth_noise, to_plane, wave

STAMPS = 120  # of each kind of nucleus
_CHROMATIN_PX = 512
_GLAND_RADII_PX = np.linspace(95, 215, 16)
_VESSEL_RADII_PX = np.linspace(60, 120, 8)


class Nucleus(IntEnum):
    """The kinds of nuclei; stamp i of a kind is number kind * STAMPS + i of all."""

    LYMPHOCYTE = 0  # 6-7 um, round, dark
    STROMAL = 1  # 14-22 um long spindles along the fibres
    GLAND = 2  # 7-9 um, oval, even, on the basal side
    TUMOUR = 3  # 10-16 um, irregular, dark, clumped
    PALE = 4  # 10-14 um, vesicular, a nucleolus

    def pointing(self, angle: float) -> int:
        """Return the number of the stamp whose longer axis has a direction in radians; of spindles and gland cells."""
        return self * STAMPS + round(angle / math.pi * STAMPS) % STAMPS


@dataclass(frozen=True, slots=True)
class _Recipe:
    """How a kind of nucleus looks."""

    length_px: tuple[float, float]  # range of the longer axis in level-0 pixels
    aspect: tuple[float, float]  # range of shorter / longer axis
    wobble: float  # relative standard deviation of the outline's radius
    density: tuple[float, float]  # range of the haematoxylin inside, 0..255
    rim: float  # extra haematoxylin at the membrane
    clumps: float  # standard deviation of the chromatin's haematoxylin
    nucleoli: int  # at most


_RECIPES = {
    Nucleus.LYMPHOCYTE: _Recipe((20, 31), (0.84, 1.0), 0.028, (140, 195), 14, 20, 0),
    Nucleus.STROMAL: _Recipe((40, 84), (0.14, 0.30), 0.042, (90, 160), 8, 14, 0),
    Nucleus.GLAND: _Recipe((29, 39), (0.58, 0.85), 0.028, (92, 132), 20, 13, 1),
    Nucleus.TUMOUR: _Recipe((34, 66), (0.55, 0.95), 0.065, (78, 165), 26, 20, 2),
    Nucleus.PALE: _Recipe((36, 56), (0.62, 0.95), 0.042, (58, 96), 30, 12, 2),
}


@dataclass(frozen=True, slots=True)
class Decal:
    """A gland or a vessel in stain planes, squares of an odd side; it covers what lies below it."""

    radius_px: float  # mean radius of the drawn thing in level-0 pixels
    cover: Plane  # 255 where it hides what is below
    eosin: Plane
    haematoxylin: Plane


def draw_nuclei(rng: np.random.Generator) -> list[Plane]:
    """Return `STAMPS` nuclei of every kind as haematoxylin on an empty ground, squares of an odd side."""
    # Grains of 1 um among finer ones, from which nuclei take a piece each.
    chromatin = smooth_noise(rng, _CHROMATIN_PX, 11) + 0.5 * smooth_noise(rng, _CHROMATIN_PX, 5)
    chromatin /= float(chromatin.std())
    angles = np.pi * np.arange(STAMPS) / STAMPS
    return [_nucleus(rng, _RECIPES[kind], angle, chromatin) for kind in Nucleus for angle in angles.tolist()]


def _nucleus(rng: np.random.Generator, recipe: _Recipe, angle: float, chromatin: Reals) -> Plane:
    """Return one nucleus whose longer axis points to an angle in radians, clockwise from the x axis."""
    reach = int(recipe.length_px[1] * 0.62) + 3
    y, x = np.mgrid[-reach : reach + 1, -reach : reach + 1].astype(np.float32)
    top, left = rng.integers(0, _CHROMATIN_PX - len(x), 2).tolist()
    sine, cosine = math.sin(angle), math.cos(angle)
    length = rng.uniform(*recipe.length_px) / 2
    width = length * rng.uniform(*recipe.aspect)
    along, across = (x * cosine + y * sine) / length, (y * cosine - x * sine) / width
    outline = np.clip(1 + recipe.wobble * wave(rng, 5, 0.8)(np.arctan2(across, along)), 0.6, 1.4)
    depth = (1 - np.hypot(along, across) / outline) * width  # px inside the membrane
    body = rng.uniform(*recipe.density) + recipe.clumps * chromatin[top : top + len(x), left : left + len(x)]
    body += recipe.rim * np.exp(-(((depth - 2.5) / 2.5) ** 2))
    for _ in range(int(rng.integers(0, recipe.nucleoli + 1))):  # of 1-2 um
        u, v = rng.uniform(-0.4, 0.4, 2) * width
        apart = np.hypot(along * length - u, across * width - v)
        body += 70 * np.clip((rng.uniform(2.6, 4.6) - apart) / 2, 0, 1)
    return to_plane(np.clip(depth / 3 + 0.5, 0, 1) * np.clip(body, 20, 245))


def draw_glands(rng: np.random.Generator, nuclei: list[Plane]) -> list[Decal]:
    """Return glands from small to large, turned in eight ways each."""
    return [turned for radius in _GLAND_RADII_PX.tolist() for turned in _turned(_gland(rng, nuclei, radius))]


def draw_vessels(rng: np.random.Generator, nuclei: list[Plane]) -> list[Decal]:
    """Return small vessels full of red cells, turned in eight ways each."""
    return [turned for radius in _VESSEL_RADII_PX.tolist() for turned in _turned(_vessel(rng, nuclei, radius))]


def _turned(decal: Decal) -> list[Decal]:
    """Return the eight rotations and mirror images of a decal; they share its pixels."""
    planes = (decal.cover, decal.eosin, decal.haematoxylin)
    spun = [[np.rot90(plane, quarter) for plane in planes] for quarter in range(4)]
    return [Decal(decal.radius_px, *way) for way in spun + [[plane[:, ::-1] for plane in way] for way in spun]]


def _contour(rng: np.random.Generator, radius: float, roughness: float) -> Callable[[Reals], Reals]:
    """Return a lobed closed curve: its radius in pixels by the direction in radians."""
    swing = wave(rng, 7, 0.7)
    return lambda angle: np.asarray(radius * np.clip(1 + roughness * swing(angle), 0.6, 1.35), dtype=np.float32)


def _polar(reach: int) -> tuple[Reals, Reals]:
    """Return distance from the centre in pixels and angle of each pixel of a square."""
    y, x = np.mgrid[-reach : reach + 1, -reach : reach + 1].astype(np.float32)
    return np.hypot(x, y), np.arctan2(y, x)


def _gland(rng: np.random.Generator, nuclei: list[Plane], radius: float) -> Decal:
    """Return a gland: basement membrane, one row of columnar cells with basal nuclei, an open lumen."""
    contour, brush = _contour(rng, radius, rng.uniform(0.04, 0.12)), wave(rng, 21, 0.5)
    height = min(rng.uniform(40, 58), 0.72 * radius)  # of columnar epithelium, 10-14 um
    distance, angle = _polar(int(radius * 1.35) + 12)
    depth = contour(angle) - distance  # px inside the basement membrane
    lumen = np.clip((depth - height * (1 + 0.06 * brush(angle))) / 5, 0, 1)
    grain = 5 * rng.standard_normal(depth.shape, dtype=np.float32)
    borders = 7 * np.cos(angle * round(2 * math.pi * radius / 30))  # lateral cell borders, 7 um apart
    eosin = (72 + 34 * depth / height + grain + borders + 60 * np.exp(-((depth / 3) ** 2))) * (1 - lumen)
    eosin += lumen * np.clip(rng.uniform(-45, 40) + grain, 0, 70)  # empty, or a pale secretion
    haematoxylin = to_plane((36 - 16 * depth / height) * (1 - lumen))
    # A row of oval nuclei that point to the lumen, equally far apart along the contour.
    steps = np.linspace(0, 2 * np.pi, 720, endpoint=False, dtype=np.float32)
    length = np.cumsum(contour(steps) - 0.36 * height) * (2 * np.pi / 720)
    spacing = rng.uniform(25, 33)
    turns = np.interp(np.arange(spacing / 2, length[-1], spacing), length, steps).astype(np.float32)
    turns += rng.normal(0, 0.02, turns.size).astype(np.float32)
    out = contour(turns) - height * rng.uniform(0.28, 0.52, turns.size)
    for turn, radial in zip(turns.tolist(), out.tolist(), strict=True):
        stamp = nuclei[Nucleus.GLAND.pointing(turn + rng.normal(0, 0.15))]
        _paste_around(haematoxylin, stamp, turn, radial)
    return Decal(radius, to_plane(255 * np.clip((depth + 3) / 3, 0, 1)), to_plane(eosin), haematoxylin)


def _vessel(rng: np.random.Generator, nuclei: list[Plane], radius: float) -> Decal:
    """Return a vessel: a ring of wall, flat endothelium, red cells in the lumen."""
    contour, wall = _contour(rng, radius, 0.09), rng.uniform(12, 24)
    distance, angle = _polar(int(radius * 1.35) + 10)
    depth = contour(angle) - distance
    lumen = np.clip((depth - wall) / 3, 0, 1)
    eosin = (124 + 9 * rng.standard_normal(depth.shape, dtype=np.float32)) * (1 - lumen)
    haematoxylin = to_plane(14 * (1 - lumen))
    turns = np.arange(0, 2 * np.pi, 66 / radius, dtype=np.float32)
    for turn, radial in zip(turns.tolist(), (contour(turns) - wall + 1).tolist(), strict=True):
        _paste_around(haematoxylin, nuclei[Nucleus.STROMAL.pointing(turn + math.pi / 2)], turn, radial)
    red = np.zeros(depth.shape, dtype=np.uint8)
    apart, _ = _polar(13)
    disc = to_plane(np.clip((13 - apart) / 2.5, 0, 1) * (160 + 4 * apart))  # 7 um, with a paler middle
    for x, y in rng.integers(0, len(red), (red.size // 560, 2)).tolist():
        paste_darkest(red, disc, x, y)
    return Decal(
        radius, to_plane(255 * np.clip(depth / 4, 0, 1)), to_plane(np.maximum(eosin, lumen * red)), haematoxylin
    )


def _paste_around(plane: Plane, stamp: Plane, angle: float, radius: float) -> None:
    """Paste a stamp in a direction and at a distance from the middle of a square plane."""
    middle = len(plane) // 2
    paste_darkest(plane, stamp, middle + round(radius * math.cos(angle)), middle + round(radius * math.sin(angle)))


def paste_darkest(plane: Plane, stamp: Plane, x: int, y: int) -> None:
    """Paste a stamp centred at a pixel of a square plane, keeping the darker stain; what lies outside is cut."""
    there, part = overlap(len(plane), len(stamp), x, y)
    view = plane[there]
    np.maximum(view, stamp[part], out=view)


def overlap(side: int, stamp_side: int, x: int, y: int) -> tuple[tuple[slice, slice], tuple[slice, slice]]:
    """Return which part of a plane a stamp centred at (x, y) meets, and which part of the stamp that is."""
    there, part = [], []
    for middle in (y, x):
        start = middle - stamp_side // 2
        first = max(0, start)
        last = max(first, min(side, start + stamp_side))
        there.append(slice(first, last))
        part.append(slice(first - start, last - start))
    return (there[0], there[1]), (part[0], part[1])
