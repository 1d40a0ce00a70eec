"""Where everything lies on a phantom slide: disjoint regions as polygons in level-0 pixels, and their raster."""

from dataclasses import dataclass
from enum import IntEnum
from typing import TypeAlias

import numpy as np
import shapely
from numpy.typing import NDArray
from PIL import Image, ImageDraw
from shapely import affinity
from shapely.geometry import MultiPolygon, Point, Polygon

from pathnav.geometry import Box

CELL = 8  # level-0 px along a side of one raster cell (2 um, a quarter of a nucleus)
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

    @property
    def class_name(self) -> str:
        """The class of the annotation file."""
        return "tumor" if self.is_tumour else self.name.lower()


@dataclass(frozen=True, slots=True)
class Region:
    """One region and its exact outline in level-0 pixels."""

    tissue: Tissue
    shape: Shape


@dataclass(frozen=True)
class Layout:
    """The plan of a phantom slide.

    Args:
        side: Width and height of the slide in level-0 pixels.
        outline: The whole section, everything that is not glass.
        regions: Disjoint regions inside the outline; what none of them covers is stroma.
        raster: uint8 of `Tissue`, shape (ceil(side / CELL),) * 2.
    """

    side: int
    outline: Shape
    regions: tuple[Region, ...]
    raster: NDArray[np.uint8]

    @property
    def cells(self) -> int:
        """Rows and columns of the raster."""
        return len(self.raster)

    @property
    def tumour(self) -> Shape:
        """The union of all tumour regions."""
        return _as_shape(shapely.union_all([region.shape for region in self.regions if region.tissue.is_tumour]))

    def tissue_at(self, xy: NDArray[np.number]) -> NDArray[np.uint8]:
        """Return the tissue of level-0 points, rows (x, y), to the raster's precision."""
        cells = (xy // CELL).astype(np.intp)
        tissue: NDArray[np.uint8] = self.raster[cells[:, 1], cells[:, 0]]
        return tissue

    def cut(self, raster: NDArray[np.generic], box: Box) -> NDArray[np.generic]:
        """Return the part of a raster of this layout's cells that a level-0 box covers; never empty."""
        rows = slice(int(box.y) // CELL, max(int(box.y) // CELL + 1, int(box.bottom) // CELL))
        columns = slice(int(box.x) // CELL, max(int(box.x) // CELL + 1, int(box.right) // CELL))
        return raster[rows, columns]

    def shares(self, box: Box) -> dict[Tissue, float]:
        """Return the share of a level-0 box that each tissue covers, to the raster's precision."""
        window = self.cut(self.raster, box)
        counts = np.bincount(window.ravel().astype(np.intp), minlength=len(Tissue))
        return {tissue: float(counts[tissue]) / window.size for tissue in Tissue}


@dataclass(frozen=True, slots=True)
class _Wish:
    """A region to find room for: its tissue and its mean radius as a share of the slide's side."""

    tissue: Tissue
    radius: float


def plan_layout(rng: np.random.Generator, side: int) -> Layout:
    """Return a plan for a slide of `side` x `side` level-0 pixels."""
    outline = _section(rng, side)
    blobs = [(wish.tissue, blob) for wish, blob in _place(rng, side, outline)]
    regions: list[Region] = []
    covered: Shape = Polygon()
    for tissue, blob in sorted(blobs, key=lambda pair: -pair[0]):
        free = _as_shape(shapely.intersection(blob, outline).difference(covered))
        if free.area > (side / 100) ** 2:
            regions.append(Region(tissue, free))
            covered = _as_shape(covered.union(free))
    regions.sort(key=lambda region: (region.tissue, region.shape.bounds))
    return Layout(side, outline, tuple(regions), _rasterise(side, outline, regions))


def _section(rng: np.random.Generator, side: int) -> Shape:
    """Return the outline of the tissue section, with glass all around it."""
    body = _fitted(_blob(rng, (0.0, 0.0), side * 0.46, 0.10, 1.7), side)
    centre = (side / 2, side / 2)
    notch_angle = rng.uniform(0, 2 * np.pi)
    notch_centre = (centre[0] + 0.47 * side * np.cos(notch_angle), centre[1] + 0.47 * side * np.sin(notch_angle))
    notch = _blob(rng, notch_centre, side * 0.09, 0.4)
    return _as_shape(body.difference(notch))


def _fitted(body: Shape, side: int) -> Shape:
    """Return a shape stretched to fill the slide but for a margin of glass, so that no edge of it is cut straight."""
    left, top, right, bottom = body.bounds
    margin = 0.035 * side
    across, down = (side - 2 * margin) / (right - left), (side - 2 * margin) / (bottom - top)
    return _as_shape(affinity.affine_transform(body, [across, 0, 0, down, margin - left * across, margin - top * down]))


def _blob(
    rng: np.random.Generator, centre: tuple[float, float], radius: float, roughness: float, falloff: float = 1.15
) -> Shape:
    """Return a lobed outline around a centre.

    Args:
        rng: Where the randomness comes from.
        centre: (x, y) in level-0 pixels.
        radius: Mean radius in level-0 pixels.
        roughness: Relative standard deviation of the radius.
        falloff: How fast ever smaller lobes grow flat; 1 is jagged, 2 smooth.
    """
    angles = np.linspace(0, 2 * np.pi, max(64, min(360, int(radius / 3))), endpoint=False)
    harmonics = np.arange(2, 24)
    weights = rng.standard_normal((2, harmonics.size)) / harmonics**falloff
    waves = np.array([np.cos(np.outer(harmonics, angles)), np.sin(np.outer(harmonics, angles))])
    swing = np.einsum("ab,abc->c", weights, waves)
    radii = radius * np.clip(1 + roughness * swing / swing.std(), 0.35, 2.0)
    points = np.column_stack([centre[0] + radii * np.cos(angles), centre[1] + radii * np.sin(angles)])
    return _as_shape(shapely.make_valid(Polygon(np.round(points, 1))))


def _wishes(rng: np.random.Generator, side: int) -> list[_Wish]:
    """Return what a slide of this side shall hold, the most important first."""
    main = [Tissue.SHEETS, Tissue.PALE, Tissue.NESTS][: 1 if side < 2048 else 2 if side < 3072 else 3]
    wishes = [_Wish(tissue, rng.uniform(0.105, 0.13)) for tissue in main]
    wishes += [_Wish(Tissue.GLANDS, rng.uniform(0.10, 0.125)) for _ in range(2)]
    wishes += [_Wish(Tissue.FAT, rng.uniform(0.09, 0.13)) for _ in range(2)]
    if side >= 12_288:
        wishes += [_Wish(tissue, rng.uniform(0.03, 0.045)) for tissue in (Tissue.NESTS, Tissue.SHEETS)]
    wishes += [_Wish(Tissue.LYMPHOID, rng.uniform(0.028, 0.043)) for _ in range(3 if side < 3072 else 6)]
    return wishes


def _place(rng: np.random.Generator, side: int, outline: Shape) -> list[tuple[_Wish, Shape]]:
    """Return the wishes with their blobs, each put where it has most room among a few tries."""
    placed: list[tuple[_Wish, tuple[float, float], Shape]] = []
    for wish in _wishes(rng, side):
        tries = [(rng.uniform(0.08, 0.92) * side, rng.uniform(0.08, 0.92) * side) for _ in range(60)]
        inside = [point for point in tries if outline.contains(Point(point))] or [(side / 2, side / 2)]
        others = [(centre, other.radius * side) for other, centre, _ in placed]
        best = max(inside, key=lambda point: _room(point, wish.radius * side, outline, others))
        placed.append((wish, best, _blob(rng, best, wish.radius * side, 0.2)))
    return [(wish, blob) for wish, _, blob in placed]


def _room(
    point: tuple[float, float], radius: float, outline: Shape, others: list[tuple[tuple[float, float], float]]
) -> float:
    """Return the clearance of a disc in level-0 pixels, capped where more of it is no better."""
    edge = outline.boundary.distance(Point(point)) - 0.8 * radius
    gaps = [float(np.hypot(point[0] - x, point[1] - y)) - radius - taken for (x, y), taken in others]
    return float(min([edge, *gaps]))


def _rasterise(side: int, outline: Shape, regions: list[Region]) -> NDArray[np.uint8]:
    """Return the tissue of each raster cell, taken at its centre."""
    cells = -(-side // CELL)
    image = Image.new("L", (cells, cells), int(Tissue.GLASS))
    for tissue, shape in [(Tissue.STROMA, outline), *((region.tissue, region.shape) for region in regions)]:
        for part in shapely.get_parts(shape):
            _paint(image, part, int(tissue))
    return np.array(image)


def _paint(image: Image.Image, polygon: Polygon, value: int) -> None:
    """Fill a polygon; its holes keep what was there."""
    mask = Image.new("1", image.size, 0)
    draw = ImageDraw.Draw(mask)
    draw.polygon([(x / CELL - 0.5, y / CELL - 0.5) for x, y in polygon.exterior.coords], fill=1)
    for hole in polygon.interiors:
        draw.polygon([(x / CELL - 0.5, y / CELL - 0.5) for x, y in hole.coords], fill=0)
    image.paste(value, mask=mask)


def _as_shape(geometry: object) -> Shape:
    """Return the polygons of a geometry, without stray lines and points."""
    parts = [part for part in shapely.get_parts(geometry) if part.geom_type in ("Polygon", "MultiPolygon")]
    polygons = [polygon for part in parts for polygon in shapely.get_parts(part)]
    return polygons[0] if len(polygons) == 1 else MultiPolygon(polygons)
