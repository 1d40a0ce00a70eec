"""The files of a phantom slide."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import openslide
import pytest
import shapely
import tiffslide

from pathnav.errors import ConfigError
from pathnav.phantom import PhantomFiles, make_phantom
from pathnav.phantom.render import render
from pathnav.phantom.scene import Scene
from pathnav.phantom.stamps import STAMPS, Nucleus
from pathnav.slide import MppSource, open_slide
from support.phantoms import annotated, phantom


@pytest.fixture(scope="module")
def scene() -> Scene:
    """Return the scene that `small_phantom` was drawn from."""
    return Scene(0, 2048)


def contents(files: PhantomFiles) -> list[bytes]:
    return [path.read_bytes() for path in (files.slide, files.annotation, files.tree)]


@pytest.fixture(scope="module")
def odd(tmp_path_factory: pytest.TempPathFactory) -> PhantomFiles:
    """Return a phantom whose side is neither whole tiles nor whole pixels of the coarser levels."""
    return make_phantom(tmp_path_factory.mktemp("odd") / "odd.tif", seed=5, side=1102, threads=3)


def test_a_seed_is_a_slide_whatever_the_number_of_threads(odd: PhantomFiles, tmp_path: Path) -> None:
    again = make_phantom(tmp_path / odd.slide.name, seed=5, side=1102, threads=1)
    assert contents(again) == contents(odd)
    other = make_phantom(tmp_path / odd.slide.name, seed=6, side=1102, force=True)
    assert all(one != was for one, was in zip(contents(other), contents(odd), strict=True))


def test_both_readers_see_the_scale_and_every_level(odd: PhantomFiles) -> None:
    with openslide.OpenSlide(odd.slide) as slide:
        assert slide.level_dimensions == ((1102, 1102), (276, 276), (69, 69))
        assert slide.properties["openslide.vendor"] == "generic-tiff"
        assert float(slide.properties["openslide.mpp-x"]) == float(slide.properties["openslide.mpp-y"]) == 0.25
        one = [np.asarray(slide.read_region((0, 0), i, slide.level_dimensions[i]).convert("L"), int) for i in range(3)]
    with tiffslide.TiffSlide(odd.slide) as slide:
        assert slide.level_dimensions == ((1102, 1102), (276, 276), (69, 69))
        assert slide.properties["tiffslide.mpp-x"] == slide.properties["tiffslide.mpp-y"] == pytest.approx(0.25)
        two = [np.asarray(slide.read_region((0, 0), i, slide.level_dimensions[i]).convert("L"), int) for i in range(3)]
    assert all(np.abs(a - b).max() <= 3 for a, b in zip(one, two, strict=True)), "two decoders of JPEG"


def test_a_phantom_says_what_it_is(small_phantom: PhantomFiles) -> None:
    with open_slide(small_phantom.slide) as slide:
        assert slide.is_phantom
        assert (slide.mpp_um, slide.mpp_source, slide.warnings) == ((0.25, 0.25), MppSource.TIFF_TAG, ())
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


def test_neighbouring_blocks_fit_without_a_seam(scene: Scene) -> None:
    assert np.array_equal(render(scene, 512, 512)[188:, 388:], render(scene, 900, 700)[: 1024 - 188, : 1024 - 388])


def test_every_tumour_cell_lies_in_the_annotated_tumour_and_fills_it(small_phantom: PhantomFiles, scene: Scene) -> None:
    tumour = annotated(small_phantom, "tumor")
    cells = scene.nuclei[np.isin(scene.nuclei[:, 2] // STAMPS, (Nucleus.TUMOUR, Nucleus.PALE)), :2]
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
    ("name", "options", "reason"),
    [
        *(("a.tiff", {"side": side}, "side must") for side in (1023, 32_769, 2048.5, float("nan"), True, "big")),
        *(("a.tiff", {"seed": seed}, "seed must") for seed in (-1, 1.5, float("nan"), False)),
        ("a.svs", {}, "must end in .tif or .tiff"),
        ("nowhere/a.tiff", {}, "does not exist"),
        ("taken.tiff", {"force": True}, "taken.tree.json' is a folder"),
    ],
    ids=str,
)
def test_bad_input_is_refused_before_anything_is_written(
    name: str, options: dict[str, Any], reason: str, tmp_path: Path
) -> None:
    (tmp_path / "taken.tree.json").mkdir()
    with pytest.raises(ConfigError, match=reason):
        make_phantom(tmp_path / name, **{"side": 1024, **options})
    assert [path.name for path in tmp_path.iterdir()] == ["taken.tree.json"]


@pytest.mark.parametrize("path", ["", ".", "/"])
def test_a_path_that_names_no_file_is_refused(path: str) -> None:
    with pytest.raises(ConfigError, match="needs a file name"):
        make_phantom(path, side=1024)


@pytest.mark.parametrize("suffix", [".tiff", ".geojson", ".tree.json"])
def test_a_file_that_exists_is_replaced_by_force_only(suffix: str, tmp_path: Path, phantom_folder: Path) -> None:
    mine = tmp_path / f"mine{suffix}"
    mine.write_text("my own work")
    with pytest.raises(ConfigError, match=f"{mine.name}' exists"):
        make_phantom(tmp_path / "mine.tiff", side=1024)
    assert (mine.read_text(), list(tmp_path.iterdir())) == ("my own work", [mine])
    files = make_phantom(tmp_path / "mine.tiff", side=1024, force=True)
    assert files.slide.read_bytes() == phantom(phantom_folder, 0, 1024).slide.read_bytes()


def test_a_killed_run_leaves_no_half_file_and_the_next_one_succeeds(tmp_path: Path) -> None:
    code = "import sys; from pathnav.phantom import make_phantom; make_phantom(sys.argv[1], side=4096)"
    process = subprocess.Popen([sys.executable, "-c", code, str(tmp_path / "a.tiff")])
    while not any(path.stat().st_size for path in tmp_path.glob(".a.tiff.*/a.tiff")):
        assert process.poll() is None, "it ended before its slide began to grow"
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert not list(tmp_path.glob("a.*"))
    assert all(contents(make_phantom(tmp_path / "a.tiff", side=1024)))
