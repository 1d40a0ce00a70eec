"""Any box at any magnification and level layout shows what its record claims, read off the pixels themselves."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pathnav.geometry import Box
from pathnav.slide import Slide, open_slide
from support.coordinates import BLUE, NOISE, layout, offsets, write_pyramid

WIDTH, HEIGHT, MPP_UM = 1777, 1403, 0.25
LAYOUTS = {
    "jpeg-1-level": layout(WIDTH, HEIGHT, (), "jpeg"),
    "jpeg-4.003": layout(WIDTH, HEIGHT, (4.003, 16.05), "jpeg"),
    "jpeg-2-4-8": layout(WIDTH, HEIGHT, (2, 4, 8), "jpeg", 240),
    "deflate-4-16": layout(WIDTH, HEIGHT, (4, 16), "deflate"),
    "deflate-4.003": layout(WIDTH, HEIGHT, (4.003, 16.05), "deflate"),
    "deflate-3.3": layout(WIDTH, HEIGHT, (3.3, 10.9), "deflate", 256),
    "sub-images": layout(WIDTH, HEIGHT, (2, 4, 8), "sub-images"),
    "striped": layout(WIDTH, HEIGHT, (), "striped"),
}


@pytest.fixture(scope="module")
def slides(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Slide]]:
    folder: Path = tmp_path_factory.mktemp("coordinates")
    opened = {name: open_slide(write_pyramid(folder / f"{name}.tif", it, MPP_UM)) for name, it in LAYOUTS.items()}
    yield opened
    for slide in opened.values():
        slide.close()


def test_each_way_of_reading_is_covered(slides: dict[str, Slide]) -> None:
    readers = {name: slide.reader for name, slide in slides.items()}
    assert {name for name, reader in readers.items() if reader == "tiffslide"} == {"sub-images", "striped"}
    assert all(slides[name].level_dimensions == it.dimensions for name, it in LAYOUTS.items())


magnifications = st.sampled_from([2.5, 10.0, 40.0]) | st.floats(2.5, 80)
boxes = st.builds(
    Box,
    st.floats(-300, WIDTH + 100).map(lambda number: round(number, 1)),
    st.floats(-300, HEIGHT + 100).map(lambda number: round(number, 1)),
    st.floats(1, 1600).map(lambda number: round(number, 1)),
    st.floats(1, 1600).map(lambda number: round(number, 1)),
)


@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(name=st.sampled_from(sorted(LAYOUTS)), box=boxes, magnification=magnifications)
def test_a_reading_shows_the_box_it_claims(slides: dict[str, Slide], name: str, box: Box, magnification: float) -> None:
    slide = slides[name]
    if magnification > 40:
        box = Box(box.x, box.y, min(box.width, 500), min(box.height, 500))
    found = slide.reading(box, magnification=magnification)
    step = found.box.width / found.rgb.shape[1], found.box.height / found.rgb.shape[0]
    _check_record(slide, found.box, box)
    miss = offsets(found.rgb, found.box, WIDTH, HEIGHT)
    down = found.level_downsample
    read_px = step[0] / down[0] * step[1] / down[1]  # level pixels, each with noise of its own, per image pixel
    _check_offset(miss.x, step[0], NOISE[found.level], miss.judged_x * read_px)
    _check_offset(miss.y, step[1], NOISE[found.level], miss.judged_y * read_px)
    _check_edge(found.rgb, found.box, step)
    usable = [it for it in slide.level_downsamples if it[0] <= step[0] * 1.02 and it[1] <= step[1] * 1.02]
    assert found.level_downsample == max(usable, default=(1.0, 1.0))


def _check_record(slide: Slide, shown: Box, asked: Box) -> None:
    assert abs(shown.x - asked.x) <= 0.5 and abs(shown.y - asked.y) <= 0.5
    assert abs(shown.width - asked.width) <= 1 and abs(shown.height - asked.height) <= 1
    inside = shown.intersection(Box(0, 0, slide.width, slide.height)).area / shown.area
    assert slide.reading(shown, max_side_px=8).outside_share == pytest.approx(1 - inside)


def _check_offset(miss: float | None, step: float, noise: float, pixels: float) -> None:
    """Uniform noise, one grey value a level-0 px, averages out: 4.3 of its mean's deviations, rounding and JPEG."""
    if miss is not None:
        allowed = 0.25 + 0.02 * step + min(noise + 1, 2.5 * noise / np.sqrt(pixels))
        assert abs(miss) <= allowed, f"{miss:.2f} level-0 px off, allowed {allowed:.2f}"


def _check_edge(rgb: np.ndarray, box: Box, step: tuple[float, float]) -> None:
    """Pixels whose centre is on the slide are coloured, all others are pure white."""
    columns = box.x + (np.arange(rgb.shape[1]) + 0.5) * step[0]
    rows = box.y + (np.arange(rgb.shape[0]) + 0.5) * step[1]
    inside = ((rows >= 0) & (rows < HEIGHT))[:, None] & ((columns >= 0) & (columns < WIDTH))[None, :]
    # A centre within rounding of the edge itself may fall on either side.
    is_clear = _is_off_edge(rows, HEIGHT)[:, None] & _is_off_edge(columns, WIDTH)[None, :]
    assert (rgb[is_clear & ~inside] == 255).all()
    assert (np.abs(rgb[is_clear & inside][:, 2].astype(int) - BLUE) <= 12).all()


def _is_off_edge(centres: np.ndarray, side: int) -> np.ndarray:
    return (np.abs(centres) > 1e-6) & (np.abs(centres - side) > 1e-6)
