"""JPEG for models: the pixels of Pillow's encoder, in full colour resolution, with nothing else riding along."""

import io

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from pathnav.slide.jpeg import encode_jpeg

SHAPES = [(256, 256), (37, 51), (1, 1), (64, 1025)]


def smooth(height_px: int, width_px: int) -> NDArray[np.uint8]:
    """Return coloured blots with some noise."""
    rng = np.random.default_rng(height_px + width_px)
    blots = rng.integers(60, 200, (height_px // 8 + 1, width_px // 8 + 1, 3)).repeat(8, 0).repeat(8, 1)
    return (blots[:height_px, :width_px] + rng.integers(-9, 9, (height_px, width_px, 3))).astype(np.uint8)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("quality", [1, 50, 90, 95])
def test_a_jpeg_decodes_to_what_pillows_does(shape: tuple[int, int], quality: int) -> None:
    pixels, buffer = smooth(*shape), io.BytesIO()
    Image.fromarray(pixels).save(buffer, "JPEG", quality=quality, subsampling=0)
    mine = np.asarray(Image.open(io.BytesIO(encode_jpeg(pixels, quality)))).astype(int)
    assert np.abs(mine - np.asarray(Image.open(buffer)).astype(int)).max() <= 2


def test_a_jpeg_has_full_colour_resolution_and_neither_profile_nor_exif() -> None:
    with Image.open(io.BytesIO(encode_jpeg(smooth(64, 64), 90))) as image:
        assert [layer[1:3] for layer in image.layer] == [(1, 1)] * 3
        assert not {"icc_profile", "exif"} & image.info.keys()


def test_a_part_of_an_image_is_encoded_as_it_is() -> None:
    pixels = smooth(90, 120)
    assert encode_jpeg(pixels[10:74, 20:84], 90) == encode_jpeg(pixels[10:74, 20:84].copy(), 90)
