"""What may be chosen, said without torch."""

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from pathnav.errors import ConfigError, PluginError
from pathnav.retrieval import ModelChoice, load
from pathnav.retrieval.names import Origin

HAS_TORCH = find_spec("torch") is not None


def test_importing_the_room_imports_no_torch() -> None:
    code = "import sys, pathnav.retrieval; print({'torch', 'torchvision', 'open_clip', 'PIL'} & set(sys.modules))"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert said.strip() == "set()"


@pytest.mark.skipif(HAS_TORCH, reason="needs an installation without the extra")
def test_without_the_extra_one_sentence_says_how_to_install_it() -> None:
    with pytest.raises(PluginError, match=r"^image-text models need pip install 'pathnav\[clip\]'; torch, .* not inst"):
        load(ModelChoice("ViT-B-32", checkpoint="laion2b_s34b_b79k"))


def test_a_choice_is_plain_and_can_be_compared() -> None:
    assert ModelChoice("hf-hub:a/b") == ModelChoice("hf-hub:a/b", None, "auto", "auto", None)


@pytest.mark.parametrize(
    ("short", "full", "origin"),
    [
        ("quilt-b-32", "hf-hub:wisdomik/QuiltNet-B-32", Origin.HUB),
        ("QUILT-B-16", "hf-hub:wisdomik/QuiltNet-B-16", Origin.HUB),
        ("biomedclip", "hf-hub:microsoft/BiomedCLIP-PubMedBERT_256-vit_base_patch16_224", Origin.HUB),
        ("local-dir:somewhere", "local-dir:somewhere", Origin.FOLDER),
    ],
)
def test_short_names_stand_for_full_ones(short: str, full: str, origin: Origin) -> None:
    choice = ModelChoice(short)
    assert (choice.full_name, choice.origin, choice.file) == (full, origin, None)


def test_conch_is_a_short_name(tmp_path: Path) -> None:
    (tmp_path / "pytorch_model.bin").write_bytes(b"PK\x03\x04rest")
    choice = ModelChoice("conch", checkpoint=str(tmp_path / "pytorch_model.bin"))
    assert (choice.full_name, choice.origin) == ("conch_ViT-B-16", Origin.CONCH)


def test_a_tag_is_no_file() -> None:
    assert ModelChoice("ViT-B-32", checkpoint="laion2b_s34b_b79k").file is None


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"architecture": ""}, "architecture must be a name such as ViT-B-32, got ''"),
        ({"architecture": 32}, "architecture must be a name"),
        ({"architecture": "ViT-B-32"}, r"needs checkpoint=FILE \(.pt, .*\) or checkpoint=TAG of open_clip"),
        ({"architecture": "ViT-B-32", "checkpoint": 7}, "checkpoint must be a file or a tag of open_clip, got 7"),
        ({"architecture": "conch"}, "conch_ViT-B-16 needs checkpoint=FILE"),
        ({"architecture": "quilt-b-32", "checkpoint": "x.pt"}, "takes no checkpoint; .* architecture=local-dir:FOLDER"),
        ({"architecture": "hf-hub:nobody"}, "a name of the hub is hf-hub:OWNER/NAME, got 'hf-hub:nobody'"),
        ({"architecture": "local-dir:"}, "architecture must be hf-hub:OWNER/NAME or local-dir:FOLDER"),
        ({"architecture": "plip"}, "in the format of transformers, which open_clip does not read"),
        ({"architecture": "hf-hub:vinid/plip"}, "in the format of transformers"),
        ({"architecture": "hf-hub:a/b", "device": "gpu"}, "device must be auto, cpu, cuda, cuda:N or mps, got 'gpu'"),
        ({"architecture": "hf-hub:a/b", "device": None}, "device must be"),
        ({"architecture": "hf-hub:a/b", "precision": "fp8"}, "precision must be auto, fp32, bf16 or fp16, got 'fp8'"),
        ({"architecture": "hf-hub:a/b", "batch": 0}, "batch must be a whole number of images from 1 to 4096, got 0"),
        ({"architecture": "hf-hub:a/b", "batch": True}, "batch must be"),
        ({"architecture": "hf-hub:a/b", "batch": 1.5}, "batch must be"),
    ],
)
def test_what_cannot_be_meant_is_refused_in_one_sentence(settings: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence) as caught:
        ModelChoice(**settings)
    assert "\n" not in str(caught.value)


def test_a_missing_file_is_refused_before_anything_is_loaded(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"checkpoint .*none\.pt does not exist"):
        ModelChoice("ViT-B-32", checkpoint=str(tmp_path / "none.pt"))


def test_a_web_page_is_refused_before_anything_is_loaded(tmp_path: Path) -> None:
    page = tmp_path / "weights.pt"
    page.write_text("\n<!DOCTYPE html><html><title>Sign in</title></html>")
    with pytest.raises(ConfigError, match="is a web page, not weights; download it again, signed in"):
        ModelChoice("ViT-B-32", checkpoint=str(page))
