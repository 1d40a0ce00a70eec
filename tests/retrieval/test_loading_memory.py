"""Memory that runs out for real: in processes whose address space is limited."""

import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from pathnav.errors import ConfigError
from pathnav.retrieval.device import check_room, first_batch, free_bytes, is_out_of_memory
from support import tiny_clip

LIMITED = """
import json, resource, sys
import numpy as np
import torch, open_clip
from pathnav.errors import ConfigError
from pathnav.retrieval import ModelChoice, load
torch.set_num_threads(1)

def limit(room_mb):
    pages = int(open("/proc/self/statm").read().split()[0])
    most = pages * resource.getpagesize() + room_mb * 1_000_000
    resource.setrlimit(resource.RLIMIT_AS, (most, resource.RLIM_INFINITY))

for folder, side_px, batch, when, room_mb in json.loads(sys.argv[1]):
    images = np.zeros((4, side_px, side_px, 3), np.uint8)
    try:
        if when == "loading":
            limit(room_mb)
        model = load(ModelChoice(f"local-dir:{folder}", device="cpu", batch=batch))
        limit(room_mb)
        said = {"rows": model.encode_images(images).shape, "batch": model.batch}
    except ConfigError as error:
        said = {"error": str(error)}
    resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    print(json.dumps(said))
"""


def limited(cases: list[list[Any]]) -> list[dict[str, Any]]:
    """Return what happens in each case, with so much room beyond what the process holds already."""
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, json.dumps(cases)], capture_output=True, text=True, check=True
    )
    assert done.stderr == ""
    return [json.loads(line) for line in done.stdout.splitlines()]


def folder_of(folder: Path, **changed: int) -> Path:
    """Write a model of other sizes."""
    name = tiny_clip.register(folder, f"memory-{'-'.join(map(str, changed.values()))}", **changed)
    folder = folder / name
    folder.mkdir()
    (folder / "open_clip_config.json").write_text(json.dumps({"model_cfg": tiny_clip.settings(**changed)}))
    tiny_clip.save_checkpoint(folder / "open_clip_model.safetensors", name)
    return folder


@pytest.mark.clip
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs a limit on the address space")
def test_memory_that_runs_out_halves_the_batch_or_is_told_in_one_sentence(tmp_path: Path) -> None:
    small = str(folder_of(tmp_path, side_px=64))
    large = str(folder_of(tmp_path, side_px=2048, patch_px=128))
    *loading, halved, single = limited(
        [
            *([small, 64, None, "loading", room_mb] for room_mb in (10, 20, 35, 45)),
            [small, 64, 4096, "encoding", 100],
            [large, 2048, 4, "encoding", 20],
        ]
    )
    for said in loading:
        assert said["error"].startswith("not enough memory on cpu for ")
        assert " MB are free; free some, or choose a smaller model or another device" in said["error"]
    assert halved["rows"] == [4, tiny_clip.DIMENSIONS]
    assert halved["batch"] in (64, 128, 256, 512, 1024, 2048)
    assert single["error"].startswith(f"not enough memory on cpu for a single image with local-dir:{large}: ")


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs /proc")
def test_free_memory_is_known_and_bounds_the_batch() -> None:
    free = free_bytes("cpu")
    assert free is not None
    assert free > 0
    assert first_batch("cpu", 224) in (1, 2, 4, 8, 16)
    assert first_batch("cpu", 224_000) == 1


def test_what_plainly_does_not_fit_is_refused() -> None:
    if free_bytes("cpu") is None:
        pytest.skip("nobody tells what is free here")
    with pytest.raises(
        ConfigError, match=r"not enough memory on cpu for X: 1,000,000,000,000 MB are needed and .* free"
    ):
        check_room("X", 10**18, "cpu")


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (MemoryError(), True),
        (
            RuntimeError("[enforce fail at alloc_cpu.cpp:127] DefaultCPUAllocator: can't allocate memory: you tried"),
            True,
        ),
        (RuntimeError("CUDA out of memory. Tried to allocate 2.00 GiB"), True),
        (RuntimeError("size mismatch"), False),
        (ValueError("out of memory"), False),
    ],
)
def test_errors_of_memory_are_known_by_their_words(error: Exception, expected: bool) -> None:
    assert is_out_of_memory(error) is expected


@pytest.mark.clip
@pytest.mark.skipif(find_spec("torch") is None, reason="needs torch")
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the words of other systems differ")
def test_torch_says_it_in_these_words() -> None:
    import torch

    with pytest.raises(RuntimeError) as caught:
        torch.empty(10**15)
    assert is_out_of_memory(caught.value)
