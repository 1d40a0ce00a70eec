"""Images as a model is sent them."""

import io

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from pathnav.errors import ConfigError
from pathnav.localise import ViewSettings
from pathnav.localise.views import encode_jpeg, whole_factor


@given(st.integers(1, 1024), st.integers(1, 1024))
def test_enlargement_brings_the_short_side_to_64_px_as_far_as_the_limit_allows(width_px: int, height_px: int) -> None:
    factor = whole_factor(width_px, height_px, 1024)
    assert factor >= 1 and factor * max(width_px, height_px) <= 1024
    if min(width_px, height_px) >= 64:
        assert factor == 1
    elif factor * min(width_px, height_px) < 64:
        assert (factor + 1) * max(width_px, height_px) > 1024


def test_colours_survive_the_jpeg_at_full_resolution() -> None:
    stripes = np.zeros((64, 64, 3), np.uint8)
    stripes[:, ::4] = (0, 140, 0)
    stripes[:, 1::4] = stripes[:, 2::4] = stripes[:, 3::4] = (230, 170, 200)
    decoded = np.asarray(Image.open(io.BytesIO(encode_jpeg(stripes, 90)))).astype(int)
    assert np.abs(decoded - stripes).mean() < 6


@pytest.mark.parametrize("bad", [{"view_px": 10}, {"jpeg_quality": 0}, {"jpeg_quality": 101}])
def test_settings_that_cannot_be_shown_are_refused(bad: dict[str, int]) -> None:
    with pytest.raises(ConfigError):
        ViewSettings(**bad)
