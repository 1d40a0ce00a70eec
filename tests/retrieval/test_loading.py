"""Loading from files and folders, and what is wrong with them in one sentence."""

import json
import logging
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
    assert load(choice).key != first.key


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


@pytest.mark.parametrize("weights", ["open_clip_model.safetensors", "open_clip_pytorch_model.bin", "any.pt"])
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
    keys = [load(ModelChoice(f"local-dir:{folder}", device="cpu")).key for folder in (two, three)]
    again = load(ModelChoice(f"local-dir:{two.rename(one)}", device="cpu")).key
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
    ("content", "sentence"),
    [
        (None, "has no open_clip_config.json"),
        ("{", "is not JSON"),
        ("[]", 'needs {"model_cfg": {"embed_dim"'),
        (json.dumps({"model_cfg": {"embed_dim": 8}}), 'needs {"model_cfg"'),
        (json.dumps({"model_cfg": {**tiny_clip.settings(), "colour": 1}}), "open_clip cannot build it (TypeError"),
        (json.dumps({"model_cfg": tiny_clip.settings(width=96)}), "is none of local-dir:"),
    ],
)
def test_a_folder_with_wrong_settings_is_refused(
    tiny_name: str, tmp_path: Path, content: str | None, sentence: str
) -> None:
    folder = tiny_clip.save_folder(tmp_path / "model")
    (folder / "open_clip_config.json").unlink()
    if content is not None:
        (folder / "open_clip_config.json").write_text(content)
    assert sentence in refusal(ModelChoice(f"local-dir:{folder}", device="cpu"))


def test_a_folder_that_is_not_there_is_refused(tmp_path: Path) -> None:
    assert "there is no such folder" in refusal(ModelChoice(f"local-dir:{tmp_path / 'none'}"))


def test_an_unknown_architecture_is_refused_with_near_names(tiny_weights: Path) -> None:
    said = refusal(ModelChoice("Vit-B-33", str(tiny_weights)))
    assert said.startswith("there is no architecture 'Vit-B-33'; did you mean ")
    assert "ViT-B-32" in said


def test_a_tag_that_open_clip_does_not_know_is_refused_with_those_it_does() -> None:
    said = refusal(ModelChoice("ViT-B-32", "laion2b"))
    assert said.startswith("checkpoint 'laion2b' is neither a file nor a tag of open_clip for ViT-B-32; its tags are ")
    assert "laion2b_s34b_b79k" in said


def test_weights_trained_with_another_activation_are_refused() -> None:
    assert refusal(ModelChoice("ViT-B-32", "openai")).endswith("give architecture=ViT-B-32-quickgelu")


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"side_px": 96}, "visual.positional_embedding is 37 x 64 in the network and 17 x 64 in the file"),
        ({"width": 96}, "is none of other: visual.class_embedding is 96 in the network and 64 in the file, and "),
    ],
)
def test_weights_of_another_architecture_are_refused(
    tiny_name: str, tiny_weights: Path, tmp_path: Path, changed: dict[str, int], sentence: str
) -> None:
    name = tiny_clip.register(tmp_path, "other", **changed)
    said = refusal(ModelChoice(name, str(tiny_weights), device="cpu"))
    assert sentence in said
    assert said.endswith("give the architecture that it was trained with")


def test_weights_with_other_names_are_refused(tiny_name: str, tiny_weights: Path, tmp_path: Path) -> None:
    import torch

    weights = torch.load(tiny_weights, weights_only=True)
    del weights["visual.proj"], weights["text_projection"]
    torch.save(weights, tmp_path / "part.pt")
    said = refusal(ModelChoice(tiny_name, str(tmp_path / "part.pt"), device="cpu"))
    assert "is none of pathnav-tiny: it lacks " in said


def test_weights_that_give_no_numbers_are_refused(tiny_name: str, tiny_weights: Path, tmp_path: Path) -> None:
    import torch

    weights = torch.load(tiny_weights, weights_only=True)
    torch.save({**weights, "text_projection": weights["text_projection"] * torch.nan}, tmp_path / "nan.pt")
    assert "gives embeddings that are no numbers" in refusal(ModelChoice(tiny_name, str(tmp_path / "nan.pt")))


@pytest.mark.skipif("__import__('importlib.util').util.find_spec('torch') is None")
@pytest.mark.parametrize("device", ["cuda", "cuda:7"])
def test_cuda_that_is_not_there_is_told(tiny_name: str, tiny_weights: Path, device: str) -> None:
    import torch

    if torch.cuda.device_count() > 7 or (device == "cuda" and torch.cuda.is_available()):
        pytest.skip("it is there")
    said = refusal(ModelChoice(tiny_name, str(tiny_weights), device=device))
    assert said.startswith(f"device {device} was asked for, and torch ")
    assert said.endswith("give device=cpu or auto")


def test_bare_weights_of_siglip_get_the_preprocessing_of_all_its_tags() -> None:
    from pathnav.retrieval.clip_source import _common_preprocess

    settings: dict[str, Any] = _common_preprocess("ViT-B-16-SigLIP")
    assert tuple(settings["mean"]) == (0.5, 0.5, 0.5)
    assert _common_preprocess("ViT-L-14") == {}


def test_a_process_keeps_the_last_two_models(tiny_name: str, tmp_path: Path) -> None:
    files = [tiny_clip.save_checkpoint(tmp_path / f"{seed}.pt", tiny_name, seed) for seed in range(3)]
    first, second, third = (load(ModelChoice(tiny_name, str(file))) for file in files)
    assert load(ModelChoice(tiny_name, str(files[1]))) is second
    assert load(ModelChoice(tiny_name, str(files[2]))) is third
    assert load(ModelChoice(tiny_name, str(files[0]))) is not first
