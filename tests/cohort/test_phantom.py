"""The files of a phantom slide."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import openslide
import pytest
import shapely
import tiffslide

from pathnav.cohort.phantom import PhantomFiles, make_phantom, phantom_files
from pathnav.cohort.phantom_palette import streams
from pathnav.cohort.phantom_render import render
from pathnav.cohort.phantom_scene import Scene, compose
from pathnav.cohort.phantom_stamps import Nucleus
from pathnav.errors import ConfigError
from pathnav.slide import MppSource, open_slide
from support.phantoms import annotated, phantom

ODD_SIDE = 1100  # neither whole tiles nor whole pixels of the coarser levels


@pytest.fixture(scope="module")
def scene() -> Scene:
    """Return the scene that `small_phantom` was drawn from."""
    return compose(streams(0, 2048), 2048)


def contents(files: PhantomFiles) -> list[bytes]:
    return [path.read_bytes() for path in (files.slide, files.annotation, files.tree)]


@pytest.fixture(scope="module")
def odd(tmp_path_factory: pytest.TempPathFactory) -> PhantomFiles:
    """Return a phantom of an odd side, drawn by three threads."""
    return make_phantom(tmp_path_factory.mktemp("odd") / "odd.tif", seed=5, side=ODD_SIDE, threads=3)


def test_the_same_seed_gives_the_same_bytes_whatever_the_number_of_threads(odd: PhantomFiles, tmp_path: Path) -> None:
    assert contents(make_phantom(tmp_path / odd.slide.name, seed=5, side=ODD_SIDE, threads=1)) == contents(odd)


def test_another_seed_gives_another_slide(phantom_folder: Path) -> None:
    first, second = (phantom(phantom_folder, seed, 1024) for seed in (0, 1))
    assert all(one != other for one, other in zip(contents(first), contents(second), strict=True))


def test_both_readers_see_the_scale_and_every_level(odd: PhantomFiles) -> None:
    path = odd.slide
    with openslide.OpenSlide(path) as slide:
        assert slide.level_dimensions == ((1100, 1100), (275, 275), (69, 69))
        assert slide.properties["openslide.vendor"] == "generic-tiff"
        assert float(slide.properties["openslide.mpp-x"]) == float(slide.properties["openslide.mpp-y"]) == 0.25
    with tiffslide.TiffSlide(path) as slide:
        assert slide.level_dimensions == ((1100, 1100), (275, 275), (69, 69))
        assert slide.properties["tiffslide.mpp-x"] == slide.properties["tiffslide.mpp-y"] == pytest.approx(0.25)


def test_a_phantom_says_what_it_is(small_phantom: PhantomFiles) -> None:
    with open_slide(small_phantom.slide) as slide:
        assert slide.is_phantom
        assert slide.mpp_um == (0.25, 0.25)
        assert slide.mpp_source is MppSource.TIFF_TAG
        assert slide.warnings == ()
    with openslide.OpenSlide(small_phantom.slide) as raw:
        text = raw.properties["tiff.ImageDescription"]
    assert text.startswith("pathnav phantom: synthetic image")
    assert "seed=0 side=2048 pen=no" in text


def test_coarser_levels_show_the_average_of_the_finest(small_phantom: PhantomFiles) -> None:
    with openslide.OpenSlide(small_phantom.slide) as slide:
        # Brightness: the colours of a JPEG tile are stored at half its resolution.
        planes = [
            np.asarray(slide.read_region((0, 0), level, size).convert("L"), dtype=float)
            for level, size in enumerate(slide.level_dimensions)
        ]
    for level, step in ((1, 4), (2, 16)):
        side = 2048 // step
        mean = planes[0].reshape(side, step, side, step).mean(axis=(1, 3))
        error = np.abs(planes[level] - mean).mean()
        assert error < 3, "no more than JPEG takes"
        assert error < 0.4 * np.abs(planes[level] - np.roll(mean, 1, axis=1)).mean(), "less than a pixel's shift"


def test_neighbouring_windows_fit_without_a_seam(scene: Scene) -> None:
    whole = render(scene, 512, 512, 1024, 1024)
    part = render(scene, 900, 700, 300, 400)
    assert np.array_equal(part, whole[188:588, 388:688])


def test_every_tumour_cell_lies_in_the_annotated_tumour_and_fills_it(small_phantom: PhantomFiles, scene: Scene) -> None:
    tumour = annotated(small_phantom, "tumor")
    cells = scene.nuclei.xy[np.isin(scene.nuclei.kind, (Nucleus.TUMOUR, Nucleus.PALE))]
    assert len(cells) > 50
    # Centres are rounded to whole pixels after the test of place.
    assert shapely.contains_xy(tumour.buffer(1), cells[:, 0], cells[:, 1]).all()
    near = shapely.union_all([shapely.Point(cell).buffer(100) for cell in cells.tolist()])
    assert tumour.intersection(near).area > 0.8 * tumour.area


def test_regions_of_the_annotation_do_not_overlap(small_phantom: PhantomFiles) -> None:
    features = json.loads(small_phantom.annotation.read_text())["features"]
    shapes = [shapely.geometry.shape(feature["geometry"]) for feature in features]
    assert all(part.is_valid for part in shapes)
    assert shapely.union_all(shapes).area == pytest.approx(sum(part.area for part in shapes), rel=1e-6)
    assert {feature["properties"]["objectType"] for feature in features} == {"annotation"}
    assert {"tumor", "stroma", "fat"} <= {feature["properties"]["classification"]["name"] for feature in features}


def test_a_pen_mark_changes_pixels_and_not_the_truth(small_phantom: PhantomFiles, tmp_path: Path) -> None:
    marked = make_phantom(tmp_path / small_phantom.slide.name, side=2048, pen=True)
    assert contents(marked)[1:] == contents(small_phantom)[1:]
    with openslide.OpenSlide(small_phantom.slide) as plain, openslide.OpenSlide(marked.slide) as inked:
        assert "pen=yes" in inked.properties["tiff.ImageDescription"]
        size = plain.level_dimensions[2]
        before, after = (np.asarray(s.read_region((0, 0), 2, size).convert("RGB"), int) for s in (plain, inked))
    changed = (np.abs(before - after).max(axis=2) > 30).mean()
    assert 0.005 < changed < 0.2


@pytest.mark.parametrize(
    "side", [1023, 0, -1, 32_769, 2048.5, float("nan"), float("inf"), True, "big"], ids=lambda side: f"side {side}"
)
def test_a_bad_side_is_refused_with_the_legal_range(side: int, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"side must be a whole number of pixels in \[1024, 32768\], got "):
        make_phantom(tmp_path / "a.tiff", side=side)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("seed", [-1, 1.5, float("nan"), False])
def test_a_bad_seed_is_refused(seed: int, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="seed must be a whole number of 0 or more, got "):
        make_phantom(tmp_path / "a.tiff", seed=seed)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("a.svs", "its name must end in .tif or .tiff"),
        ("nowhere/a.tiff", "does not exist; create it first"),
        ("taken.tiff", "taken.tree.json' is a folder"),
    ],
)
def test_a_bad_name_is_refused_before_anything_is_written(name: str, reason: str, tmp_path: Path) -> None:
    (tmp_path / "taken.tree.json").mkdir()
    with pytest.raises(ConfigError, match=reason):
        make_phantom(tmp_path / name, side=1024)
    assert [path.name for path in tmp_path.iterdir()] == ["taken.tree.json"]


def test_a_killed_run_leaves_no_half_file_and_the_next_one_succeeds(tmp_path: Path) -> None:
    code = "import sys; from pathnav.cohort.phantom import make_phantom; make_phantom(sys.argv[1], side=4096)"
    process = subprocess.Popen([sys.executable, "-c", code, str(tmp_path / "a.tiff")])
    while not any(path.name.startswith(".a.tiff.") and path.stat().st_size for path in tmp_path.iterdir()):
        assert process.poll() is None, "it ended before its slide began to grow"
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert not [path for path in tmp_path.iterdir() if not path.name.endswith(".part")]
    files = make_phantom(tmp_path / "a.tiff", side=1024)
    assert all(path.stat().st_size for path in (files.slide, files.annotation, files.tree))


@pytest.mark.parametrize("suffix", [".tiff", ".geojson", ".tree.json"])
def test_a_file_that_is_no_phantoms_is_never_replaced(tmp_path: Path, suffix: str) -> None:
    mine = tmp_path / f"mine{suffix}"
    mine.write_text("my own work")
    with pytest.raises(ConfigError, match="is no phantom's"):
        make_phantom(tmp_path / "mine.tiff", side=1024)
    assert mine.read_text() == "my own work"
    assert list(tmp_path.iterdir()) == [mine]


def test_a_phantom_may_be_drawn_anew(phantom_folder: Path, tmp_path: Path) -> None:
    first, anew = phantom(phantom_folder, 0, 1024), phantom_files(tmp_path / "a.tiff")
    for was, now in ((first.slide, anew.slide), (first.annotation, anew.annotation), (first.tree, anew.tree)):
        now.write_bytes(was.read_bytes())
    assert make_phantom(anew.slide, side=1024, seed=1).slide.read_bytes() != first.slide.read_bytes()


@pytest.mark.parametrize("path", ["", ".", "/"])
def test_a_path_that_names_no_file_is_refused(path: str) -> None:
    with pytest.raises(ConfigError, match="needs a file name"):
        make_phantom(path, side=1024)
