"""Draws blocks of a phantom scene as RGB; pure, so that threads may share a scene."""

from functools import cache

import numpy as np
from numpy.typing import NDArray

from pathnav.phantom.layout import CELL_PX
from pathnav.phantom.noise import BLOCK_PX, Plane, cut, enlarged, to_plane
from pathnav.phantom.scene import FAT_CELL_PX, FAT_REACH_PX, Placed, Scene, near
from pathnav.phantom.stamps import overlap, paste_darkest

GLASS = (244, 243, 245)  # RGB of the empty slide under the lamp
# Optical density (red, green, blue) of a stain plane's 255; fitted by eye to scanned H&E.
_HAEMATOXYLIN = (0.76, 0.92, 0.45)
_EOSIN = (0.085, 0.47, 0.255)
_FAT_STEP_PX = 4  # level-0 px per pixel of the fat cells' distance field
_EDGE = np.clip((np.arange(256) - 112) * 8, 0, 255).astype(np.uint8)  # soft cover to ragged edge, 32 values wide


def render(scene: Scene, x: int, y: int) -> NDArray[np.uint8]:
    """Return the block whose upper left corner is a level-0 place, uint8 RGB, shape (BLOCK_PX, BLOCK_PX, 3)."""
    cover = enlarged(scene.cover, CELL_PX, x, y)
    if not cover.any():
        return _inked(scene, x, y, np.full((BLOCK_PX, BLOCK_PX, 3), GLASS, dtype=np.uint8))
    eosin, haematoxylin = _ground(scene, x, y)
    for placed in (scene.glands, scene.vessels):
        _paste_decals(scene, placed, x, y, (eosin, haematoxylin))
    reach = max(len(stamp) for stamp in scene.stamps) // 2
    for across, down, which in scene.nuclei[near(scene.nuclei, x, y, BLOCK_PX, reach)].tolist():
        paste_darkest(haematoxylin, scene.stamps[which], across - x, down - y)
    if cover.min() < 255:  # frayed as the edge of a real section is
        soft = np.clip(cover.astype(np.int16) + cut(scene.mottle, x, y) - 128, 0, 255)
        edge = np.where(cover == 255, np.uint8(255), _EDGE[soft])
        _fade(eosin, edge)
        _fade(haematoxylin, edge)
    for plane, gain in zip((eosin, haematoxylin), scene.gains, strict=True):
        product = np.multiply(plane, enlarged(gain, CELL_PX, x, y, smooth=False), dtype=np.uint16)
        np.minimum(product >> 7, 255, out=plane, casting="unsafe")
    stains = haematoxylin.astype(np.uint16) << 8 | eosin
    packed = np.take(_colours(), stains)
    return _inked(scene, x, y, packed.view(np.uint8).reshape(BLOCK_PX, BLOCK_PX, 4)[..., :3])


@cache
def _colours() -> NDArray[np.uint32]:
    """Return RGB by Beer-Lambert, packed as 0x00BBGGRR, for each (haematoxylin << 8 | eosin), shape (65536,)."""
    haematoxylin = np.arange(256)[:, None, None] / 255 * np.array(_HAEMATOXYLIN)
    eosin = np.arange(256)[None, :, None] / 255 * np.array(_EOSIN)
    rgb = np.rint(np.array(GLASS) * 10 ** -(haematoxylin + eosin)).astype(np.uint32)
    packed: NDArray[np.uint32] = rgb[..., 0] | rgb[..., 1] << 8 | rgb[..., 2] << 16
    return packed.ravel()


def _ground(scene: Scene, x: int, y: int) -> tuple[Plane, Plane]:
    """Return eosin and haematoxylin of everything but glands, vessels and nuclei."""
    ground_eosin, fibre_strength, ground_haematoxylin = (enlarged(plane, CELL_PX, x, y) for plane in scene.ground)
    stain = cut(scene.fibres, x, y).astype(np.int16) - 128
    stain *= fibre_strength
    stain >>= 6
    stain += cut(scene.mottle, x, y) >> 3
    stain += cut(scene.grain, x, y)
    stain += ground_eosin
    eosin: Plane = np.clip(stain - (16 + 128), 0, 255).astype(np.uint8)
    haematoxylin = ground_haematoxylin.copy()
    fat = scene.fat_cells[near(scene.fat_cells, x, y, BLOCK_PX, 2 * FAT_CELL_PX)]
    if len(fat):
        walls = _fat_walls(fat - np.array([x, y, 0], dtype=np.float32))
        _fade(eosin, walls)
        _fade(haematoxylin, walls)
    return eosin, haematoxylin


def _fade(plane: Plane, keep: Plane) -> None:
    """Scale a plane in place by `keep` / 255."""
    np.floor_divide(np.multiply(plane, keep, dtype=np.uint16), 255, out=plane, casting="unsafe")


def _fat_walls(cells: NDArray[np.float32]) -> Plane:
    """Return 0 inside the vacuoles of fat cells and 255 on their membranes and elsewhere, over a block.

    Args:
        cells: Rows (x, y, radius bonus), places from the block's corner.
    """
    places = np.arange(-1, BLOCK_PX // _FAT_STEP_PX + 1, dtype=np.float32) * _FAT_STEP_PX + _FAT_STEP_PX / 2
    nearest = np.full((places.size, places.size), np.float32(4 * FAT_CELL_PX))
    second = nearest.copy()
    for across, down, bonus in cells:
        distance = np.hypot(places - across, places[:, None] - down) - bonus
        np.minimum(second, np.maximum(nearest, distance), out=second)
        np.minimum(nearest, distance, out=nearest)
    inward = np.minimum((second - nearest) / 2, FAT_REACH_PX - nearest)
    wall = enlarged(to_plane(128 - 12 * inward), _FAT_STEP_PX, _FAT_STEP_PX, _FAT_STEP_PX)
    return np.clip((wall.astype(np.int16) - 78) * 7, 0, 255).astype(np.uint8)


def _paste_decals(scene: Scene, placed: Placed, x: int, y: int, planes: tuple[Plane, Plane]) -> None:
    """Cover what lies below glands or vessels in planes of eosin and haematoxylin."""
    reach = max(len(decal.cover) for decal in scene.decals) // 2
    for across, down, which in placed[near(placed, x, y, BLOCK_PX, reach)].tolist():
        decal = scene.decals[which]
        there, part = overlap(BLOCK_PX, len(decal.cover), across - x, down - y)
        cover = decal.cover[part]
        for plane, picture in zip(planes, (decal.eosin, decal.haematoxylin), strict=True):
            mixed = np.multiply(plane[there], 255 - cover, dtype=np.uint16)
            mixed += np.multiply(picture[part], cover, dtype=np.uint16)
            plane[there] = mixed // 255


def _inked(scene: Scene, x: int, y: int, rgb: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Return the pixels of a block with the pen mark over them."""
    if scene.pen is None or not (cover := enlarged(scene.pen, CELL_PX, x, y)).any():
        return rgb
    passed = 255 - cover[..., None].astype(np.uint16) * (255 - np.array(scene.pen_rgb, dtype=np.uint16)) // 255
    return (rgb * passed // 255).astype(np.uint8)
