"""Where everything lies on a phantom slide: disjoint regions as polygons in level-0 pixels, and their raster."""

from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property
from typing import TypeAlias

import numpy as np
import shapely
from numpy.typing import NDArray
from PIL import Image, ImageDraw
from shapely import affinity
from shapely.geometry import MultiPolygon, Point, Polygon

from pathnav.phantom.noise import BLOCK_PX, wave

CELL_PX = 8  # level-0 px along a side of one raster cell (2 um, a quarter of a nucleus)
_MARGIN = 0.035  # glass around the section, in sides of the slide
Shape: TypeAlias = Polygon | MultiPolygon


class Tissue(IntEnum):
    """What a place of the slide consists of; the numbers are those of the raster."""

    GLASS = 0
    STROMA = 1
    FAT = 2
    GLANDS = 3
    LYMPHOID = 4
    SHEETS = 5  # tumour: solid, hyperchromatic
    NESTS = 6  # tumour: irregular nests in desmoplastic stroma
    PALE = 7  # tumour: pale and sparse

    @property
    def is_tumour(self) -> bool:
        """Whether this is one of the three growth patterns of the tumour."""
        return self >= Tissue.SHEETS


@dataclass(frozen=True)
class Layout:
    """The plan of a phantom slide."""

    side: int  # width and height of the slide in level-0 pixels
    outline: Shape  # the whole section, everything that is not glass
    regions: tuple[tuple[Tissue, Shape], ...]  # disjoint, inside the outline; what none of them covers is stroma
    raster: NDArray[np.uint8]  # tissue by cell, a square that covers whole blocks

    @cached_property
    def tumour(self) -> Shape:
        """The union of all tumour regions."""
        return as_shape(shapely.union_all([shape for tissue, shape in self.regions if tissue.is_tumour]))

    def tissue_at(self, xy: NDArray[np.number]) -> NDArray[np.uint8]:
        """Return the tissue of level-0 points, rows (x, y), to the raster's precision."""
        tissue: NDArray[np.uint8] = self.raster[cells_of(xy)]
        return tissue


def cells_of(xy: NDArray[np.number]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return rows and columns of the raster cells that hold level-0 points, rows (x, y, ...)."""
    return (xy[:, 1] // CELL_PX).astype(np.intp), (xy[:, 0] // CELL_PX).astype(np.intp)


def plan_layout(rng: np.random.Generator, side: int) -> Layout:
    """Return a plan for a slide of `side` x `side` level-0 pixels."""
    outline = _section(rng, side)
    regions: list[tuple[Tissue, Shape]] = []
    covered: Shape = Polygon()
    for tissue, blob in sorted(_blobs(rng, side, outline), key=lambda pair: -pair[0]):
        free = as_shape(shapely.intersection(blob, outline).difference(covered))
        if free.area > (side / 100) ** 2:
            regions.append((tissue, free))
            covered = as_shape(covered.union(free))
    regions.sort(key=lambda region: (region[0], region[1].bounds))
    return Layout(side, outline, tuple(regions), _raster(side, [(Tissue.STROMA, outline), *regions]))


def _section(rng: np.random.Generator, side: int) -> Shape:
    """Return the outline of the tissue section, stretched to leave a margin of glass all around, with a notch."""
    body = _blob(rng, (0, 0), side * 0.46, 0.10, 1.7)
    left, top, right, bottom = body.bounds
    margin = _MARGIN * side
    across, down = (side - 2 * margin) / (right - left), (side - 2 * margin) / (bottom - top)
    body = affinity.affine_transform(body, [across, 0, 0, down, margin - left * across, margin - top * down])
    turn = rng.uniform(0, 2 * np.pi)
    centre = side * (0.5 + 0.47 * np.cos(turn)), side * (0.5 + 0.47 * np.sin(turn))
    return as_shape(body.difference(_blob(rng, centre, side * 0.09, 0.4)))


def _blob(
    rng: np.random.Generator, centre: tuple[float, float], radius: float, roughness: float, falloff: float = 1.15
) -> Shape:
    """Return a lobed outline around a centre; `roughness` is the relative standard deviation of its radius."""
    angles = np.linspace(0, 2 * np.pi, max(64, min(360, int(radius / 3))), endpoint=False)
    radii = radius * np.clip(1 + roughness * wave(rng, 23, falloff)(angles), 0.35, 2.0)
    points = np.column_stack([centre[0] + radii * np.cos(angles), centre[1] + radii * np.sin(angles)])
    return as_shape(shapely.make_valid(Polygon(np.round(points, 1))))


def _wishes(rng: np.random.Generator, side: int) -> list[tuple[Tissue, float]]:
    """Return what a slide shall hold, the most important first: tissue and mean radius in sides of the slide."""
    patterns = [Tissue.SHEETS, Tissue.PALE, Tissue.NESTS][: 1 if side < 2048 else 2 if side < 3072 else 3]
    wishes = [(tissue, rng.uniform(0.105, 0.13)) for tissue in patterns]
    wishes += [(Tissue.GLANDS, rng.uniform(0.10, 0.125)) for _ in range(2)]
    wishes += [(Tissue.FAT, rng.uniform(0.09, 0.13)) for _ in range(2)]
    if side >= 12_288:
        wishes += [(tissue, rng.uniform(0.03, 0.045)) for tissue in (Tissue.NESTS, Tissue.SHEETS)]
    return wishes + [(Tissue.LYMPHOID, rng.uniform(0.028, 0.043)) for _ in range(3 if side < 3072 else 6)]


def _blobs(rng: np.random.Generator, side: int, outline: Shape) -> list[tuple[Tissue, Shape]]:
    """Return the wishes as shapes that may overlap, each put where it has most room among a few tries."""
    placed: list[tuple[float, float, float]] = []

    def room(point: tuple[float, float], radius: float) -> float:
        gaps = [float(np.hypot(point[0] - x, point[1] - y)) - radius - taken for x, y, taken in placed]
        return min([float(outline.boundary.distance(Point(point))) - 0.8 * radius, *gaps])

    blobs = []
    for tissue, share in _wishes(rng, side):
        radius = share * side
        tries = [(float(x), float(y)) for x, y in rng.uniform(0.08, 0.92, (60, 2)) * side]
        inside = [point for point in tries if outline.contains(Point(point))] or [(side / 2, side / 2)]
        best = inside[int(np.argmax([room(point, radius) for point in inside]))]
        placed.append((*best, radius))
        blobs.append((tissue, _blob(rng, best, radius, 0.2)))
    return blobs


def _raster(side: int, regions: list[tuple[Tissue, Shape]]) -> NDArray[np.uint8]:
    """Return the tissue of each cell, taken at its centre; regions later in the list lie above earlier ones."""
    cells = -(-side // BLOCK_PX) * BLOCK_PX // CELL_PX
    image = Image.new("L", (cells, cells), int(Tissue.GLASS))
    for tissue, shape in regions:
        mask = Image.new("1", image.size, 0)
        draw = ImageDraw.Draw(mask)
        for polygon in sorted(shapely.get_parts(shape), key=lambda part: -part.area):
            for ring, fill in ((polygon.exterior, 1), *((hole, 0) for hole in polygon.interiors)):
                draw.polygon([(x / CELL_PX - 0.5, y / CELL_PX - 0.5) for x, y in ring.coords], fill=fill)
        image.paste(int(tissue), mask=mask)
    return np.array(image)


def as_shape(geometry: object) -> Shape:
    """Return the polygons of a geometry, without stray lines and points."""
    parts = [part for part in shapely.get_parts(geometry) if part.geom_type in ("Polygon", "MultiPolygon")]
    polygons = [polygon for part in parts for polygon in shapely.get_parts(part)]
    return polygons[0] if len(polygons) == 1 else MultiPolygon(polygons)
