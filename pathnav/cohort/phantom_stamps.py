"""Nuclei as small haematoxylin stamps: drawn once per slide, pasted ten thousands of times."""

import math
from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from pathnav.cohort.phantom_noise import Plane, Reals, smooth_noise, to_plane

_CHROMATIN_PX = 512


class Nucleus(IntEnum):
    """The kinds of nuclei."""

    LYMPHOCYTE = 0  # 6-7 um, round, dark
    STROMAL = 1  # 14-22 um long spindles along the fibres
    GLAND = 2  # 7-9 um, oval, even, on the basal side
    TUMOUR = 3  # 10-16 um, irregular, dark, clumped
    PALE = 4  # 10-14 um, vesicular, a nucleolus


@dataclass(frozen=True, slots=True)
class Recipe:
    """How a kind of nucleus looks.

    Args:
        length_px: Range of the longer axis in level-0 pixels (0.25 um).
        aspect: Range of shorter / longer axis.
        wobble: Relative standard deviation of the outline's radius.
        density: Range of the haematoxylin inside, 0..255.
        rim: Extra haematoxylin at the membrane.
        clumps: Standard deviation of the chromatin's haematoxylin.
        nucleoli: Most nucleoli per nucleus.
        stamps: How many are drawn.
        oriented: Whether stamp i of n points to the angle pi * i / n rather than anywhere.
    """

    length_px: tuple[float, float]
    aspect: tuple[float, float]
    wobble: float
    density: tuple[float, float]
    rim: float
    clumps: float
    nucleoli: int
    stamps: int
    oriented: bool = False


RECIPES = {
    Nucleus.LYMPHOCYTE: Recipe((20, 31), (0.84, 1.0), 0.04, (140, 195), 14, 20, 0, 64),
    Nucleus.STROMAL: Recipe((40, 84), (0.14, 0.30), 0.06, (90, 160), 8, 14, 0, 120, True),
    Nucleus.GLAND: Recipe((29, 39), (0.58, 0.85), 0.04, (92, 132), 20, 13, 1, 96, True),
    Nucleus.TUMOUR: Recipe((34, 66), (0.55, 0.95), 0.09, (78, 165), 26, 20, 2, 192),
    Nucleus.PALE: Recipe((36, 56), (0.62, 0.95), 0.06, (58, 96), 30, 12, 2, 80),
}


@dataclass(frozen=True, slots=True)
class StampBank:
    """The stamps of one kind, all squares of the same odd side."""

    kind: Nucleus
    stamps: tuple[Plane, ...]
    oriented: bool

    @property
    def reach(self) -> int:
        """Level-0 pixels from a stamp's centre to its edge."""
        return len(self.stamps[0]) // 2

    def pointing(self, angle: float) -> Plane:
        """Return the stamp of an oriented bank that points to an angle in radians."""
        return self.stamps[round(angle / math.pi * len(self.stamps)) % len(self.stamps)]


def draw_banks(rng: np.random.Generator) -> dict[Nucleus, StampBank]:
    """Return the stamps of every kind."""
    chromatin = draw_chromatin(rng)
    return {kind: _draw_bank(rng, kind, recipe, chromatin) for kind, recipe in RECIPES.items()}


def _draw_bank(rng: np.random.Generator, kind: Nucleus, recipe: Recipe, chromatin: Reals) -> StampBank:
    angles = np.pi * np.arange(recipe.stamps) / recipe.stamps
    if not recipe.oriented:
        angles = rng.uniform(0, np.pi, recipe.stamps)
    return StampBank(
        kind, tuple(draw_nucleus(rng, recipe, float(angle), chromatin) for angle in angles), recipe.oriented
    )


def draw_nucleus(rng: np.random.Generator, recipe: Recipe, angle: float, chromatin: Reals) -> Plane:
    """Return one nucleus as haematoxylin on an empty ground.

    Args:
        rng: Where the randomness comes from.
        recipe: Its kind's looks.
        angle: Direction of the longer axis in radians, clockwise from the x axis.
        chromatin: Where its chromatin is cut from.

    Returns: uint8, shape (n, n) with n odd and the same for all nuclei of a recipe.
    """
    reach = int(recipe.length_px[1] * 0.62) + 3
    y, x = np.mgrid[-reach : reach + 1, -reach : reach + 1].astype(np.float32)
    top, left = rng.integers(0, _CHROMATIN_PX - len(x), 2).tolist()
    sine, cosine = math.sin(angle), math.cos(angle)
    length = rng.uniform(*recipe.length_px) / 2
    width = length * rng.uniform(*recipe.aspect)
    along, across = (x * cosine + y * sine) / length, (y * cosine - x * sine) / width
    radius = np.hypot(along, across) / _outline(rng, along, across, recipe.wobble)
    depth = (1 - radius) * width  # px inside the membrane
    inside = np.clip(depth / 3 + 0.5, 0, 1)
    body = rng.uniform(*recipe.density) + recipe.clumps * chromatin[top : top + len(x), left : left + len(x)]
    body += recipe.rim * np.exp(-(((depth - 2.5) / 2.5) ** 2))
    for _ in range(int(rng.integers(0, recipe.nucleoli + 1))):
        body += _nucleolus(rng, along * length, across * width, width)
    return to_plane(inside * np.clip(body, 20, 245))


def _outline(rng: np.random.Generator, along: Reals, across: Reals, wobble: float) -> Reals:
    """Return the relative radius in the direction of each pixel, from 64 directions."""
    turns = np.linspace(-np.pi, np.pi, 65, dtype=np.float32)
    swing = np.ones_like(turns)
    for harmonic in (2, 3, 4, 5):
        weight = wobble * rng.standard_normal() / math.sqrt(harmonic)
        swing += weight * np.cos(harmonic * turns + rng.uniform(0, 6.28))
    swing = np.clip(swing, 0.6, 1.4)
    swing[-1] = swing[0]
    place = (np.arctan2(across, along) + np.float32(np.pi)) * np.float32(64 / (2 * np.pi))
    before = np.minimum(place.astype(np.intp), 63)
    part = place - before.astype(np.float32)
    return np.asarray(swing[before] * (1 - part) + swing[before + 1] * part, dtype=np.float32)


def draw_chromatin(rng: np.random.Generator) -> Reals:
    """Return clumpy noise of unit variance, grains of 1 um among finer ones, from which nuclei take a piece each."""
    clumps = smooth_noise(rng, _CHROMATIN_PX, 11) + 0.5 * smooth_noise(rng, _CHROMATIN_PX, 5)
    return np.asarray(clumps / float(clumps.std()), dtype=np.float32)


def _nucleolus(rng: np.random.Generator, x: Reals, y: Reals, width: float) -> Reals:
    """Return the extra haematoxylin of a nucleolus of 1-2 um."""
    u, v = rng.uniform(-0.4, 0.4) * width, rng.uniform(-0.4, 0.4) * width
    distance = np.hypot(x - u, y - v)
    return np.asarray(70 * np.clip((rng.uniform(2.6, 4.6) - distance) / 2, 0, 1), dtype=np.float32)
