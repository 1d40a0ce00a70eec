"""What a network may say of itself, and that its libraries keep quiet."""

import logging
import warnings
from typing import Any

import pytest

from pathnav.errors import ConfigError
from pathnav.retrieval.network import Preprocess, quiet, square_side, triple, weights_bytes


@pytest.mark.parametrize(("value", "side_px"), [(224, 224), ((448, 448), 448), ([64], 64)])
def test_a_square_input_has_one_side(value: Any, side_px: int) -> None:
    assert square_side(value, "X") == side_px


@pytest.mark.parametrize("value", [(64, 96), None, 0, "224", ()])
def test_an_input_that_is_not_square_is_refused(value: Any) -> None:
    with pytest.raises(ConfigError, match=r"X sees images of .* px; pathnav shows a network squares only"):
        square_side(value, "X")


def test_one_number_stands_for_three_channels() -> None:
    assert triple("std", 0.5, "X") == (0.5, 0.5, 0.5)
    with pytest.raises(ConfigError, match=r"X: mean must be three numbers, got \[0.5, 0.5\]"):
        triple("mean", [0.5, 0.5], "X")


def test_preprocessing_is_recorded_as_json() -> None:
    recorded = Preprocess(224, (0.1, 0.2, 0.3), (1.0, 1.0, 1.0)).as_json
    assert recorded == {"side_px": 224, "mean": [0.1, 0.2, 0.3], "std": [1.0, 1.0, 1.0], "interpolation": "bicubic"}


def test_weights_are_counted_in_fp32() -> None:
    assert weights_bytes({"a": (2, 3), "b": ()}) == 28


def test_silence_ends_with_its_block(capfd: pytest.CaptureFixture[str]) -> None:
    root, library = logging.getLogger(), logging.getLogger("transformers")
    before = (list(root.handlers), list(root.filters), library.level)
    with quiet():
        warnings.warn("of a library", FutureWarning, stacklevel=1)
        library.error("of a library")
    assert (root.handlers, root.filters, library.level) == before
    assert capfd.readouterr() == ("", "")
