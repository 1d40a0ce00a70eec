"""Embeddings of a small network with random weights, held against open_clip's own calls."""

import json
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from pathnav.errors import ConfigError
from pathnav.retrieval import ImageTextModel, ModelChoice, load
from support.tiny_clip import CONTEXT_TOKENS, DIMENSIONS, SIDE_PX

pytestmark = pytest.mark.clip

TEXTS = ["a.", "lymphocytes of a normal lymph node.", "carcinoma " * 200, ""]


@pytest.fixture(scope="module")
def model(tiny_name: str, tiny_weights: Path) -> ImageTextModel:
    return load(ModelChoice(tiny_name, checkpoint=str(tiny_weights), device="cpu", batch=8))


@pytest.fixture(scope="module")
def images() -> NDArray[np.uint8]:
    return np.random.default_rng(3).integers(0, 256, (37, SIDE_PX, SIDE_PX, 3), dtype=np.uint8)


@pytest.fixture(scope="module")
def direct(tiny_name: str, tiny_weights: Path) -> tuple[Any, Any]:
    """Return the network and the preprocessing as open_clip itself makes them."""
    import open_clip

    network, _, preprocess = open_clip.create_model_and_transforms(tiny_name, pretrained=str(tiny_weights))
    return network.eval(), preprocess


def test_images_are_embedded_as_open_clip_does(
    model: ImageTextModel, images: NDArray[np.uint8], direct: tuple[Any, Any]
) -> None:
    import torch
    from PIL import Image

    network, preprocess = direct
    with torch.no_grad():
        batch = torch.stack([preprocess(Image.fromarray(one)) for one in images])
        expected = network.encode_image(batch, normalize=True).numpy()
    found = model.encode_images(images)
    assert ((found * expected).sum(axis=1) > 0.9999).all()
    np.testing.assert_allclose(found, expected, atol=2e-6)


def test_texts_are_embedded_as_open_clip_does(model: ImageTextModel, tiny_name: str, direct: tuple[Any, Any]) -> None:
    import open_clip
    import torch

    with torch.no_grad():
        expected = direct[0].encode_text(open_clip.get_tokenizer(tiny_name)(TEXTS), normalize=True).numpy()
    np.testing.assert_allclose(model.encode_texts(TEXTS), expected, atol=2e-6)


def test_a_row_has_the_same_bytes_whatever_else_is_in_the_call(
    model: ImageTextModel, images: NDArray[np.uint8]
) -> None:
    together = model.encode_images(images)
    alone = np.concatenate([model.encode_images(images[[at]]) for at in range(len(images))])
    turned = model.encode_images(images[::-1])[::-1]
    assert together.tobytes() == alone.tobytes() == turned.tobytes()
    many = [f"text {number}" for number in range(20)]
    assert model.encode_texts(many).tobytes() == np.concatenate([model.encode_texts([one]) for one in many]).tobytes()


def test_nothing_gives_no_rows(model: ImageTextModel) -> None:
    assert model.encode_images(np.zeros((0, SIDE_PX, SIDE_PX, 3), np.uint8)).shape == (0, DIMENSIONS)
    assert model.encode_texts([]).shape == (0, DIMENSIONS)


def test_threads_get_what_one_thread_gets(model: ImageTextModel, images: NDArray[np.uint8]) -> None:
    expected, found = model.encode_images(images).tobytes(), []
    threads = [threading.Thread(target=lambda: found.append(model.encode_images(images).tobytes())) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [expected] * 4


@pytest.mark.parametrize(
    ("text", "cut"),
    [
        ("", False),
        ("a", False),
        ("a " * (CONTEXT_TOKENS - 2), False),
        ("a " * (CONTEXT_TOKENS - 1), True),
        ("carcinoma " * 200, True),
        ("Ä€😀" * 8, False),
        ("Ä€😀" * 50, True),
    ],
)
def test_a_text_that_the_tokenizer_cuts_is_known(model: ImageTextModel, text: str, cut: bool) -> None:
    assert model.is_cut(text) is cut


@pytest.mark.parametrize("precision", ["bf16", "fp16"])
def test_half_precision_is_close_to_full(
    model: ImageTextModel, tiny_name: str, tiny_weights: Path, images: NDArray[np.uint8], precision: str
) -> None:
    half = load(ModelChoice(tiny_name, str(tiny_weights), device="cpu", precision=precision, batch=8))
    rows = half.encode_images(images)
    assert ((rows * model.encode_images(images)).sum(axis=1) > 0.999).all()
    assert rows.tobytes() != model.encode_images(images).tobytes()
    assert half.identity != model.identity


def test_what_a_model_is_can_be_recorded(model: ImageTextModel, tiny_name: str, tiny_weights: Path) -> None:
    identity = json.loads(json.dumps(model.identity))
    assert identity["architecture"] == tiny_name
    assert identity["dimensions"] == model.dimensions == DIMENSIONS
    assert identity["precision"] == model.precision == "fp32"
    assert identity["preprocess"]["side_px"] == model.side_px == SIDE_PX
    assert (model.device, model.batch) == ("cpu", 8)


@pytest.mark.parametrize(
    "wrong",
    [
        np.zeros((2, SIDE_PX, SIDE_PX + 1, 3), np.uint8),
        np.zeros((SIDE_PX, SIDE_PX, 3), np.uint8),
        np.zeros((1, SIDE_PX, SIDE_PX, 3), np.float32),
    ],
)
def test_images_of_another_shape_are_refused(model: ImageTextModel, wrong: NDArray[Any]) -> None:
    with pytest.raises(ConfigError, match=r"\(n, 64, 64, 3\)"):
        model.encode_images(wrong)


@pytest.mark.parametrize(("height", "width", "inside"), [(128, 64, (64, 32)), (10, 40, (16, 64)), (1, 500, (1, 64))])
def test_an_image_is_scaled_to_its_long_side_and_white_beyond(
    model: ImageTextModel, height: int, width: int, inside: tuple[int, int]
) -> None:
    square = model.fitted(np.full((height, width, 3), 90, np.uint8))
    expected = np.full((SIDE_PX, SIDE_PX, 3), 255, np.uint8)
    expected[: inside[0], : inside[1]] = 90
    np.testing.assert_array_equal(square, expected)


def test_scaling_is_that_of_open_clips_preprocessing(model: ImageTextModel, direct: tuple[Any, Any]) -> None:
    import torch
    from PIL import Image

    image = np.random.default_rng(5).integers(0, 256, (200, 200, 3), dtype=np.uint8)
    with torch.no_grad():
        expected = direct[0].encode_image(direct[1](Image.fromarray(image))[None], normalize=True).numpy()
    np.testing.assert_allclose(model.encode_images(model.fitted(image)[None]), expected, atol=2e-6)
