"""What a model is shown of a tile, against a slide whose colours are coordinates and name their pyramid level.

One level pixel of displacement, swapped axes or another pyramid level fail: the same check is run on images that were
spoilt on purpose.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
import pytest
import tifffile
from numpy.typing import NDArray

from pathnav.explore import TileImage, TileTree
from pathnav.geometry import Box
from pathnav.slide import Slide, open_slide
from support.chat_server import say
from support.coordinates import BLUE, layout, level_pixels, offsets
from support.exploring import scoring

SLIDE = layout(3300, 2500, (4, 16))
TILE_PX = 96
STEP = (16, 4, 1)  # level-0 pixels that an image pixel covers, by level
BLUE_STEP = 24  # between pyramid levels
TOLERANCE = 0.3  # of an image pixel, on the mean over a tile

Rgb = NDArray[np.uint8]


@pytest.fixture(scope="module")
def slide(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Slide]:
    path = tmp_path_factory.mktemp("pixels") / "coordinates.tif"
    with tifffile.TiffWriter(path) as file:
        for level in range(3):
            pixels = level_pixels(SLIDE, level)
            pixels[..., 2] = BLUE + BLUE_STEP * level
            file.write(
                pixels,
                photometric="rgb",
                tile=(128, 128),
                compression="deflate",
                metadata=None,
                resolution=(4e4, 4e4),
                resolutionunit="CENTIMETER",
                subfiletype=int(level > 0),
            )
    with open_slide(path) as opened:
        yield opened


@pytest.fixture(scope="module")
def grid(slide: Slide) -> TileTree:
    return TileTree(slide, TILE_PX, min_tissue=0)


@pytest.fixture(scope="module")
def sent() -> Iterator[Callable[[TileImage], Rgb]]:
    """A function from a tile to the pixels that the model gets of it."""
    with scoring(lambda request: say("Yes 73"), workers=1) as (scorer, server):

        def sent_of(image: TileImage) -> Rgb:
            list(scorer.score([image]))
            return np.asarray(server.requests[-1].images[0])

        yield sent_of


def faults(shown: Rgb, image: TileImage) -> list[str]:
    """Return what is wrong with an image of a tile."""
    level, step = image.tile.level, STEP[image.tile.level]
    if shown.shape != (TILE_PX, TILE_PX, 3):
        return [f"has the shape {shown.shape}"]
    part = shown[: image.height_px, : image.width_px]
    width, height = SLIDE.dimensions[0]
    found = offsets(part, image.box, width, height)
    said = []
    for axis, error, judged in (("x", found.x, found.judged_x), ("y", found.y, found.judged_y)):
        if error is None or judged < 100:
            said.append(f"cannot be placed along {axis}")
        elif abs(error) > TOLERANCE * step:
            said.append(f"is {error / step:+.2f} px off along {axis}")
    if part[..., 0].std(axis=0).mean() > 12 or part[..., 1].std(axis=1).mean() > 12:  # red is x, green is y alone
        said.append("has its axes swapped")
    blue = float(part[..., 2].mean())
    if abs(blue - (BLUE + BLUE_STEP * (2 - level))) > 2:
        said.append(f"was read from pyramid level {(blue - BLUE) / BLUE_STEP:.1f}")
    beyond = [shown[image.height_px + 8 :], shown[:, image.width_px + 8 :]]
    if any((pixels <= 240).any() for pixels in beyond):
        said.append("is not white beyond the slide")
    return said


@pytest.mark.parametrize("level", [0, 1, 2])
def test_the_model_is_shown_the_tiles_own_pixels(grid: TileTree, sent: Callable[[TileImage], Rgb], level: int) -> None:
    columns, count = grid.grid(level).columns, grid.count(level)
    numbers = np.unique([0, columns - 1, columns + columns // 2 + 1, count - columns, count - 1])
    images = [image for image in grid.images(level, numbers % count) if min(image.width_px, image.height_px) > 24]
    assert len(images) >= 2
    assert level == 2 or any(image.width_px < TILE_PX or image.height_px < TILE_PX for image in images)
    assert [faults(sent(image), image) for image in images] == [[]] * len(images)


def shifted(across: int, down: int) -> Callable[[Slide, TileImage], Rgb]:
    """Return how a tile is read from one image pixel beside its place."""

    def read(slide: Slide, image: TileImage) -> Rgb:
        step, box = STEP[image.tile.level], image.box
        moved = Box(box.x + across * step, box.y + down * step, box.width, box.height)
        return slide.reading(moved, magnification=image.magnification).rgb[:TILE_PX, :TILE_PX]

    return read


def swapped(slide: Slide, image: TileImage) -> Rgb:
    return image.read().transpose(1, 0, 2)


def of_another_pyramid_level(slide: Slide, image: TileImage) -> Rgb:
    other = {0: 10.0, 1: 2.5, 2: 10.0}[image.tile.level]
    rgb = slide.reading(image.box, magnification=other).rgb
    rows, columns = (np.arange(TILE_PX) * side // TILE_PX for side in rgb.shape[:2])
    found: Rgb = rgb[rows][:, columns]
    return found


def of_another_tile(slide: Slide, image: TileImage) -> Rgb:
    return slide.reading(Box(0, 0, TILE_PX, TILE_PX), magnification=40.0).rgb


SPOILT = [
    (shifted(1, 0), "px off along x"),
    (shifted(0, -1), "px off along y"),
    (swapped, "has its axes swapped"),
    (of_another_pyramid_level, "was read from pyramid level"),
    (of_another_tile, "along x"),
]


@pytest.mark.parametrize(("spoil", "says"), SPOILT)
@pytest.mark.parametrize("level", [0, 1, 2])
def test_the_check_sees_a_displacement_of_one_pixel(
    slide: Slide,
    grid: TileTree,
    sent: Callable[[TileImage], Rgb],
    level: int,
    spoil: Callable[[Slide, TileImage], Rgb],
    says: str,
) -> None:
    number = {0: 1, 1: grid.grid(1).columns + 3, 2: 5 * grid.grid(2).columns + 13}[level]
    (image,) = grid.images(level, np.array([number]))
    assert faults(sent(image), image) == []
    wrong = np.ascontiguousarray(spoil(slide, image))
    assert says in "; ".join(faults(sent(replace(image, read=lambda: wrong)), image))
