"""What may be chosen, said without torch."""

import struct
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from pathnav.errors import ConfigError, PluginError
from pathnav.retrieval import ModelChoice, load
from pathnav.retrieval.choice import Kind


def test_importing_the_room_imports_no_torch() -> None:
    code = "import sys, pathnav.retrieval; print({'torch', 'torchvision', 'open_clip', 'PIL'} & set(sys.modules))"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert said.strip() == "set()"


@pytest.mark.skipif(find_spec("torch") is not None, reason="needs an installation without the extra")
def test_without_the_extra_one_sentence_says_how_to_install_it() -> None:
    with pytest.raises(PluginError, match=r"pip install 'pathnav\[clip\]'"):
        load(ModelChoice("ViT-B-32", checkpoint="laion2b_s34b_b79k"))


@pytest.mark.parametrize(
    ("short", "full", "kind"),
    [
        ("quilt-b-32", "hf-hub:wisdomik/QuiltNet-B-32", Kind.HUB),
        ("QUILT-B-16", "hf-hub:wisdomik/QuiltNet-B-16", Kind.HUB),
        ("biomedclip", "hf-hub:microsoft/BiomedCLIP-PubMedBERT_256-vit_base_patch16_224", Kind.HUB),
        ("local-dir:somewhere", "local-dir:somewhere", Kind.FOLDER),
    ],
)
def test_short_names_stand_for_full_ones(short: str, full: str, kind: Kind) -> None:
    choice = ModelChoice(short)
    assert (choice.full_name, choice.kind, choice.file) == (full, kind, None)


def test_conch_takes_a_file_and_another_architecture_also_a_tag(tmp_path: Path) -> None:
    (tmp_path / "pytorch_model.bin").write_bytes(b"PK\x03\x04rest")
    choice = ModelChoice("conch", checkpoint=str(tmp_path / "pytorch_model.bin"))
    assert (choice.full_name, choice.kind) == ("conch_ViT-B-16", Kind.CONCH)
    assert ModelChoice("ViT-B-32", checkpoint="laion2b_s34b_b79k").file is None


@pytest.mark.parametrize(
    ("settings", "offending"),
    [
        ({"architecture": ""}, "architecture"),
        ({"architecture": "ViT-B-32"}, "ViT-B-32 needs checkpoint=FILE"),
        ({"architecture": "conch"}, "conch_ViT-B-16 needs checkpoint=FILE"),
        ({"architecture": "quilt-b-32", "checkpoint": "x.pt"}, "takes no checkpoint"),
        ({"architecture": "hf-hub:nobody"}, "'hf-hub:nobody'"),
        ({"architecture": "local-dir:"}, "'local-dir:'"),
        ({"architecture": "hf-hub:a/b", "device": "gpu"}, "device must .* 'gpu'"),
        ({"architecture": "hf-hub:a/b", "precision": "fp8"}, "precision must .* 'fp8'"),
        ({"architecture": "hf-hub:a/b", "batch": 0}, "batch must .* 0"),
    ],
)
def test_what_cannot_be_meant_is_refused_in_one_sentence(settings: dict[str, Any], offending: str) -> None:
    with pytest.raises(ConfigError, match=offending) as caught:
        ModelChoice(**settings)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "content", "offending"),
    [
        ("a.pt", b"\n<!DOCTYPE html><html>Sign in</html>", "DOCTYPE"),
        ("a.pt", b"version https://git-lfs.github.com/spec/v1\noid sha256:0", "git-lfs"),
        ("a.pt", b"", "b''"),
        ("a.safetensors", b"PK\x03\x04", "a.safetensors"),
        ("a.bin", struct.pack("<Q", 2) + b"{}", "a.bin"),
        ("a.pt", None, "a.pt"),
    ],
)
def test_what_is_plainly_no_file_of_weights_is_refused_before_anything_is_loaded(
    tmp_path: Path, name: str, content: bytes | None, offending: str
) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(ConfigError, match=offending) as caught:
        ModelChoice("ViT-B-32", checkpoint=str(tmp_path / name))
    assert "\n" not in str(caught.value)


def test_a_folder_is_no_checkpoint(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="architecture=local-dir:"):
        ModelChoice("ViT-B-32", checkpoint=str(tmp_path))
