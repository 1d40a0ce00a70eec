"""Files of weights are looked at before they are believed."""

import os
import pickle
import struct
from pathlib import Path
from typing import Any

import pytest

from pathnav.errors import ConfigError
from pathnav.retrieval.checkpoint import check_fits, check_is_weights, sha256_of, shapes_in


class Payload:
    """What a malicious checkpoint holds: unpickled, it would make a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self.folder),)


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("a.pt", b"<html><body>404</body></html>", "is a web page, not weights"),
        ("a.pt", b"version https://git-lfs.github.com/spec/v1\noid sha256:0", "is a Git LFS pointer, not weights"),
        ("a.pt", b"", r"holds no weights of PyTorch or safetensors \(it is empty\)"),
        ("a.pt", b"hello, world", r"its first bytes are 68 65 6c 6c 6f 2c 20 77"),
        ("a.safetensors", b"PK\x03\x04", "holds no weights of PyTorch or safetensors"),
        ("a.bin", struct.pack("<Q", 2) + b"{}", "is a safetensors file; give it a name that ends in .safetensors"),
    ],
)
def test_what_is_plainly_no_file_of_weights_is_refused(
    tmp_path: Path, name: str, content: bytes, sentence: str
) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ConfigError, match=sentence):
        check_is_weights(tmp_path / name)


def test_a_folder_is_no_checkpoint(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="is a folder; a folder is given as architecture=local-dir:"):
        check_is_weights(tmp_path)


def test_a_digest_is_of_the_bytes_and_follows_a_change(tmp_path: Path) -> None:
    file = tmp_path / "weights.bin"
    file.write_bytes(b"abc")
    assert sha256_of(file) == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    file.write_bytes(b"abcd")
    assert sha256_of(file).startswith("88d4266fd4e6338d")


def test_a_digest_is_read_once(tmp_path: Path) -> None:
    file = tmp_path / "weights.bin"
    file.write_bytes(b"abc")
    before, status = sha256_of(file), file.stat()
    file.write_bytes(b"xyz")
    os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert sha256_of(file) == before


def test_shapes_that_differ_are_told_by_name() -> None:
    network = {"conv": (8, 3, 16, 16), "text.positional_embedding": (77, 64), "logit_scale": ()}
    file = {"conv": (8, 3, 14, 14), "positional_embedding": (64, 64), "logit_scale": (1,), "other": (1,)}
    with pytest.raises(
        ConfigError,
        match=r"is none of ViT: conv is 8 x 3 x 16 x 16 in the network and 8 x 3 x 14 x 14 in the file, and 1 more ",
    ):
        check_fits(Path("w.pt"), "ViT", network, file)


@pytest.mark.clip
def test_shapes_are_the_same_in_both_formats(tiny_name: str, tiny_weights: Path, tmp_path: Path) -> None:
    from support import tiny_clip

    safe = tiny_clip.save_checkpoint(tmp_path / "tiny.safetensors", tiny_name)
    assert shapes_in(safe) == shapes_in(tiny_weights)
    assert shapes_in(safe)["token_embedding.weight"] == (49408, 64)


@pytest.mark.clip
@pytest.mark.parametrize("name", ["cut.pt", "cut.safetensors"])
def test_a_file_that_was_cut_off_is_told(tiny_name: str, tmp_path: Path, name: str) -> None:
    from support import tiny_clip

    file = tiny_clip.save_checkpoint(tmp_path / name, tiny_name)
    file.write_bytes(file.read_bytes()[:100_000])
    with pytest.raises(ConfigError, match="is cut off or damaged; download it again") as caught:
        shapes_in(file)
    assert "\n" not in str(caught.value)


@pytest.mark.clip
@pytest.mark.parametrize("is_archive", [True, False])
def test_a_checkpoint_with_code_is_refused_and_runs_nothing(tmp_path: Path, is_archive: bool) -> None:
    import torch

    file, folder = tmp_path / "weights.pt", tmp_path / "made_by_the_checkpoint"
    torch.save({"weight": torch.zeros(2), "extra": Payload(folder)}, file, _use_new_zipfile_serialization=is_archive)
    with pytest.raises(
        ConfigError, match=r"holds more than weights \(posix.mkdir\) and pathnav runs no code"
    ) as caught:
        shapes_in(file)
    assert "\n" not in str(caught.value)
    assert not folder.exists()


@pytest.mark.clip
@pytest.mark.filterwarnings("ignore:Detected pickle protocol:UserWarning")
def test_a_plain_pickle_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "weights.bin"
    file.write_bytes(pickle.dumps({"weights": [1.0, 2.0]}))
    with pytest.raises(ConfigError, match="holds more than weights and pathnav runs no code of a checkpoint"):
        shapes_in(file)


@pytest.mark.clip
def test_a_file_without_tensors_holds_no_weights(tmp_path: Path) -> None:
    import torch

    torch.save({"epoch": 3, "name": "run"}, tmp_path / "weights.pt")
    with pytest.raises(ConfigError, match="holds no weights: expected a mapping of names to tensors"):
        shapes_in(tmp_path / "weights.pt")


@pytest.mark.clip
def test_weights_of_transformers_are_told_from_open_clips(tmp_path: Path) -> None:
    import torch

    torch.save({"vision_model.post_layernorm.weight": torch.zeros(4)}, tmp_path / "pytorch_model.bin")
    with pytest.raises(ConfigError, match="is in the format of transformers, which open_clip does not read"):
        shapes_in(tmp_path / "pytorch_model.bin")


@pytest.mark.clip
@pytest.mark.filterwarnings("ignore")
def test_a_torchscript_archive_is_told(tmp_path: Path) -> None:
    import torch

    torch.jit.save(torch.jit.script(torch.nn.Linear(2, 2)), tmp_path / "weights.pt")
    with pytest.raises(ConfigError, match="is a TorchScript archive, which holds code; save its state_dict instead"):
        shapes_in(tmp_path / "weights.pt")
