"""Rescaling: both libraries give the same picture, of the rectangle that was asked for."""

from importlib.util import find_spec

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from pathnav.slide import lanczos
from pathnav.slide.lanczos import resized

SIDE_PX = 40
LARGEST_DIFFERENCE = 4  # more only where a value passes 0 or 255 between the two axes

needs_cykooz = pytest.mark.skipif(find_spec("cykooz_resizer") is None, reason="no wheel for this machine")

pairs = st.tuples(st.floats(-6, 15), st.floats(22, 46))
sizes = st.tuples(st.integers(1, 60), st.integers(1, 60))


def noise(seed: int) -> NDArray[np.uint8]:
    """Return an image of random pixels, far enough from black and white that nothing is cut off there."""
    return np.random.default_rng(seed).integers(90, 166, (SIDE_PX, SIDE_PX, 3), dtype=np.uint8)


@needs_cykooz
@settings(deadline=None, max_examples=60)
@given(seed=st.integers(0, 99), across=pairs, down=pairs, size=sizes)
def test_both_libraries_show_the_same_picture(
    seed: int, across: tuple[float, float], down: tuple[float, float], size: tuple[int, int]
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lanczos, "IS_FAST", True)
        fast = resized(noise(seed), across, down, size)
        patch.setattr(lanczos, "IS_FAST", False)
        plain = resized(noise(seed), across, down, size)
    assert fast.shape == plain.shape == (size[1], size[0], 3)
    difference = np.abs(fast.astype(int) - plain)
    assert difference.max() <= LARGEST_DIFFERENCE
    assert difference.mean() < 0.6


@pytest.mark.parametrize("is_fast", [pytest.param(True, marks=needs_cykooz), False])
def test_a_ramp_keeps_its_place(monkeypatch: pytest.MonkeyPatch, is_fast: bool) -> None:
    monkeypatch.setattr(lanczos, "IS_FAST", is_fast)
    ramp = np.broadcast_to((np.arange(SIDE_PX) * 6)[None, :, None], (SIDE_PX, SIDE_PX, 3)).astype(np.uint8)
    shown = resized(ramp, (10.25, 30.25), (5.0, 25.0), (40, 40))
    expected = (10.25 + (np.arange(40) + 0.5) / 2 - 0.5) * 6  # the value at the centre of each image pixel
    assert np.abs(shown[20, :, 0] - expected).max() <= 1


@pytest.mark.parametrize("is_fast", [pytest.param(True, marks=needs_cykooz), False])
def test_a_plain_colour_stays_it(monkeypatch: pytest.MonkeyPatch, is_fast: bool) -> None:
    monkeypatch.setattr(lanczos, "IS_FAST", is_fast)
    plain = np.full((SIDE_PX, SIDE_PX, 3), (12, 200, 255), np.uint8)
    assert (resized(plain, (-3.5, 43.2), (0.0, 40.0), (33, 9)) == (12, 200, 255)).all()
