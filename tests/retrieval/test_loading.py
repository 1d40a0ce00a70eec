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


def test_a_model_is_loaded_once(tiny_name: str, tiny_weights: Path) -> None:
    choice = ModelChoice(tiny_name, str(tiny_weights), device="cpu")
    assert load(choice) is load(ModelChoice(tiny_name, str(tiny_weights), device="cpu"))


def test_a_changed_file_is_loaded_anew(tiny_name: str, tmp_path: Path) -> None:
    choice = ModelChoice(tiny_name, str(tiny_clip.save_checkpoint(tmp_path / "w.pt", tiny_name)), device="cpu")
    first = load(choice)
    tiny_clip.save_checkpoint(tmp_path / "w.pt", tiny_name, seed=2)
    assert load(choice).identity != first.identity


def test_both_formats_give_the_same_embeddings(tiny_name: str, tiny_weights: Path, tmp_path: Path) -> None:
    safe = tiny_clip.save_checkpoint(tmp_path / "tiny.safetensors", tiny_name)
    rows = [
        load(ModelChoice(tiny_name, str(file), device="cpu")).encode_images(IMAGES) for file in (safe, tiny_weights)
    ]
    assert rows[0].tobytes() == rows[1].tobytes()


def test_a_training_checkpoint_is_read(tiny_name: str, tiny_weights: Path, tmp_path: Path) -> None:
    import torch

    weights = {f"module.{key}": value for key, value in torch.load(tiny_weights, weights_only=True).items()}
    torch.save({"epoch": 3, "state_dict": weights}, tmp_path / "epoch_3.pt")
    rows = load(ModelChoice(tiny_name, str(tmp_path / "epoch_3.pt"), device="cpu")).encode_images(IMAGES)
    assert (
        rows.tobytes() == load(ModelChoice(tiny_name, str(tiny_weights), device="cpu")).encode_images(IMAGES).tobytes()
    )


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


@pytest.mark.parametrize("weights", ["open_clip_model.safetensors", "any.pt"])
def test_a_folder_with_settings_and_weights_is_a_model(
    tiny_name: str, tiny_weights: Path, tmp_path: Path, weights: str
) -> None:
    folder = tiny_clip.save_folder(tmp_path / "model", weights)
    found = load(ModelChoice(f"local-dir:{folder}", device="cpu"))
    assert found.identity["architecture"] == "local-dir"
    rows = load(ModelChoice(tiny_name, str(tiny_weights), device="cpu")).encode_images(IMAGES)
    assert found.encode_images(IMAGES).tobytes() == rows.tobytes()


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


def test_a_folder_that_is_not_there_is_refused(tmp_path: Path) -> None:
    assert str(tmp_path / "none") in refusal(ModelChoice(f"local-dir:{tmp_path / 'none'}"))


def test_an_unknown_architecture_is_refused_with_near_names(tiny_weights: Path) -> None:
    said = refusal(ModelChoice("Vit-B-33", str(tiny_weights)))
    assert "'Vit-B-33'" in said
    assert "ViT-B-32" in said


def test_a_tag_that_open_clip_does_not_know_is_refused_with_those_it_does() -> None:
    said = refusal(ModelChoice("ViT-B-32", "laion2b"))
    assert "'laion2b'" in said
    assert "laion2b_s34b_b79k" in said


def test_weights_trained_with_another_activation_are_refused() -> None:
    assert refusal(ModelChoice("ViT-B-32", "openai")).endswith("give architecture=ViT-B-32-quickgelu")


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


def test_a_process_keeps_the_last_two_models(tiny_name: str, tmp_path: Path) -> None:
    files = [tiny_clip.save_checkpoint(tmp_path / f"{seed}.pt", tiny_name, seed) for seed in range(3)]
    first, second, third = (load(ModelChoice(tiny_name, str(file))) for file in files)
    assert load(ModelChoice(tiny_name, str(files[1]))) is second
    assert load(ModelChoice(tiny_name, str(files[2]))) is third
    assert load(ModelChoice(tiny_name, str(files[0]))) is not first


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
