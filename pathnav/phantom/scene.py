"""All that is drawn on a phantom slide, ready to be rendered block by block: the ground, and what lies on it."""

import numpy as np
import shapely
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from pathnav.phantom.layout import CELL_PX, Layout, Tissue, cells_of, plan_layout
from pathnav.phantom.noise import Plane, Reals, blurred, draw_fibres, smooth_noise, streams, texture, to_plane
from pathnav.phantom.stamps import STAMPS, Decal, Nucleus, draw_glands, draw_nuclei, draw_vessels

FAT_CELL_PX = 232  # mean distance of fat cells, 58 um
FAT_REACH_PX = 150  # a fat cell without neighbours grows to this radius
_PEN_RGB = ((38, 62, 160), (24, 118, 72), (44, 42, 52))  # blue, green and black markers

# Eosin, strength of the fibres and haematoxylin of each tissue, 0..255.
_OPEN = {
    Tissue.GLASS: (0, 0, 0),
    Tissue.STROMA: (106, 78, 6),
    Tissue.FAT: (88, 40, 5),
    Tissue.GLANDS: (86, 66, 9),
    Tissue.LYMPHOID: (46, 18, 24),
    Tissue.SHEETS: (92, 60, 12),
    Tissue.NESTS: (96, 66, 14),
    Tissue.PALE: (60, 56, 10),
}
# The same inside tumour nests: cytoplasm instead of collagen.
_NESTS = {Tissue.SHEETS: (92, 14, 46), Tissue.NESTS: (88, 14, 38), Tissue.PALE: (46, 16, 18)}
# Where a noise of unit variance exceeds this, tumour is nests; else it is the stroma between them.
_NEST_CUT = {Tissue.SHEETS: -1.25, Tissue.NESTS: 0.05, Tissue.PALE: -0.6}

Placed = NDArray[np.int32]
"""Things on the slide as rows (x, y, which): centres in level-0 pixels, and the number of the stamp or decal."""


# Nucleus, distance of neighbours in level-0 pixels were all places taken, share of the places taken, the map that this
# share follows besides, and the tissues.
_SOWINGS = (
    (Nucleus.TUMOUR, 50, 0.93, "nests", (Tissue.SHEETS,)),
    (Nucleus.TUMOUR, 55, 0.86, "nests", (Tissue.NESTS,)),
    (Nucleus.PALE, 66, 0.6, "nests", (Tissue.PALE,)),
    (Nucleus.LYMPHOCYTE, 29, 1.0, "aggregates", (Tissue.LYMPHOID, Tissue.STROMA, Tissue.GLANDS)),
    (Nucleus.LYMPHOCYTE, 36, 0.8, "patches", (Tissue.STROMA, Tissue.GLANDS)),
    (Nucleus.LYMPHOCYTE, 60, 0.03, "everywhere", (Tissue.STROMA, Tissue.GLANDS, Tissue.NESTS, Tissue.PALE)),
    (Nucleus.STROMAL, 60, 0.55, "between nests", (Tissue.SHEETS, Tissue.NESTS, Tissue.PALE)),
    (Nucleus.STROMAL, 72, 0.4, "everywhere", (Tissue.STROMA, Tissue.GLANDS)),
)


class Scene:
    """A phantom slide before it is rendered; the same seed and side give the same one, with or without a pen.

    Maps have a pixel for CELL_PX x CELL_PX level-0 pixels.
    """

    def __init__(self, seed: int, side: int, *, pen: bool = False) -> None:
        rng = streams(seed, side)
        self.layout = layout = plan_layout(rng("layout"), side)
        cells = len(layout.raster)
        self.cover = np.where(layout.raster == Tissue.GLASS, np.uint8(0), np.uint8(255))  # map of the section
        # Maps of tumour cells rather than the stroma between them; of eosin, visibility of collagen and haematoxylin;
        # and of the local strength of eosin and haematoxylin.
        self.nests, self.ground = _ground(rng("ground"), layout)
        self.gains = [_drift(rng(f"{stain} drift"), cells) for stain in ("eosin", "haematoxylin")]

        # Textures about 128: collagen; cytoplasm, and the frayed edge of the section (6 um); the camera's noise.
        self.fibres, angles = draw_fibres(rng("fibres"))
        self.mottle = texture(to_plane(128 + 40 * smooth_noise(rng("mottle"), 1024, 26)))
        self.grain = texture(to_plane(128 + 9 * rng("grain").standard_normal((512, 512), dtype=np.float32)))

        self.stamps = draw_nuclei(rng("nuclei"))
        glands, vessels = draw_glands(rng("glands"), self.stamps), draw_vessels(rng("vessels"), self.stamps)
        self.decals = glands + vessels
        self.glands = _place(rng("gland places"), layout, glands, Tissue.GLANDS, 9.0)  # packs a region densely
        self.vessels = _place(rng("vessel places"), layout, vessels, Tissue.STROMA, 0.05)  # scattered
        self.vessels[:, 2] += len(glands)
        self.fat_cells = _fat_cells(rng("fat cells"), layout)  # rows (x, y, radius bonus)
        pasted = np.concatenate([self.glands, self.vessels]).tolist()
        discs = [(x, y, 1.08 * self.decals[which].radius_px) for x, y, which in pasted]
        discs += [(x, y, FAT_REACH_PX + bonus + 8) for x, y, bonus in self.fat_cells.tolist()]
        sown = _sow(rng("cells"), layout, self.nests, angles, _discs(cells, discs))
        # All but those that glands and vessels bring.
        self.nuclei = np.concatenate([sown, _between_fat_cells(rng("membranes"), self.fat_cells)])
        self.pen = _pen_mark(rng("pen"), layout) if pen else None  # map: 255 where ink lets nothing through
        self.pen_rgb = _PEN_RGB[int(rng("ink").integers(len(_PEN_RGB)))]


def _drift(rng: np.random.Generator, cells: int) -> Plane:
    """Return the stain's local strength, 128 for normal: it drifts over the slide by up to a quarter each way."""
    return to_plane(128 * (1 + 0.13 * np.clip(smooth_noise(rng, cells, 0.47 * cells), -2, 2)))


def _ground(rng: np.random.Generator, layout: Layout) -> tuple[NDArray[np.bool_], list[Plane]]:
    """Return maps of tumour nests, and of eosin, fibre strength and haematoxylin below all cells."""
    cut = np.array([_NEST_CUT.get(tissue, np.inf) for tissue in Tissue], dtype=np.float32)
    # How far a place lies inside (above 0) or outside a tumour nest, in standard deviations of a noise.
    depth = smooth_noise(rng, len(layout.raster), 300 / CELL_PX) - cut[layout.raster]
    outside = np.array([_OPEN[tissue] for tissue in Tissue], dtype=np.float32)
    inside = np.array([_NESTS.get(tissue, _OPEN[tissue]) for tissue in Tissue], dtype=np.float32)
    cells = len(layout.raster)
    cloud = smooth_noise(rng, cells, 700 / CELL_PX)
    # Tissue shrank away from some nests and left a cleft with an eighth of the stain.
    cleft = (depth <= 0) & (depth > -0.1) & (smooth_noise(rng, cells, 500 / CELL_PX) > 0.4)
    cleft &= layout.raster != Tissue.PALE
    planes = []
    for column, swing in enumerate((0.13, 0.0, 0.12)):
        values = np.where(depth > 0, inside[layout.raster, column], outside[layout.raster, column])
        values *= np.where(cleft, np.float32(0.12), 1 + swing * cloud)
        planes.append(blurred(to_plane(values), 0.9))
    return depth > 0, planes


def _hexagonal(rng: np.random.Generator, side: int, spacing: float, jitter: float = 0.28) -> Reals:
    """Return a shaken hexagonal grid over the slide, rows (x, y); no two come closer than about half the spacing."""
    rows, columns = int(side / (spacing * 0.866)) + 1, int(side / spacing) + 1
    y, x = np.mgrid[0:rows, 0:columns].astype(np.float32)
    x = (x + 0.5 * (y % 2) + rng.uniform(-jitter, jitter, x.shape)) * spacing
    y = (y + 0.5 + rng.uniform(-jitter, jitter, y.shape)) * spacing * 0.866
    points = np.column_stack([x.ravel(), y.ravel()]).astype(np.float32)
    inside: Reals = points[((points >= 0) & (points < side)).all(axis=1)]
    return inside


def _discs(cells: int, discs: list[tuple[float, float, float]]) -> NDArray[np.bool_]:
    """Return which cells lie in discs (x, y, radius) of level-0 pixels: glands and vessels bring their own nuclei."""
    image = Image.new("1", (cells, cells))
    draw = ImageDraw.Draw(image)
    for disc in discs:
        x, y, radius = (number / CELL_PX for number in disc)
        draw.ellipse((x - radius - 0.5, y - radius - 0.5, x + radius - 0.5, y + radius - 0.5), fill=1)
    return np.array(image)


def _sow(
    rng: np.random.Generator, layout: Layout, nests: NDArray[np.bool_], angles: Reals, taken: NDArray[np.bool_]
) -> Placed:
    """Return nuclei where the layout lets them grow, never two in one place; marks their places in `taken`."""
    aggregates = np.where(layout.raster == Tissue.LYMPHOID, np.uint8(255), np.uint8(0))
    shares = {
        "everywhere": np.ones_like(nests),
        "nests": nests,
        "between nests": ~nests,
        "patches": np.clip((smooth_noise(rng, len(taken), 1100 / CELL_PX) - 0.95) * 1.8, 0, 1),  # zero in most places
        "aggregates": (blurred(aggregates, 90 / CELL_PX) / np.float32(255)) ** 1.5,  # which thin out over 90 px
    }
    parts = []
    for kind, spacing, keep, where, tissues in _SOWINGS:
        points = _hexagonal(rng, layout.side, spacing)
        rows, columns = cells_of(points)
        kept = (rng.random(len(points)) < keep * shares[where][rows, columns]) & ~taken[rows, columns]
        points = points[kept & np.isin(layout.raster[rows, columns], tissues)]
        if kind in (Nucleus.TUMOUR, Nucleus.PALE):  # inside the polygons exactly, not only by the raster
            shapely.prepare(layout.tumour)
            points = points[shapely.contains_xy(layout.tumour, points[:, 0], points[:, 1])]
        rows, columns = cells_of(points)
        for down, across in np.ndindex(3, 3):  # no tissue lies at the raster's edge
            taken[rows + down - 1, columns + across - 1] = True
        which = rng.integers(0, STAMPS, len(points))
        if kind is Nucleus.STROMAL:  # spindles follow the fibres
            x, y = (points.astype(np.intp).T // 2) % len(angles)
            which = np.rint((angles[y, x] + rng.normal(0, 0.16, len(points))) / np.pi * STAMPS).astype(int) % STAMPS
        parts.append(np.column_stack([np.rint(points), kind * STAMPS + which]).astype(np.int32))
    return np.concatenate(parts)


def _place(rng: np.random.Generator, layout: Layout, decals: list[Decal], tissue: Tissue, share: float) -> Placed:
    """Return decals packed into a tissue without overlap; `share` is the number of tries per area of a mean one."""
    radii = np.array([decal.radius_px for decal in decals])
    points = _hexagonal(rng, layout.side, float(np.sqrt(np.pi / share) * radii.mean()))
    points = points[rng.permutation(len(points))]
    points = points[layout.tissue_at(points) == tissue]
    which = rng.integers(0, len(decals), len(points))
    radii = radii[which]
    kept: list[int] = []
    for index in np.flatnonzero(_room_at(layout, tissue, points) > 0.95 * radii).tolist():
        gaps = np.hypot(*(points[kept] - points[index]).T) - radii[kept] - radii[index]
        if not kept or gaps.min() > 6:
            kept.append(index)
    return np.column_stack([np.rint(points[kept]), which[kept]]).astype(np.int32)


def _room_at(layout: Layout, tissue: Tissue, points: Reals) -> NDArray[np.float64]:
    """Return the distance of points to the nearest border of their tissue, in level-0 pixels."""
    own = [shape for kind, shape in layout.regions if kind == tissue]
    shapes = own or [layout.outline, *(shape for _, shape in layout.regions)]
    borders = shapely.union_all([shape.boundary for shape in shapes])
    shapely.prepare(borders)
    distance: NDArray[np.float64] = shapely.distance(borders, shapely.points(points.astype(np.float64)))
    return distance


def _fat_cells(rng: np.random.Generator, layout: Layout) -> Reals:
    """Return the fat cells as rows (x, y, radius bonus) in level-0 pixels, shape (n, 3); none leaves the fat."""
    points = _hexagonal(rng, layout.side, FAT_CELL_PX, 0.24)
    points = points[layout.tissue_at(points) == Tissue.FAT]
    bonus = np.minimum(rng.uniform(-24, 24, len(points)), _room_at(layout, Tissue.FAT, points) - FAT_REACH_PX)
    kept = bonus > -45
    return np.column_stack([points[kept], bonus[kept]]).astype(np.float32)


def _between_fat_cells(rng: np.random.Generator, fat_cells: Reals) -> Placed:
    """Return thin nuclei on the membrane between some fat cells and their next neighbours."""
    found = []
    for index in np.flatnonzero(rng.random(len(fat_cells)) < 0.5).tolist() if len(fat_cells) > 1 else ():
        ahead = fat_cells - fat_cells[index]
        gaps = np.hypot(ahead[:, 0], ahead[:, 1]) - fat_cells[:, 2]
        gaps[index] = np.inf
        x, y, bonus = ahead[int(np.argmin(gaps))].tolist()
        part = 0.5 - bonus / (2 * max(1.0, float(np.hypot(x, y))))  # the larger cell pushes the membrane away
        which = Nucleus.STROMAL.pointing(float(np.arctan2(y, x)) + np.pi / 2)
        found.append((fat_cells[index, 0] + part * x, fat_cells[index, 1] + part * y, which))
    return np.rint(np.array(found, dtype=np.float64).reshape(-1, 3)).astype(np.int32)


def _pen_mark(rng: np.random.Generator, layout: Layout) -> Plane:
    """Return a hand-drawn open ring around benign tissue: a mark that gives the tumour away would be too kind."""
    cells = len(layout.raster)
    benign = [shape for tissue, shape in layout.regions if not tissue.is_tumour]
    glands = [shape for tissue, shape in layout.regions if tissue is Tissue.GLANDS]
    ringed = (glands or benign or [layout.outline])[0]
    radius = np.full(900, 1.45 * np.sqrt(ringed.area / np.pi))
    angles = np.linspace(0, rng.uniform(5.6, 6.6), 900) + rng.uniform(0, 2 * np.pi)
    radius *= 1 + 0.05 * np.sin(2 * angles + rng.uniform(0, 6)) + np.linspace(0, rng.uniform(-0.1, 0.12), 900)
    width = max(5, round(layout.side * 0.011 / CELL_PX))
    points = np.array(ringed.centroid.coords[0]) + radius[:, None] * np.column_stack([np.cos(angles), np.sin(angles)])
    image = Image.new("L", (cells, cells), 0)
    places = np.clip(points / CELL_PX, width, cells - width).ravel().tolist()
    ImageDraw.Draw(image).line(places, fill=212, width=width, joint="curve")  # ink lets a little light through
    return blurred(np.array(image), 0.8)


def near(rows: NDArray[np.number], x: int, y: int, side: int, reach: int) -> NDArray[np.bool_]:
    """Return which rows (x, y, ...) lie within `reach` pixels of a level-0 square."""
    across, down = rows[:, 0], rows[:, 1]
    inside = (across > x - reach) & (across < x + side + reach) & (down > y - reach) & (down < y + side + reach)
    return np.asarray(inside)
