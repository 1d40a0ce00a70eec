"""Where the nuclei, glands, vessels and fat cells of a phantom slide lie, in level-0 pixels."""

import math
from dataclasses import dataclass
from enum import Enum

import numpy as np
import shapely
from numpy.typing import NDArray

from pathnav.cohort.phantom_decals import Decal
from pathnav.cohort.phantom_fibres import Fibres
from pathnav.cohort.phantom_layout import CELL, Layout, Tissue
from pathnav.cohort.phantom_noise import Reals, Window, blurred, smooth_noise
from pathnav.cohort.phantom_stamps import Nucleus, StampBank

Points = NDArray[np.float32]
FAT_CELL_PX = 232  # mean distance of fat cells, 58 um
FAT_REACH_PX = 150  # a fat cell without neighbours grows to this radius
_FRINGE_PX = 90  # over which an aggregate thins out


@dataclass(frozen=True, slots=True)
class Placed:
    """Many pasted things, in the order they are pasted.

    Args:
        xy: int32, shape (n, 2), centres in level-0 pixels.
        kind: uint8, shape (n,): which bank.
        stamp: int32, shape (n,): which stamp of that bank.
    """

    xy: NDArray[np.int32]
    kind: NDArray[np.uint8]
    stamp: NDArray[np.int32]

    def near(self, window: Window, reach: int) -> "Placed":
        """Return those whose centre lies within `reach` pixels of a window (x, y, width, height)."""
        x, y, width, height = window
        column, row = self.xy[:, 0], self.xy[:, 1]
        keep = (column > x - reach) & (column < x + width + reach) & (row > y - reach) & (row < y + height + reach)
        return Placed(self.xy[keep], self.kind[keep], self.stamp[keep])


class Map(Enum):
    """Where within its tissues a kind of nucleus grows."""

    EVERYWHERE = 0
    PATCHES = 1
    FRINGE = 2


@dataclass(frozen=True, slots=True)
class Sowing:
    """How densely one kind of nucleus grows in some tissues.

    Args:
        kind: The nucleus.
        tissues: Where it grows.
        spacing_px: Distance of neighbours in level-0 pixels, were all places taken.
        keep: Share of the places taken.
        in_nests: Only inside (True) or outside (False) of tumour nests; None for both.
        where: Which map the share follows besides: none, patches (zero in most places), or the aggregates' fringe.
    """

    kind: Nucleus
    tissues: tuple[Tissue, ...]
    spacing_px: float
    keep: float
    in_nests: bool | None = None
    where: Map = Map.EVERYWHERE


SOWINGS = (
    Sowing(Nucleus.TUMOUR, (Tissue.SHEETS,), 50, 0.93, in_nests=True),
    Sowing(Nucleus.TUMOUR, (Tissue.NESTS,), 55, 0.86, in_nests=True),
    Sowing(Nucleus.PALE, (Tissue.PALE,), 66, 0.6, in_nests=True),
    Sowing(Nucleus.LYMPHOCYTE, (Tissue.LYMPHOID, Tissue.STROMA, Tissue.GLANDS), 29, 1.0, where=Map.FRINGE),
    Sowing(Nucleus.LYMPHOCYTE, (Tissue.STROMA, Tissue.GLANDS), 36, 0.8, where=Map.PATCHES),
    Sowing(Nucleus.LYMPHOCYTE, (Tissue.STROMA, Tissue.GLANDS, Tissue.NESTS, Tissue.PALE), 60, 0.03),
    Sowing(Nucleus.STROMAL, (Tissue.SHEETS, Tissue.NESTS, Tissue.PALE), 60, 0.55, in_nests=False),
    Sowing(Nucleus.STROMAL, (Tissue.STROMA, Tissue.GLANDS), 72, 0.4),
)


def hex_points(rng: np.random.Generator, side: int, spacing: float, jitter: float = 0.28) -> Points:
    """Return a shaken hexagonal grid over the slide; no two points come closer than about half the spacing."""
    rows, columns = int(side / (spacing * 0.866)) + 1, int(side / spacing) + 1
    y, x = np.mgrid[0:rows, 0:columns].astype(np.float32)
    x = (x + 0.5 * (y % 2) + rng.uniform(-jitter, jitter, x.shape)) * spacing
    y = (y + 0.5 + rng.uniform(-jitter, jitter, y.shape)) * spacing * 0.866
    points = np.column_stack([x.ravel(), y.ravel()]).astype(np.float32)
    inside: Points = points[((points >= 0) & (points < side)).all(axis=1)]
    return inside


class CellSower:
    """Puts nuclei where the layout lets them grow, never two in one place.

    Args:
        layout: The regions.
        nests: bool raster, True in cells of the layout's raster that hold tumour nests.
        fibres: What spindle nuclei follow.
        banks: The stamps to choose from.
    """

    def __init__(
        self, layout: Layout, nests: NDArray[np.bool_], fibres: Fibres, banks: dict[Nucleus, StampBank]
    ) -> None:
        self._layout, self._nests, self._fibres, self._banks = layout, nests, fibres, banks
        self._taken = np.zeros_like(nests)

    def block(self, centres: NDArray[np.number], radii: NDArray[np.floating]) -> None:
        """Keep discs (level-0 pixels) free of nuclei: glands and vessels bring their own."""
        for (x, y), radius in zip(centres, radii, strict=True):
            top, left = max(0, int((y - radius) / CELL)), max(0, int((x - radius) / CELL))
            window = self._taken[top : int((y + radius) / CELL) + 2, left : int((x + radius) / CELL) + 2]
            rows, columns = np.indices(window.shape)
            distance = np.hypot((columns + left + 0.5) * CELL - x, (rows + top + 0.5) * CELL - y)
            window |= distance < radius

    def sow(self, rng: np.random.Generator, fat_cells: NDArray[np.float32]) -> Placed:
        """Return all nuclei that no gland or vessel brings; `fat_cells` as `place_fat_cells` gives them."""
        patches = np.clip((smooth_noise(rng, self._taken.shape[0], 1100 / CELL) - 0.95) * 1.8, 0, 1)
        aggregates = np.where(self._layout.raster == Tissue.LYMPHOID, np.uint8(255), np.uint8(0))
        fringe = (blurred(aggregates, _FRINGE_PX / CELL) / np.float32(255)) ** 1.5
        maps = {Map.PATCHES: patches, Map.FRINGE: fringe}
        parts = [self._grow(rng, sowing, maps.get(sowing.where)) for sowing in SOWINGS]
        parts.append(self._between_fat_cells(rng, fat_cells))
        return Placed(
            np.concatenate([part.xy for part in parts]),
            np.concatenate([part.kind for part in parts]),
            np.concatenate([part.stamp for part in parts]),
        )

    def _grow(self, rng: np.random.Generator, sowing: Sowing, share: Reals | None) -> Placed:
        points = hex_points(rng, self._layout.side, sowing.spacing_px)
        rows, columns = (points[:, 1] // CELL).astype(np.intp), (points[:, 0] // CELL).astype(np.intp)
        chance = np.full(len(points), sowing.keep, dtype=np.float32)
        if share is not None:
            chance *= share[rows, columns]
        keep = (rng.random(len(points)) < chance) & ~self._taken[rows, columns]
        keep &= np.isin(self._layout.raster[rows, columns], sowing.tissues)
        if sowing.in_nests is not None:
            keep &= self._nests[rows, columns] == sowing.in_nests
        points = self._within(points[keep], sowing)
        self._take(points)
        bank = self._banks[sowing.kind]
        xy = np.rint(points).astype(np.int32)
        return Placed(xy, np.full(len(xy), sowing.kind, np.uint8), self._stamps(rng, points, bank))

    def _within(self, points: Points, sowing: Sowing) -> Points:
        """Return the points; of tumour cells those that lie inside the polygons exactly, not only by the raster."""
        if sowing.kind not in (Nucleus.TUMOUR, Nucleus.PALE):
            return points
        tumour = self._layout.tumour
        shapely.prepare(tumour)
        inside: Points = points[shapely.contains_xy(tumour, points[:, 0], points[:, 1])]
        return inside

    def _stamps(self, rng: np.random.Generator, points: Points, bank: StampBank) -> NDArray[np.int32]:
        count = len(bank.stamps)
        if not bank.oriented:
            return rng.integers(0, count, len(points), dtype=np.int32)
        angle = self._fibres.angle_at(points[:, 0], points[:, 1]) + rng.normal(0, 0.16, len(points))
        return np.asarray(np.rint(angle / np.pi * count) % count, dtype=np.int32)

    def _between_fat_cells(self, rng: np.random.Generator, fat_cells: NDArray[np.float32]) -> Placed:
        """Return thin nuclei on the membrane between some fat cells and their next neighbours."""
        found = [_membrane(fat_cells, index) for index in np.flatnonzero(rng.random(len(fat_cells)) < 0.5).tolist()]
        xy = np.array([(x, y) for x, y, _ in found], dtype=np.float32).reshape(-1, 2)
        bank = self._banks[Nucleus.STROMAL]
        steps = [round(angle / np.pi * len(bank.stamps)) % len(bank.stamps) for _, _, angle in found]
        kinds = np.full(len(xy), Nucleus.STROMAL, np.uint8)
        return Placed(np.rint(xy).astype(np.int32), kinds, np.array(steps, dtype=np.int32))

    def _take(self, points: Points) -> None:
        """Mark the places of points, 3 x 3 raster cells each, as taken."""
        last = self._taken.shape[0] - 1
        rows, columns = (points[:, 1] // CELL).astype(np.intp), (points[:, 0] // CELL).astype(np.intp)
        for down in (-1, 0, 1):
            for across in (-1, 0, 1):
                self._taken[np.clip(rows + down, 0, last), np.clip(columns + across, 0, last)] = True


def _membrane(fat_cells: NDArray[np.float32], index: int) -> tuple[float, float, float]:
    """Return the middle (x, y) of the membrane between a fat cell and its next neighbour, and its direction."""
    x, y, bonus = fat_cells[index].tolist()
    gaps = np.hypot(fat_cells[:, 0] - x, fat_cells[:, 1] - y) - fat_cells[:, 2]
    gaps[index] = np.inf
    other_x, other_y, other_bonus = fat_cells[int(np.argmin(gaps)) if len(gaps) > 1 else index].tolist()
    apart = max(1.0, math.hypot(other_x - x, other_y - y))
    part = 0.5 + (bonus - other_bonus) / (2 * apart)
    direction = math.atan2(other_y - y, other_x - x) + math.pi / 2
    return x + part * (other_x - x), y + part * (other_y - y), direction


def place_decals(
    rng: np.random.Generator, layout: Layout, decals: tuple[Decal, ...], tissue: Tissue, share: float
) -> Placed:
    """Return decals packed into a tissue without overlap.

    Args:
        rng: Where the randomness comes from.
        layout: The regions.
        decals: What to choose from.
        tissue: Where they go.
        share: Tries per area of one mean decal; 9 pack a region densely.
    """
    radii = np.array([decal.radius_px for decal in decals])
    points = hex_points(rng, layout.side, float(np.sqrt(np.pi / share) * radii.mean()))
    points = points[rng.permutation(len(points))]
    rows, columns = (points[:, 1] // CELL).astype(np.intp), (points[:, 0] // CELL).astype(np.intp)
    points = points[layout.raster[rows, columns] == tissue]
    chosen = rng.integers(0, len(decals), len(points))
    kept = _pack(points, radii[chosen], _room_at(layout, tissue, points))
    return Placed(
        np.rint(points[kept]).astype(np.int32),
        np.full(len(kept), tissue, np.uint8),
        chosen[kept].astype(np.int32),
    )


def _room_at(layout: Layout, tissue: Tissue, points: Points) -> NDArray[np.float64]:
    """Return the distance of points to the nearest border of their tissue, in level-0 pixels."""
    own = [region.shape for region in layout.regions if region.tissue == tissue]
    shapes = own or [layout.outline, *(region.shape for region in layout.regions)]
    borders = shapely.union_all([shape.boundary for shape in shapes])
    shapely.prepare(borders)
    distance: NDArray[np.float64] = shapely.distance(borders, shapely.points(points.astype(np.float64)))
    return distance


def _pack(points: Points, radii: NDArray[np.float64], room: NDArray[np.float64]) -> NDArray[np.intp]:
    """Return the indices of discs that fit their room and overlap none kept before."""
    kept: list[int] = []
    for index in np.flatnonzero(room > 0.95 * radii):
        gap = np.hypot(*(points[kept] - points[index]).T) - radii[kept] - radii[index]
        if not kept or gap.min() > 6:
            kept.append(int(index))
    return np.array(kept, dtype=np.intp)


def place_fat_cells(rng: np.random.Generator, layout: Layout) -> NDArray[np.float32]:
    """Return the fat cells as rows (x, y, radius bonus) in level-0 pixels, shape (n, 3); none leaves the fat."""
    points = hex_points(rng, layout.side, FAT_CELL_PX, 0.24)
    points = points[layout.tissue_at(points) == Tissue.FAT]
    room = _room_at(layout, Tissue.FAT, points)
    bonus = np.minimum(rng.uniform(-24, 24, len(points)), room - FAT_REACH_PX)
    kept = bonus > -45
    return np.column_stack([points[kept], bonus[kept]]).astype(np.float32)
