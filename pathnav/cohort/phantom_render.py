"""Renders windows of a phantom scene to RGB; pure, so that threads may share a scene."""

import numpy as np
from numpy.typing import NDArray

from pathnav.cohort.phantom_cells import FAT_CELL_PX, FAT_REACH_PX, Placed
from pathnav.cohort.phantom_decals import Decal
from pathnav.cohort.phantom_layout import CELL
from pathnav.cohort.phantom_noise import Plane, Window, enlarge, to_plane
from pathnav.cohort.phantom_scene import Scene
from pathnav.cohort.phantom_stain import GLASS, to_rgb

_FAT_STEP = 4  # level-0 px per pixel of the fat cells' distance field
_EDGE = np.clip((np.arange(256) - 112) * 8, 0, 255).astype(np.uint8)  # soft cover to ragged edge, 32 values wide


def render(scene: Scene, x: int, y: int, width: int, height: int) -> NDArray[np.uint8]:
    """Return the pixels of a window.

    Args:
        scene: What is there.
        x: Left edge in level-0 pixels.
        y: Top edge in level-0 pixels.
        width: Columns, at most `BLOCK_PX`.
        height: Rows, at most `BLOCK_PX`.

    Returns: uint8 RGB, shape (height, width, 3).
    """
    window = (x, y, width, height)
    cover = enlarge(scene.ground.cover, CELL, window)
    if not cover.any():
        return _glass(scene, window)
    eosin, haematoxylin = _ground(scene, window)
    _paste_decals(scene.glands, scene.palette.glands, window, eosin, haematoxylin)
    _paste_decals(scene.vessels, scene.palette.vessels, window, eosin, haematoxylin)
    _paste_nuclei(scene, window, haematoxylin)
    edge = _ragged(scene, window, cover) if cover.min() < 255 else None
    for plane, gain in ((eosin, scene.ground.eosin_gain), (haematoxylin, scene.ground.haematoxylin_gain)):
        if edge is not None:
            _fade(plane, edge)
        _multiply(plane, enlarge(gain, CELL, window, smooth=False))
    return _inked(scene, window, to_rgb(haematoxylin, eosin, scene.palette.colours))


def _glass(scene: Scene, window: Window) -> NDArray[np.uint8]:
    blank = np.empty((window[3], window[2], 3), dtype=np.uint8)
    blank[:] = GLASS
    return _inked(scene, window, blank)


def _ground(scene: Scene, window: Window) -> tuple[Plane, Plane]:
    """Return eosin and haematoxylin of everything but glands, vessels and nuclei."""
    strength = enlarge(scene.ground.fibre_strength, CELL, window).astype(np.int16)
    fibre = scene.palette.fibres.texture.window(window).astype(np.int16)
    fibre -= 128
    fibre *= strength
    fibre >>= 6
    mottle = scene.palette.mottle.window(window)
    fibre += mottle >> 3
    fibre -= 16
    grain = scene.palette.grain.window(window)
    fibre += grain
    fibre += enlarge(scene.ground.eosin, CELL, window)
    fibre -= 128
    eosin: Plane = np.clip(fibre, 0, 255).astype(np.uint8)
    haematoxylin = enlarge(scene.ground.haematoxylin, CELL, window).copy()
    wall = _fat_walls(scene, window)
    if wall is not None:
        _fade(eosin, wall)
        _fade(haematoxylin, wall)
    return eosin, haematoxylin


def _ragged(scene: Scene, window: Window, cover: Plane) -> Plane:
    """Return the cover with the frayed edge of a real section."""
    soft = np.clip(cover.astype(np.int16) + (scene.palette.mottle.window(window).astype(np.int16) - 128), 0, 255)
    return np.where(cover == 255, np.uint8(255), _EDGE[soft])


def _fade(plane: Plane, keep: Plane) -> None:
    """Scale a plane in place by `keep` / 255."""
    np.floor_divide(np.multiply(plane, keep, dtype=np.uint16), 255, out=plane, casting="unsafe")


def _fat_walls(scene: Scene, window: Window) -> Plane | None:
    """Return 0 inside the vacuoles of fat cells, 255 on their membranes and elsewhere; None where there is no fat."""
    x, y, width, height = window
    centres, reach = scene.fat_cells, 2 * FAT_CELL_PX
    near = (centres[:, 0] > x - reach) & (centres[:, 0] < x + width + reach)
    near &= (centres[:, 1] > y - reach) & (centres[:, 1] < y + height + reach)
    if not near.any():
        return None
    columns = np.arange(-1, -(-width // _FAT_STEP) + 1, dtype=np.float32) * _FAT_STEP + x + _FAT_STEP / 2
    rows = np.arange(-1, -(-height // _FAT_STEP) + 1, dtype=np.float32)[:, None] * _FAT_STEP + y + _FAT_STEP / 2
    nearest = np.full((rows.size, columns.size), np.float32(2 * reach))
    second = nearest.copy()
    for centre_x, centre_y, bonus in centres[near]:
        distance = np.sqrt((columns - centre_x) ** 2 + (rows - centre_y) ** 2) - bonus
        np.minimum(second, np.maximum(nearest, distance), out=second)
        np.minimum(nearest, distance, out=nearest)
    inward = np.minimum((second - nearest) / 2, FAT_REACH_PX - nearest)
    field = to_plane(128 - 12 * inward)
    wall = enlarge(field, _FAT_STEP, (_FAT_STEP, _FAT_STEP, width, height))
    return np.clip((wall.astype(np.int16) - 78) * 7, 0, 255).astype(np.uint8)


def _paste_decals(placed: Placed, decals: tuple[Decal, ...], window: Window, eosin: Plane, haematoxylin: Plane) -> None:
    x, y, width, height = window
    near = placed.near(window, max(decal.reach for decal in decals))
    for (centre_x, centre_y), stamp in zip(near.xy.tolist(), near.stamp.tolist(), strict=True):
        decal = decals[stamp]
        left, top = centre_x - x - decal.reach, centre_y - y - decal.reach
        side = 2 * decal.reach + 1
        rows, columns = slice(max(0, top), min(height, top + side)), slice(max(0, left), min(width, left + side))
        if rows.start >= rows.stop or columns.start >= columns.stop:
            continue
        cut = (slice(rows.start - top, rows.stop - top), slice(columns.start - left, columns.stop - left))
        below = 255 - decal.cover[cut]
        for plane, picture in ((eosin, decal.eosin), (haematoxylin, decal.haematoxylin)):
            view = plane[rows, columns]
            mixed = np.multiply(view, below, dtype=np.uint16)
            mixed += np.multiply(picture[cut], decal.cover[cut], dtype=np.uint16)
            np.floor_divide(mixed, 255, out=view, casting="unsafe")


def _paste_nuclei(scene: Scene, window: Window, haematoxylin: Plane) -> None:
    x, y, width, height = window
    banks = {int(kind): (bank.reach, bank.stamps) for kind, bank in scene.palette.banks.items()}
    near = scene.nuclei.near(window, max(reach for reach, _ in banks.values()))
    order = zip(near.xy.tolist(), near.kind.tolist(), near.stamp.tolist(), strict=True)
    for (centre_x, centre_y), kind, stamp in order:
        reach, stamps = banks[kind]
        left, top = centre_x - x - reach, centre_y - y - reach
        right, bottom = left + 2 * reach + 1, top + 2 * reach + 1
        picture = stamps[stamp]
        if left < 0 or top < 0 or right > width or bottom > height:
            if right <= 0 or bottom <= 0 or left >= width or top >= height:
                continue
            picture = picture[max(0, -top) : height - top, max(0, -left) : width - left]
        view = haematoxylin[max(0, top) : bottom, max(0, left) : right]
        np.maximum(view, picture, out=view)


def _multiply(plane: Plane, gain: Plane) -> None:
    """Scale a plane in place by the local gain, 128 for one."""
    product = np.multiply(plane, gain, dtype=np.uint16)
    product >>= 7
    np.minimum(product, 255, out=plane, casting="unsafe")


def _inked(scene: Scene, window: Window, rgb: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Return the pixels with the pen mark over them."""
    if scene.ink is None:
        return rgb
    cover = enlarge(scene.ink.cover, CELL, window)
    if not cover.any():
        return rgb
    light = 255 - np.array(scene.ink.colour, dtype=np.uint16)
    passed = 255 - (cover[..., None].astype(np.uint16) * light) // 255
    return np.asarray((rgb * passed) // 255, dtype=np.uint8)
