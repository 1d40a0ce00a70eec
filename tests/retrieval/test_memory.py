"""Memory that runs out for real: in a process whose address space is limited."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from pathnav.retrieval.weights import is_out_of_memory
from support import tiny_clip

pytestmark = pytest.mark.clip

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


def folder_of(folder: Path, **changed: int) -> str:
    """Write a model of other sizes."""
    name = tiny_clip.register(folder, f"memory-{'-'.join(map(str, changed.values()))}", **changed)
    folder = folder / name
    folder.mkdir()
    (folder / "open_clip_config.json").write_text(json.dumps({"model_cfg": tiny_clip.settings(**changed)}))
    tiny_clip.save_checkpoint(folder / "open_clip_model.safetensors", name)
    return str(folder)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs a limit on the address space")
def test_memory_that_runs_out_halves_the_batch_or_is_told_in_one_sentence(tmp_path: Path) -> None:
    small, large = folder_of(tmp_path, side_px=64), folder_of(tmp_path, side_px=2048, patch_px=128)
    cases = [
        *([small, 64, None, "loading", room_mb] for room_mb in (10, 20, 35)),
        [small, 64, 4096, "encoding", 100],
        [large, 2048, 4, "encoding", 20],
    ]
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, json.dumps(cases)], capture_output=True, text=True, check=True
    )
    assert done.stderr == ""
    *loading, halved, single = [json.loads(line) for line in done.stdout.splitlines()]
    for said in loading:
        assert said["error"].startswith("not enough memory for ")
    assert halved["rows"] == [4, tiny_clip.DIMENSIONS]
    assert halved["batch"] in (64, 128, 256, 512, 1024, 2048)
    assert single["error"].startswith(f"not enough memory for a single image with local-dir:{large} on cpu")


def test_errors_of_memory_are_known_by_their_words() -> None:
    import torch

    with pytest.raises(RuntimeError) as caught:
        torch.empty(10**15)
    assert is_out_of_memory(caught.value)
    assert is_out_of_memory(RuntimeError("CUDA out of memory. Tried to allocate 2.00 GiB"))
    assert not is_out_of_memory(RuntimeError("size mismatch"))
