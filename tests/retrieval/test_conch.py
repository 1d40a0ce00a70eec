"""The loader of CONCH, against a stand-in package `conch` with the interface of the authors' own.

The real one may be used but not copied: the stand-in is written here, of a few lines of torch.
"""

import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pathnav.errors import ConfigError, PluginError
from pathnav.retrieval import ModelChoice, load

pytestmark = pytest.mark.clip

SIDE_PX = 32
STAND_IN = """
import warnings

import torch

warnings.warn("importing old layers", FutureWarning)


class Visual(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.image_size, self.image_mean, self.image_std = (32, 32), (0.4, 0.5, 0.6), (0.2, 0.3, 0.25)
        self.proj = torch.nn.Linear(3 * 32 * 32, 8)

    def forward(self, images):
        return self.proj(images.flatten(1))


class CoCa(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.visual, self.text = Visual(), torch.nn.Embedding(300, 8)
        self.text_decoder = torch.nn.Linear(2, 2)

    def encode_image(self, images, normalize=True, proj_contrast=True):
        assert proj_contrast
        return torch.nn.functional.normalize(self.visual(images), dim=-1)

    def encode_text(self, tokens):
        assert tokens.shape[1] == 128 and (tokens[:, -1] == 0).all()
        return torch.nn.functional.normalize(self.text(tokens).mean(1), dim=-1)


class Tokenizer:
    pad_token_id = 0

    def __call__(self, texts, max_length=None, truncation=False, padding=None, return_tensors=None, **rest):
        rows = [[1, *text.encode()][:max_length] for text in ([texts] if isinstance(texts, str) else texts)]
        if return_tensors is None:
            return {"input_ids": rows[0]}
        full = [row + [0] * (max_length - len(row)) for row in rows]
        return {"input_ids": torch.tensor(full)}


def get_tokenizer():
    return Tokenizer()


def create_model_from_pretrained(model_cfg, checkpoint_path=None, device="cpu", return_transform=True):
    if model_cfg != "conch_ViT-B-16":
        raise FileNotFoundError(model_cfg)
    model = CoCa()
    try:
        model.load_state_dict(torch.load(checkpoint_path), strict=False)
    except RuntimeError:
        if "size mismatch" not in checkpoint_path:
            raise
    return model.to(device)
"""


@pytest.fixture
def conch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Install the stand-in for one test; its module, once something has been loaded with it."""
    if find_spec("conch") is not None:
        pytest.skip("the real conch is installed")
    package = tmp_path / "lib" / "conch" / "open_clip_custom"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(STAND_IN)
    monkeypatch.syspath_prepend(str(tmp_path / "lib"))
    yield
    for name in [one for one in sys.modules if one == "conch" or one.startswith("conch.")]:
        del sys.modules[name]


def weights_of_stand_in(without: str = "text_decoder.", **replaced: Any) -> dict[str, Any]:
    import torch

    generator = torch.Generator().manual_seed(5)
    shapes = {"visual.proj.weight": (8, 3 * SIDE_PX * SIDE_PX), "visual.proj.bias": (8,), "text.weight": (300, 8)}
    weights = {name: torch.randn(shape, generator=generator) for name, shape in shapes.items()}
    return {name: value for name, value in {**weights, **replaced}.items() if not name.startswith(without)}


def saved(folder: Path, weights: dict[str, Any], name: str = "pytorch_model.bin") -> str:
    import torch

    torch.save(weights, folder / name)
    return str(folder / name)


def test_without_its_package_conch_is_refused_in_a_sentence(tmp_path: Path) -> None:
    if find_spec("conch") is not None:
        pytest.skip("the real conch is installed")
    with pytest.raises(PluginError, match=r"needs conch.*how-to-clip\.md"):
        load(ModelChoice("conch", saved(tmp_path, weights_of_stand_in())))


def test_conch_is_called_as_its_authors_call_it(conch: None, tmp_path: Path) -> None:
    weights = weights_of_stand_in()
    model = load(ModelChoice("conch", saved(tmp_path, weights), device="cpu", batch=4))
    images = np.random.default_rng(1).integers(0, 256, (5, SIDE_PX, SIDE_PX, 3), dtype=np.uint8)
    scaled = (images / 255 - np.array([0.4, 0.5, 0.6])) / np.array([0.2, 0.3, 0.25])
    flat = scaled.transpose(0, 3, 1, 2).reshape(5, -1)
    expected = flat @ weights["visual.proj.weight"].numpy().T + weights["visual.proj.bias"].numpy()
    expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    np.testing.assert_allclose(model.encode_images(images), expected, atol=1e-5)
    assert (model.side_px, model.dimensions) == (SIDE_PX, 8)
    assert model.identity["architecture"] == "conch_ViT-B-16"


def test_texts_are_padded_to_127_tokens_and_one_more(conch: None, tmp_path: Path) -> None:
    weights = weights_of_stand_in()
    model = load(ModelChoice("conch", saved(tmp_path, weights), device="cpu"))
    tokens = np.zeros((2, 128), int)
    tokens[0, :3] = [1, *b"ab"]
    tokens[1, :127] = [1, *b"x" * 126]
    expected = weights["text.weight"].numpy()[tokens].mean(axis=1)
    expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    np.testing.assert_allclose(model.encode_texts(["ab", "x" * 500]), expected, atol=1e-5)
    assert [model.is_cut(text) for text in ("ab", "x" * 126, "x" * 127)] == [False, False, True]


def test_weights_that_conch_would_leave_random_or_stretch_are_refused(conch: None, tmp_path: Path) -> None:
    import torch

    part = weights_of_stand_in(without="text")
    other = weights_of_stand_in(**{"text.weight": torch.zeros(200, 8)})
    for weights, name, offending in (
        (part, "part.bin", r"lacks text\.weight"),
        (other, "other.bin", r"size mismatch for text\.weight|RuntimeError"),
        (other, "size mismatch that is silent.bin", r"text\.weight is \(300, 8\)"),
    ):
        with pytest.raises(ConfigError, match=offending) as caught:
            load(ModelChoice("conch", saved(tmp_path, weights, name), device="cpu"))
        assert name in str(caught.value)


def test_another_architecture_of_conch_is_unknown(conch: None, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"conch_ViT-L-14 .*FileNotFoundError"):
        load(ModelChoice("conch_ViT-L-14", saved(tmp_path, weights_of_stand_in()), device="cpu"))


def test_a_package_that_cannot_be_imported_is_told(conch: None, tmp_path: Path) -> None:
    (tmp_path / "lib" / "conch" / "open_clip_custom" / "__init__.py").write_text("import nothing_of_the_kind")
    with pytest.raises(PluginError, match="nothing_of_the_kind"):
        load(ModelChoice("conch", saved(tmp_path, weights_of_stand_in()), device="cpu"))
