"""What can be opened, by which reader, and what a user is told when it cannot."""

import contextlib
import functools
import gc
import http.server
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from pathnav.errors import SlideError
from pathnav.geometry import Box
from pathnav.slide import open_slide
from support.wide_slide import write_wide_slide

READABLE = {
    "CMU-1-Small-Region.svs": ("openslide", 1),
    "corrupt-one-tile-zeroed.svs": ("openslide", 1),
    "mirax-sparse-bounds.mrxs": ("openslide", 4),
    "ome-subifd.ome.tif": ("tiffslide", 3),
    "svs-40x-3levels.svs": ("openslide", 3),
    "svs-decimal-comma-mpp.svs": ("openslide", 2),
    "svs-no-mpp-has-appmag.svs": ("openslide", 2),
    "svs-no-mpp-no-appmag.svs": ("openslide", 2),
    "tiff-pyramid-0.5um.tif": ("openslide", 4),
    "tiff-pyramid-72dpi.tif": ("openslide", 4),
    "tiff-striped-not-tiled.tif": ("tiffslide", 1),
    "virtual-hgsc-groundtruth.svs": ("openslide", 3),
}
UNREADABLE = [
    "CMU-1-Small-Region-dicom",
    "corrupt-empty.svs",
    "corrupt-not-a-slide.svs",
    "corrupt-truncated-50pct-opens.tif",
    "corrupt-truncated-60pct.svs",
    "virtual-hgsc-groundtruth.geojson",
    "no-such-file.svs",
]
BOX = Box(200, 200, 500, 400)


@pytest.mark.parametrize("name", sorted(READABLE))
def test_every_readable_slide_opens_with_all_its_levels(shared: Path, name: str) -> None:
    with open_slide(shared / "slides" / name) as slide:
        assert (slide.reader, len(slide.level_dimensions)) == READABLE[name]
        assert slide.read(BOX, max_side_px=100).shape == (80, 100, 3)
        assert slide.overview(max_side_px=64).std() > 3


def test_any_instance_of_a_dicom_series_opens_the_slide(shared: Path) -> None:
    pixels = set()
    for instance in (shared / "slides" / "CMU-1-Small-Region-dicom").glob("*.dcm"):
        with open_slide(instance) as slide:
            assert (slide.width, slide.height) == (2220, 2967)
            pixels.add(slide.read(BOX, max_side_px=500).tobytes())
    assert len(pixels) == 1


@pytest.mark.parametrize("reader", [None, "openslide", "tiffslide"])
@pytest.mark.parametrize("name", UNREADABLE)
def test_a_file_that_is_no_slide_is_refused_in_one_sentence(shared: Path, name: str, reader: str | None) -> None:
    path = shared / "slides" / name
    with pytest.raises(SlideError) as refusal:
        open_slide(path, reader=reader)
    message = str(refusal.value)
    assert message.startswith(str(path)) and "\n" not in message and len(message) > len(str(path)) + 15


def test_a_reader_that_cannot_or_does_not_exist_is_refused(shared: Path) -> None:
    with pytest.raises(SlideError, match=r"cannot be opened as a slide: OpenSlideUnsupportedFormatError"):
        open_slide(shared / "slides" / "tiff-striped-not-tiled.tif", reader="openslide")
    with pytest.raises(SlideError, match="openslide, tiffslide, got 'cucim'"):
        open_slide("x.svs", reader="cucim")


@pytest.mark.parametrize("name", ["svs-40x-3levels.svs", "tiff-pyramid-0.5um.tif", "CMU-1-Small-Region.svs"])
def test_both_readers_show_the_same_pixels(shared: Path, name: str) -> None:
    path = shared / "slides" / name
    with open_slide(path) as first, open_slide(path, reader="tiffslide") as second:
        assert first.level_dimensions == second.level_dimensions
        for side in (500, 250, 120, 30):
            assert np.array_equal(first.read(BOX, max_side_px=side), second.read(BOX, max_side_px=side))


def test_a_damaged_header_is_a_slide_error_whatever_the_reader_raises(shared: Path, tmp_path: Path) -> None:
    whole = (shared / "slides" / "tiff-striped-not-tiled.tif").read_bytes()
    rng = np.random.default_rng(5)
    directory = int.from_bytes(whole[4:8], "little")
    for number in range(60):
        spoilt = bytearray(whole)
        for at in rng.integers(0, 200, 3):
            spoilt[directory + int(at)] = int(rng.integers(0, 256))
        path = tmp_path / f"{number}.tif"
        path.write_bytes(spoilt)
        try:
            open_slide(path).close()
        except SlideError as error:
            assert str(path) in str(error)


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="needs /proc")
def test_opening_reading_and_closing_leaves_no_descriptor_open(shared: Path) -> None:
    def descriptors() -> int:
        gc.collect()
        return len(list(Path("/proc/self/fd").iterdir()))

    def visit(name: str) -> None:
        try:
            with open_slide(shared / "slides" / name) as slide:
                slide.read(BOX, max_side_px=100)
        except SlideError:
            pass

    names = [*READABLE, *UNREADABLE]
    for name in names:
        visit(name)
    before = descriptors()
    for name in names:
        visit(name)
    assert descriptors() == before


def test_importing_the_room_imports_no_slide_library() -> None:
    heavy = "openslide tiffslide tifffile zarr imagecodecs PIL skimage"
    code = f"import sys, pathnav.slide; print([m for m in {heavy.split()} if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_a_file_url_is_the_local_file(shared: Path) -> None:
    path = shared / "slides" / "CMU-1-Small-Region.svs"
    with open_slide(path) as local, open_slide(path.resolve().as_uri()) as remote:
        assert remote.reader == "openslide"
        assert np.array_equal(local.read(BOX, magnification=10), remote.read(BOX, magnification=10))
        assert local.fingerprint == remote.fingerprint


class RangeHandler(http.server.SimpleHTTPRequestHandler):
    """Serves files with byte ranges, as any object store does."""

    def log_message(self, *_: object) -> None:
        """Say nothing."""

    def do_GET(self) -> None:
        path = Path(self.translate_path(self.path))
        if not path.is_file():
            self.send_error(404)
            return
        whole = path.read_bytes()
        asked = re.match(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
        first, last = (int(asked[1]), int(asked[2] or len(whole) - 1)) if asked else (0, len(whole) - 1)
        body = whole[first : last + 1]
        self.send_response(206 if asked else 200)
        if asked:
            self.send_header("Content-Range", f"bytes {first}-{first + len(body) - 1}/{len(whole)}")
        self.send_header("Accept-Ranges", "bytes")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@contextlib.contextmanager
def serving(folder: Path) -> Iterator[str]:
    handler = functools.partial(RangeHandler, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as running:
        thread = threading.Thread(target=running.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{running.server_address[1]}"
        running.shutdown()
        thread.join()


@pytest.fixture
def server(shared: Path) -> Iterator[str]:
    with serving(shared / "slides") as address:
        yield address


def test_a_slide_on_a_web_server_reads_as_the_local_one(server: str, shared: Path) -> None:
    pytest.importorskip("aiohttp")
    name = "svs-40x-3levels.svs"
    with open_slide(f"{server}/{name}") as remote, open_slide(shared / "slides" / name) as local:
        assert remote.reader == "tiffslide" and remote.mpp_um == local.mpp_um
        for magnification in (2.5, 10, 40):
            mine, theirs = (it.read(BOX, magnification=magnification) for it in (remote, local))
            assert np.array_equal(mine, theirs)


def test_a_web_server_that_goes_away_is_an_error_and_not_white(tmp_path: Path) -> None:
    pytest.importorskip("aiohttp")
    write_wide_slide(tmp_path / "wide.tif", 12_800)
    with serving(tmp_path) as address:
        slide = open_slide(f"{address}/wide.tif")
    with slide, pytest.raises(SlideError, match=r"wide\.tif can no longer be read"):
        slide.read(Box(6000, 12_000, 500, 500), max_side_px=500)


def test_a_url_that_leads_nowhere_is_a_slide_error(server: str) -> None:
    pytest.importorskip("aiohttp")
    for url in (
        f"{server}/no-such-slide.svs",
        f"{server}/corrupt-not-a-slide.svs",
        "http://127.0.0.1:1/x.svs",
        "q://x",
    ):
        with pytest.raises(SlideError, match=f"^{re.escape(url)} cannot be opened as a slide"):
            open_slide(url)
