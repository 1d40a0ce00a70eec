"""At native level-0 resolution a slide shows the scanner's own pixels, byte for byte, from any thread and process."""

import multiprocessing
import os
import pickle
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import openslide
import pytest
from numpy.typing import NDArray
from PIL import Image

from pathnav.errors import RoiError, SlideError
from pathnav.geometry import Box
from pathnav.slide import open_slide

SLIDES = [
    "CMU-1-Small-Region.svs",
    "CMU-1-Small-Region-dicom",
    "mirax-sparse-bounds.mrxs",
    "svs-40x-3levels.svs",
    "tiff-pyramid-0.5um.tif",
    "virtual-hgsc-groundtruth.svs",
]


@pytest.fixture(params=SLIDES)
def path(request: pytest.FixtureRequest, shared: Path) -> Path:
    found: Path = shared / "slides" / request.param
    return min(found.glob("*.dcm")) if found.is_dir() else found


def theirs(path: Path, left: int, top: int, width: int, height: int) -> NDArray[np.uint8]:
    """Return OpenSlide's pixels on white."""
    with openslide.OpenSlide(path) as handle:
        rgba = handle.read_region((left, top), 0, (width, height))
    canvas = Image.new("RGB", rgba.size, "white")
    canvas.paste(rgba, mask=rgba.getchannel("A"))
    return np.asarray(canvas)


def test_level_0_pixels_are_openslides(path: Path) -> None:
    rng = np.random.default_rng(7)
    with open_slide(path) as slide:
        for _ in range(12):
            left = int(slide.bounds.x + rng.integers(-200, slide.bounds.width))
            top = int(slide.bounds.y + rng.integers(-200, slide.bounds.height))
            width, height = (int(number) for number in rng.integers(1, 900, 2))
            found = slide.reading(Box(left, top, width, height), max_side_px=1000)
            assert np.array_equal(found.rgb, theirs(path, left, top, width, height))
            assert (found.level, found.upsampled, found.failed_share) == (0, 1.0, 0.0)


def test_a_native_magnification_reads_the_same_pixels(shared: Path) -> None:
    path = shared / "slides" / "virtual-hgsc-groundtruth.svs"
    with open_slide(path) as slide:
        found = slide.reading(Box(3001, 4003, 640, 480), magnification=40)
        assert np.array_equal(found.rgb, theirs(path, 3001, 4003, 640, 480))
        assert found.magnification == pytest.approx(40)


def test_beyond_the_slide_and_the_scanned_area_is_white(shared: Path) -> None:
    with open_slide(shared / "slides" / "mirax-sparse-bounds.mrxs") as slide:
        unscanned = slide.reading(Box(0, 0, 1024, 1024), magnification=10)
        assert (unscanned.rgb == 255).all() and unscanned.outside_share == 1
        half = slide.reading(Box(2304 - 512, 2304, 1024, 512), magnification=10)
        assert half.outside_share == 0.5 and (half.rgb[:, :126] == 255).all() and half.rgb[:, 130:].std() > 3
        far = slide.reading(Box(-9000, -9000, 100, 100), magnification=40)
        assert (far.rgb == 255).all() and far.outside_share == 1


def test_upsampling_happens_above_native_only_and_is_recorded(shared: Path) -> None:
    with open_slide(shared / "slides" / "CMU-1-Small-Region.svs") as slide:
        enlarged = slide.reading(Box(500, 500, 400, 300), magnification=40)
        assert enlarged.upsampled == pytest.approx(0.499 / 0.25, rel=0.002) and enlarged.rgb.shape == (599, 798, 3)
        assert slide.reading(Box(500, 500, 400, 300), magnification=20).upsampled == 1.0
        small = slide.reading(Box(500, 500, 40, 30), max_side_px=1024)
        assert small.rgb.shape == (30, 40, 3) and small.upsampled == 1.0
        assert slide.overview(max_side_px=300).shape == (300, 224, 3)


def test_eight_threads_see_equal_pixels(path: Path) -> None:
    with open_slide(path) as slide:
        x, y = slide.bounds.x, slide.bounds.y
        boxes = [Box(x + 97 * i, y + 61 * i, 700, 600) for i in range(16)]

        def look(box: Box) -> bytes:
            return slide.read(box, max_side_px=300).tobytes() + slide.read(box, max_side_px=900).tobytes()

        alone = [look(box) for box in boxes]
        with ThreadPoolExecutor(8) as pool:
            together = list(pool.map(look, boxes * 3))
    assert together == alone * 3


def test_a_slide_pickles_as_the_arguments_it_was_opened_with(shared: Path) -> None:
    with open_slide(shared / "slides" / "tiff-pyramid-72dpi.tif", mpp=0.5, reader="tiffslide") as slide:
        packed = pickle.dumps(slide)
        with pickle.loads(packed) as copy:
            assert (copy.path, copy.mpp_um, copy.reader) == (slide.path, (0.5, 0.5), "tiffslide")
            box = Box(100, 100, 800, 800)
            assert np.array_equal(copy.read(box, magnification=10), slide.read(box, magnification=10))
    assert len(packed) < 500


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_no_handle_crosses_a_fork(path: Path) -> None:
    with open_slide(path) as slide:
        box = Box(slide.bounds.x + 50, slide.bounds.y + 50, 500, 400)
        before = slide.read(box, max_side_px=500)
        context = multiprocessing.get_context("fork")
        receiver, sender = context.Pipe(duplex=False)

        def child() -> None:
            sender.send(slide.read(box, max_side_px=500).tobytes())

        process = context.Process(target=child)
        process.start()
        pixels = receiver.recv()
        process.join()
        receiver.close()
        sender.close()
        assert pixels == before.tobytes()
        assert np.array_equal(slide.read(box, max_side_px=500), before)


def test_what_cannot_be_shown_is_refused(shared: Path) -> None:
    with open_slide(shared / "slides" / "CMU-1-Small-Region.svs") as slide:
        for arguments in ({}, {"magnification": 10, "max_side_px": 100}, {"max_side_px": 0}, {"magnification": -1}):
            with pytest.raises(RoiError):
                slide.read(Box(0, 0, 10, 10), **arguments)
        with pytest.raises(RoiError, match="must have an area"):
            slide.read(Box(0, 0, 0, 10), magnification=10)


def test_a_slide_without_a_scale_shows_itself_but_knows_no_magnification(shared: Path) -> None:
    with open_slide(shared / "slides" / "svs-no-mpp-no-appmag.svs") as slide:
        found = slide.reading(Box(0, 0, 500, 500), max_side_px=100)
        assert found.rgb.shape == (100, 100, 3)
        for ask in (lambda: found.magnification, lambda: slide.read(Box(0, 0, 9, 9), magnification=10)):
            with pytest.raises(SlideError, match=r"--mpp .*--objective-power"):
                ask()


def test_a_closed_slide_says_so(shared: Path) -> None:
    slide = open_slide(shared / "slides" / "CMU-1-Small-Region.svs")
    slide.close()
    slide.close()
    with pytest.raises(SlideError, match="has been closed; open it again"):
        slide.read(Box(0, 0, 10, 10), magnification=10)
