"""The tiles of a slide: exact nesting in level-0 pixels, tissue by tile, and images that show the tile's box."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import tifffile

from pathnav.errors import ConfigError, SlideError
from pathnav.explore import Tile, TileTree
from pathnav.geometry import Box
from pathnav.slide import Slide, TissueMask, TissueStatus, open_slide
from support.blot_slide import write_blot_slide
from support.coordinates import layout, offsets, write_pyramid

WIDTH, HEIGHT = 2500, 1700
TILE_PX = 64


@pytest.fixture(scope="module")
def slide(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Slide]:
    """A 40x slide whose pixels encode their coordinates."""
    path = tmp_path_factory.mktemp("tiles") / "coordinates.tiff"
    with open_slide(write_pyramid(path, layout(WIDTH, HEIGHT, (4, 16)))) as opened:
        yield opened


@pytest.fixture(scope="module")
def blot_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("blot") / "blot.tiff"
    return write_blot_slide(path, 1536, 1024, [Box(600, 300, 500, 400)])


@pytest.mark.parametrize(
    ("mpp", "tile_px", "side"), [(0.25, 256, 256), (0.5, 256, 128), (0.2522, 1024, 1015), (0.5034, 1024, 509)]
)
def test_a_tile_is_its_pixels_wide_at_its_magnification(blot_path: Path, mpp: float, tile_px: int, side: int) -> None:
    with open_slide(blot_path, mpp=mpp) as opened:
        tree = TileTree(opened, tile_px)
    sides = [(tree.grid(level).tile_width, tree.grid(level).tile_height) for level in range(3)]
    assert sides == [(16 * side, 16 * side), (4 * side, 4 * side), (side, side)]


def test_the_axes_have_their_own_sides(tmp_path: Path) -> None:
    rgb = np.full((512, 512, 3), 200, np.uint8)
    path = tmp_path / "oblong.tiff"
    tifffile.imwrite(path, rgb, tile=(256, 256), photometric="rgb", resolution=(4e4, 2e4), resolutionunit="CENTIMETER")
    with open_slide(path) as opened:
        tree = TileTree(opened, 64, min_tissue=0)
        assert (tree.grid(2).tile_width, tree.grid(2).tile_height) == (64, 32)
        assert tree.read_tile(Tile(2, 0, 0)).shape == (64, 64, 3)


def test_tile_numbers_count_in_reading_order_and_edge_tiles_are_cut(slide: Slide) -> None:
    tree = TileTree(slide, TILE_PX)
    assert [(tree.grid(level).columns, tree.grid(level).rows) for level in range(3)] == [(3, 2), (10, 7), (40, 27)]
    assert tree.tile(1, 25) == Tile(1, 2, 5)
    assert tree.number(Tile(1, 2, 5)) == 25
    assert tree.box(Tile(0, 1, 2)) == Box(2048, 1024, WIDTH - 2048, HEIGHT - 1024)
    for level in range(3):
        boxes = [Box.from_list(row) for row in tree.grid(level).boxes().tolist()]
        assert boxes == [tree.box(tree.tile(level, number)) for number in range(tree.count(level))]
        assert [box.area for box in boxes] == tree.areas(level).tolist()
        assert sum(box.area for box in boxes) == WIDTH * HEIGHT


def test_children_and_parents_of_tiles(slide: Slide) -> None:
    tree = TileTree(slide, TILE_PX)
    corner = Tile(0, 1, 2)
    assert tree.children(corner) == [Tile(1, row, column) for row in (4, 5, 6) for column in (8, 9)]
    assert all(tree.parent(child) == corner for child in tree.children(corner))
    assert tree.parent(corner) is None
    assert tree.children(Tile(2, 0, 0)) == []
    assert len(tree.children(Tile(0, 0, 0))) == 16


@pytest.mark.parametrize("number", [-1, 6])
def test_there_is_no_tile_outside_the_scanned_area(slide: Slide, number: int) -> None:
    with pytest.raises(IndexError, match=r"must be in \[0, 6\)"):
        TileTree(slide, TILE_PX).tile(0, number)


@pytest.mark.parametrize("level", [0, 1, 2])
def test_a_tiles_image_shows_its_box_and_white_beyond_the_slide(slide: Slide, level: int) -> None:
    tree = TileTree(slide, TILE_PX)
    grid = tree.grid(level)
    for tile in (Tile(level, 0, 0), Tile(level, grid.rows // 2, 0), Tile(level, grid.rows - 1, grid.columns - 1)):
        rgb, (width_px, height_px) = tree.read_tile(tile), tree.shown_px(tile)
        assert rgb.shape == (TILE_PX, TILE_PX, 3)
        assert rgb.dtype == np.uint8
        box = tree.box(tile)
        found = offsets(rgb[:height_px, :width_px], box, WIDTH, HEIGHT)
        assert abs(found.x or 0) < 1
        assert abs(found.y or 0) < 1
        assert (rgb[height_px:] == 255).all()
        assert (rgb[:, width_px:] == 255).all()
        assert (rgb[:height_px, :width_px, 2] < 160).all(), "no white inside"
        step = grid.tile_width / TILE_PX
        assert (width_px, height_px) == (max(1, round(box.width / step)), max(1, round(box.height / step)))


def test_a_whole_tile_at_native_resolution_is_the_slides_own_pixels(slide: Slide) -> None:
    tree = TileTree(slide, TILE_PX)
    tile = Tile(2, 3, 7)
    assert np.array_equal(tree.read_tile(tile), slide.read(tree.box(tile), magnification=40))


@pytest.mark.parametrize("mpp", [0.5034, 0.4977, 0.2637, 0.3, 1.013])
def test_whole_tiles_have_no_white_line_whatever_the_scale(blot_path: Path, mpp: float) -> None:
    with open_slide(blot_path, mpp=mpp) as opened:
        tree = TileTree(opened, 129, min_tissue=0)
        assert tree.shown_px(Tile(2, 0, 0)) == (129, 129)
        assert tree.read_tile(Tile(2, 0, 0)).max() < 255
        assert tree.reading(Tile(2, 0, 0)).magnification == pytest.approx(40, rel=0.02)


def test_a_slide_scanned_at_less_is_enlarged_and_the_record_says_so(blot_path: Path) -> None:
    with open_slide(blot_path, mpp=0.5) as opened:
        reading = TileTree(opened, 256).reading(Tile(2, 0, 0))
        assert reading.upsampled == pytest.approx(2)
        assert reading.box == Box(0, 0, 128, 128)


def test_the_grids_start_at_the_corner_of_the_scanned_area(shared: Path) -> None:
    with open_slide(shared / "slides/mirax-sparse-bounds.mrxs") as opened:
        tree = TileTree(opened, 128)
        assert tree.box(Tile(0, 0, 0)) == Box(2304, 1792, 2048, 2048)
        assert [tree.count(level) for level in range(3)] == [2, 4 * 6, 16 * 22]


def test_the_ovarian_slide_has_the_tiles_of_its_extent(shared: Path) -> None:
    with open_slide(shared / "slides/virtual-hgsc-groundtruth.svs") as opened:
        tree = TileTree(opened, 128)
        assert [tree.count(level) for level in range(3)] == [15, 204, 2990]


@pytest.mark.parametrize("tile_px", [16, 50, 100])
def test_tissue_is_that_of_the_mask_at_every_level(blot_path: Path, tile_px: int) -> None:
    with open_slide(blot_path, mpp=0.25) as opened:
        tree, mask = TileTree(opened, tile_px), opened.tissue_mask()
        assert mask.share > 0.05
        for level in range(3):
            assert np.allclose(tree.tissue(level), mask.shares_of(tree.grid(level).boxes()), atol=1e-9)


def test_a_mask_of_another_area_counts_only_where_it_lies(slide: Slide) -> None:
    mask = TissueMask(Box(100, 50, 128, 64), np.ones((2, 4), bool), TissueStatus.TISSUE)
    tree = TileTree(slide, TILE_PX, mask=mask)
    for level in range(3):
        assert (tree.tissue(level) * tree.areas(level)).sum() == pytest.approx(128 * 64)
    assert tree.tissue(2)[tree.number(Tile(2, 1, 2))] == pytest.approx(50 / 64)


def test_tiles_without_tissue_are_not_shown_unless_asked_for(blot_path: Path) -> None:
    with open_slide(blot_path, mpp=0.25) as opened:
        tree = TileTree(opened, 64)
        for level in range(3):
            assert np.array_equal(tree.eligible(level), tree.tissue(level) >= 0.01)
        assert 0 < np.count_nonzero(tree.eligible(2)) < tree.count(2)
        assert TileTree(opened, 64, min_tissue=0).eligible(2).all()


def test_on_a_slide_that_is_not_brightfield_every_tile_is_shown(slide: Slide) -> None:
    mask = TissueMask(slide.bounds, np.zeros((4, 4), bool), TissueStatus.NOT_BRIGHTFIELD)
    tree = TileTree(slide, TILE_PX, mask=mask)
    assert all(tree.eligible(level).all() for level in range(3))
    assert tree.image(Tile(0, 0, 0)).tissue_share is None


def test_a_scorers_image_names_its_place_and_reads_its_own_pixels(slide: Slide) -> None:
    tree = TileTree(slide, TILE_PX)
    first, second = tree.images(1, np.array([25, 26]))
    assert first.name == f"{slide.fingerprint[:16]}/10x/1280,512,256,256"
    assert (first.tile, first.number, first.magnification) == (Tile(1, 2, 5), 25, 10)
    assert (first.width_px, first.height_px) == (TILE_PX, TILE_PX)
    assert np.array_equal(first.read(), tree.read_tile(first.tile))
    assert not np.array_equal(first.read(), second.read())


@pytest.mark.parametrize("tile_px", [0, -5])
def test_a_tile_has_at_least_one_pixel(slide: Slide, tile_px: int) -> None:
    with pytest.raises(ConfigError, match="tile_px"):
        TileTree(slide, tile_px)


@pytest.mark.parametrize("min_tissue", [-0.1, 1.1, float("nan")])
def test_min_tissue_is_a_share(slide: Slide, min_tissue: float) -> None:
    with pytest.raises(ConfigError, match="min_tissue"):
        TileTree(slide, TILE_PX, min_tissue)


def test_a_tile_smaller_than_a_pixel_of_the_slide_is_refused_with_the_least_size(blot_path: Path) -> None:
    with open_slide(blot_path, mpp=4) as opened, pytest.raises(ConfigError, match="at least 16"):
        TileTree(opened, 7)


def test_a_slide_without_a_scale_is_refused_with_the_options(blot_path: Path) -> None:
    with open_slide(blot_path) as opened, pytest.raises(SlideError, match=r"--mpp .* or --objective-power"):
        TileTree(opened)
