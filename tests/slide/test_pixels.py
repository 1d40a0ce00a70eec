"""Rescaling: both libraries show the rectangle asked for; JPEG: Pillow's pixels with nothing else riding along."""

import io
from importlib.util import find_spec

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from PIL import Image

from pathnav.slide import encode_jpeg, pixels
from pathnav.slide.pixels import Window, resized

SIDE_PX = 40
LARGEST_DIFFERENCE = 4  # more only where a value passes 0 or 255 between the two axes

needs_cykooz = pytest.mark.skipif(find_spec("cykooz_resizer") is None, reason="no wheel for this machine")

pairs = st.tuples(st.floats(-6, 15), st.floats(22, 46))
sizes = st.tuples(st.integers(1, 60), st.integers(1, 60))


@needs_cykooz
@given(seed=st.integers(0, 99), across=pairs, down=pairs, size=sizes)
def test_both_libraries_show_the_same_picture(
    seed: int, across: tuple[float, float], down: tuple[float, float], size: tuple[int, int]
) -> None:
    noise = np.random.default_rng(seed).integers(90, 166, (SIDE_PX, SIDE_PX, 3), dtype=np.uint8)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pixels, "IS_FAST", True)
        fast = resized(noise, across, down, size)
        patch.setattr(pixels, "IS_FAST", False)
        plain = resized(noise, across, down, size)
    assert fast.shape == plain.shape == (size[1], size[0], 3)
    difference = np.abs(fast.astype(int) - plain)
    assert difference.max() <= LARGEST_DIFFERENCE
    assert difference.mean() < 0.6


@pytest.mark.parametrize("is_fast", [pytest.param(True, marks=needs_cykooz), False])
def test_a_ramp_keeps_its_place_and_a_plain_colour_stays_it(monkeypatch: pytest.MonkeyPatch, is_fast: bool) -> None:
    monkeypatch.setattr(pixels, "IS_FAST", is_fast)
    ramp = np.broadcast_to((np.arange(SIDE_PX) * 6)[None, :, None], (SIDE_PX, SIDE_PX, 3)).astype(np.uint8)
    shown = resized(ramp, (10.25, 30.25), (5.0, 25.0), (40, 40))
    expected = (10.25 + (np.arange(40) + 0.5) / 2 - 0.5) * 6  # the value at the centre of each image pixel
    assert np.abs(shown[20, :, 0] - expected).max() <= 1
    plain = np.full((SIDE_PX, SIDE_PX, 3), (12, 200, 255), np.uint8)
    assert (resized(plain, (-3.5, 43.2), (0.0, 40.0), (33, 9)) == (12, 200, 255)).all()


@given(st.integers(0, 70), st.integers(0, 70), st.integers(1, 99), st.integers(1, 99))
def test_the_tiles_of_a_window_cover_it_once(left: int, top: int, width: int, height: int) -> None:
    parts = list(Window(left, top, width, height).tiles((16, 24)))
    seen = np.zeros((200, 200), int)
    for part in parts:
        assert part.left // 16 == (part.right - 1) // 16 and part.top // 24 == (part.bottom - 1) // 24
        seen[part.top : part.bottom, part.left : part.right] += 1
    assert (seen[top : top + height, left : left + width] == 1).all() and seen.sum() == width * height


def blots(height_px: int, width_px: int) -> NDArray[np.uint8]:
    """Return coloured blots with some noise."""
    rng = np.random.default_rng(height_px + width_px)
    plain = rng.integers(60, 200, (height_px // 8 + 1, width_px // 8 + 1, 3)).repeat(8, 0).repeat(8, 1)
    return (plain[:height_px, :width_px] + rng.integers(-9, 9, (height_px, width_px, 3))).astype(np.uint8)


@pytest.mark.parametrize("shape", [(256, 256), (37, 51), (1, 1), (64, 1025)])
@pytest.mark.parametrize("quality", [1, 50, 95])
def test_a_jpeg_decodes_to_what_pillows_does_in_full_colour(shape: tuple[int, int], quality: int) -> None:
    rgb, buffer = blots(*shape), io.BytesIO()
    Image.fromarray(rgb).save(buffer, "JPEG", quality=quality, subsampling=0)
    with Image.open(io.BytesIO(encode_jpeg(rgb, quality))) as image:
        mine = np.asarray(image).astype(int)
        assert [layer[1:3] for layer in image.layer] == [(1, 1)] * 3
        assert not {"icc_profile", "exif"} & image.info.keys()
    assert np.abs(mine - np.asarray(Image.open(buffer)).astype(int)).max() <= 2
    part = rgb[: shape[0] // 2 + 1, : shape[1] // 2 + 1]
    assert encode_jpeg(part, quality) == encode_jpeg(part.copy(), quality)
