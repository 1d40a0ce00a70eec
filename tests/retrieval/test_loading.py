"""Loading from files and folders, and what is wrong with them in one sentence."""

import json
import logging
import os
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pathnav.errors import ConfigError
from pathnav.retrieval import ModelChoice, load
from support import tiny_clip
from support.tiny_clip import SIDE_PX

pytestmark = pytest.mark.clip

IMAGES = np.random.default_rng(4).integers(0, 256, (3, SIDE_PX, SIDE_PX, 3), dtype=np.uint8)


def refusal(choice: ModelChoice) -> str:
    """Return the sentence that loading ends with."""
    with pytest.raises(ConfigError) as caught:
        load(choice)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_process_keeps_the_last_two_models_and_loads_a_changed_file_anew(tiny_name: str, tmp_path: Path) -> None:
    choices = [
        ModelChoice(tiny_name, str(tiny_clip.save_checkpoint(tmp_path / f"{seed}.pt", tiny_name, seed)), device="cpu")
        for seed in range(3)
    ]
    first, second, third = map(load, choices)
    assert load(choices[1]) is second
    assert load(choices[2]) is third
    assert load(choices[0]) is not first
    tiny_clip.save_checkpoint(tmp_path / "2.pt", tiny_name, seed=7)
    assert load(choices[2]).identity != third.identity


@pytest.mark.parametrize(
    "saved", ["tiny.safetensors", "training.pt", "folder/open_clip_model.safetensors", "folder/any.pt"]
)
def test_a_network_is_the_same_in_every_format(tiny_name: str, tiny_weights: Path, tmp_path: Path, saved: str) -> None:
    import torch

    choice = ModelChoice(tiny_name, str(tiny_weights), device="cpu")
    expected = load(choice).encode_images(IMAGES)
    if saved.startswith("folder"):
        choice = ModelChoice(f"local-dir:{tiny_clip.save_folder(tmp_path / 'folder', Path(saved).name)}", device="cpu")
    elif saved.startswith("training"):
        weights = {f"module.{key}": value for key, value in torch.load(tiny_weights, weights_only=True).items()}
        torch.save({"epoch": 3, "state_dict": weights}, tmp_path / saved)
        choice = ModelChoice(tiny_name, str(tmp_path / saved), device="cpu")
    else:
        file = tiny_clip.save_checkpoint(tmp_path / saved, tiny_name)
        choice = ModelChoice(tiny_name, str(file), device="cpu")
    assert load(choice).encode_images(IMAGES).tobytes() == expected.tobytes()


def test_loading_says_nothing_and_leaves_logging_and_chance_alone(
    tiny_name: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    import torch

    root = logging.getLogger()
    before = (list(root.handlers), list(root.filters), root.level)
    torch.manual_seed(7)
    expected = torch.rand(1).item()
    folder = tiny_clip.save_folder(tmp_path / "folder")
    torch.manual_seed(7)
    load(ModelChoice(f"local-dir:{folder}", device="cpu")).encode_images(IMAGES)
    assert torch.rand(1).item() == expected
    assert (root.handlers, root.filters, root.level) == before
    assert capfd.readouterr() == ("", "")


def test_a_folder_is_known_by_its_content_not_its_place(tiny_name: str, tmp_path: Path) -> None:
    one = tiny_clip.save_folder(tmp_path / "one")
    two = one.rename(tmp_path / "two")
    three = tiny_clip.save_folder(tmp_path / "three", mean=[0.5, 0.5, 0.5])
    keys = [load(ModelChoice(f"local-dir:{folder}", device="cpu")).identity for folder in (two, three)]
    again = load(ModelChoice(f"local-dir:{two.rename(one)}", device="cpu")).identity
    assert keys[0] == again != keys[1]


def test_a_folders_preprocessing_is_used(tiny_name: str, tmp_path: Path) -> None:
    import open_clip
    import torch
    from PIL import Image

    folder = tiny_clip.save_folder(tmp_path / "model", mean=[0.7, 0.5, 0.6], std=0.2, interpolation="bilinear")
    model = load(ModelChoice(f"local-dir:{folder}", device="cpu"))
    network, _, preprocess = open_clip.create_model_and_transforms(f"local-dir:{folder}")
    with torch.no_grad():
        expected = network.eval().encode_image(preprocess(Image.fromarray(IMAGES[0]))[None], normalize=True).numpy()
    np.testing.assert_allclose(model.encode_images(IMAGES[:1]), expected, atol=2e-6)
    assert model.identity["preprocess"] == {
        "side_px": 64, "mean": [0.7, 0.5, 0.6], "std": [0.2, 0.2, 0.2], "interpolation": "bilinear"
    }  # fmt: skip


def test_a_folder_takes_weights_from_elsewhere(tiny_name: str, tiny_weights: Path, tmp_path: Path) -> None:
    folder = tiny_clip.save_folder(tmp_path / "model")
    (folder / "open_clip_model.safetensors").unlink()
    assert "must hold one file of weights" in refusal(ModelChoice(f"local-dir:{folder}", device="cpu"))
    assert load(ModelChoice(f"local-dir:{folder}", str(tiny_weights), device="cpu")).side_px == SIDE_PX


@pytest.mark.parametrize(
    ("content", "offending"),
    [
        (None, "open_clip_config.json"),
        ("{", "open_clip_config.json"),
        ("[]", "open_clip_config.json"),
        (json.dumps({"model_cfg": {"embed_dim": 8}}), "vision_cfg"),
        (json.dumps({"model_cfg": {**tiny_clip.settings(), "colour": 1}}), "colour"),
        (json.dumps({"model_cfg": tiny_clip.settings(width=96)}), "is none of local-dir:"),
        (json.dumps({"model_cfg": tiny_clip.settings(), "preprocess_cfg": {"mean": [0.5, 0.5]}}), "mean"),
    ],
)
def test_a_folder_with_wrong_settings_is_refused(
    tiny_name: str, tmp_path: Path, content: str | None, offending: str
) -> None:
    folder = tiny_clip.save_folder(tmp_path / "model")
    (folder / "open_clip_config.json").unlink()
    if content is not None:
        (folder / "open_clip_config.json").write_text(content)
    assert offending in refusal(ModelChoice(f"local-dir:{folder}", device="cpu"))


@pytest.mark.parametrize(
    ("architecture", "checkpoint", "offending"),
    [
        ("local-dir:none/at/all", None, "none/at/all"),
        ("Vit-B-33", "laion2b", "'Vit-B-33'; did you mean .*ViT-B-32"),
        ("ViT-B-32", "laion2b", "'laion2b' .*laion2b_s34b_b79k"),
        ("ViT-B-32", "openai", "architecture=ViT-B-32-quickgelu"),
    ],
)
def test_a_name_that_stands_for_nothing_is_refused_with_what_there_is(
    architecture: str, checkpoint: str | None, offending: str
) -> None:
    with pytest.raises(ConfigError, match=offending):
        load(ModelChoice(architecture, checkpoint))


@pytest.mark.parametrize(
    ("changed", "offending"),
    [({"side_px": 96}, "visual.positional_embedding is (37, 64)"), ({"width": 96}, "visual.class_embedding is (96,)")],
)
def test_weights_of_another_architecture_are_refused_and_never_stretched(
    tiny_name: str, tiny_weights: Path, tmp_path: Path, changed: dict[str, int], offending: str
) -> None:
    name = tiny_clip.register(tmp_path, f"other-{changed}", **changed)
    assert offending in refusal(ModelChoice(name, str(tiny_weights), device="cpu"))


def test_weights_with_other_names_are_refused(tiny_name: str, tiny_weights: Path, tmp_path: Path) -> None:
    import torch

    weights = torch.load(tiny_weights, weights_only=True)
    text = weights.pop("text_projection")
    torch.save(weights, tmp_path / "part.pt")
    torch.save({**weights, "text_projection": text, "more": text}, tmp_path / "more.pt")
    assert "lacks text_projection" in refusal(ModelChoice(tiny_name, str(tmp_path / "part.pt"), device="cpu"))
    assert "also has more" in refusal(ModelChoice(tiny_name, str(tmp_path / "more.pt"), device="cpu"))


def test_weights_that_give_no_numbers_are_refused(tiny_name: str, tiny_weights: Path, tmp_path: Path) -> None:
    import torch

    weights = torch.load(tiny_weights, weights_only=True)
    torch.save({**weights, "text_projection": weights["text_projection"] * torch.nan}, tmp_path / "nan.pt")
    assert "gives embeddings that are no numbers" in refusal(ModelChoice(tiny_name, str(tmp_path / "nan.pt")))


@pytest.mark.parametrize("device", ["cuda:77", "mps"])
def test_a_device_that_is_not_there_is_told(tiny_name: str, tiny_weights: Path, device: str) -> None:
    import torch

    if device == "mps" and torch.backends.mps.is_available():
        pytest.skip("it is there")
    assert f"device {device} cannot be used" in refusal(ModelChoice(tiny_name, str(tiny_weights), device=device))


@pytest.mark.parametrize(("name", "expected"), [("ViT-B-16-SigLIP", 0.5), ("ViT-L-14", 0.48145466)])
def test_bare_weights_get_the_preprocessing_of_all_tags_where_these_agree(
    tmp_path: Path, name: str, expected: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    import open_clip

    # The real architectures are large: a tiny one under their name has their tags.
    monkeypatch.setitem(open_clip.factory._MODEL_CONFIGS, name, tiny_clip.settings())
    tokenizer = open_clip.get_tokenizer("ViT-B-32")
    monkeypatch.setattr(open_clip, "get_tokenizer", lambda *_: tokenizer)
    weights = tiny_clip.save_checkpoint(tmp_path / "weights.pt", name)
    identity = load(ModelChoice(name, str(weights), device="cpu")).identity
    assert identity["preprocess"]["mean"][0] == expected


class Payload:
    """What a malicious checkpoint holds: unpickled, it would make a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self.folder),)


@pytest.mark.parametrize("is_archive", [True, False])
def test_a_checkpoint_with_code_is_refused_and_runs_nothing(tiny_name: str, tmp_path: Path, is_archive: bool) -> None:
    import torch

    file, folder = tmp_path / "weights.pt", tmp_path / "made_by_the_checkpoint"
    torch.save({"weight": torch.zeros(2), "extra": Payload(folder)}, file, _use_new_zipfile_serialization=is_archive)
    assert "pathnav runs no code" in refusal(ModelChoice(tiny_name, str(file), device="cpu"))
    assert not folder.exists()


@pytest.mark.parametrize("name", ["cut.pt", "cut.safetensors"])
def test_a_file_that_was_cut_off_is_told(tiny_name: str, tmp_path: Path, name: str) -> None:
    file = tiny_clip.save_checkpoint(tmp_path / name, tiny_name)
    file.write_bytes(file.read_bytes()[:100_000])
    assert f"{name} is cut off" in refusal(ModelChoice(tiny_name, str(file), device="cpu"))


@pytest.mark.filterwarnings("ignore")
def test_files_that_are_no_mapping_of_names_to_tensors_are_refused(tiny_name: str, tmp_path: Path) -> None:
    import torch

    torch.save({"epoch": 3, "name": "run"}, tmp_path / "no_tensors.pt")
    torch.save({}, tmp_path / "nothing.pt")
    torch.save([torch.zeros(2)], tmp_path / "list.pt")
    torch.save({"vision_model.post_layernorm.weight": torch.zeros(4)}, tmp_path / "transformers.pt")
    (tmp_path / "pickle.pt").write_bytes(pickle.dumps({"weights": [1.0, 2.0]}))
    torch.jit.save(torch.jit.script(torch.nn.Linear(2, 2)), tmp_path / "script.pt")
    for file in tmp_path.iterdir():
        assert file.name in refusal(ModelChoice(tiny_name, str(file), device="cpu"))
