"""Names of the hub: fetched from a hub on loopback, told in a sentence where there is none."""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from pathnav.retrieval import ModelChoice, load
from support import tiny_clip
from support.tiny_hub import COMMIT, served

pytestmark = pytest.mark.clip

ASK = """
import json, sys, time
import torch, open_clip
from pathnav.errors import ConfigError
from pathnav.retrieval import ModelChoice, load
for settings in json.loads(sys.argv[1]):
    start = time.monotonic()
    try:
        said = dict(load(ModelChoice(**settings)).identity)
    except ConfigError as error:
        said = {"error": str(error)}
    print(json.dumps({**said, "seconds": time.monotonic() - start}))
"""


def asked(choices: list[dict[str, Any]], cache: Path, **environment: str) -> list[dict[str, Any]]:
    """Load in a process of its own, where the hub's client reads its environment; nothing else may be printed."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("HF_", "HUGGING"))}
    done = subprocess.run(
        [sys.executable, "-c", ASK, json.dumps(choices)],
        env={**kept, "HF_HOME": str(cache), **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr == ""
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_a_name_of_the_hub_is_fetched_once_and_is_the_same_model(tiny_name: str, tmp_path: Path) -> None:
    folder = tiny_clip.save_folder(tmp_path / "model", "open_clip_pytorch_model.bin")
    other = tmp_path / "other"
    other.mkdir()
    (other / "pytorch_model.bin").write_bytes(b"PK\x03\x04")
    names = ("us/tiny", "us/tiny", "us/other", "us/nobody")
    with served({"us/tiny": folder, "us/other": other}) as hub:
        tiny, again, of_transformers, nobody = asked(
            [{"architecture": f"hf-hub:{name}", "batch": 4 + place} for place, name in enumerate(names)],
            tmp_path / "cache",
            HF_ENDPOINT=hub.url,
        )
        assert [one.rpartition("/")[2] for one in hub.asked if one.startswith("GET /us/tiny/resolve")] == [
            "open_clip_config.json",
            "open_clip_pytorch_model.bin",
        ]
    assert (tiny["architecture"], tiny["revision"]) == ("hf-hub:us/tiny", COMMIT)
    local = load(ModelChoice(f"local-dir:{folder}", device="cpu")).identity
    for part in ("checkpoint_sha256", "config_sha256"):
        assert tiny[part] == again[part] == local[part]
    assert "us/other on the hub has no open_clip_config.json" in of_transformers["error"]
    assert nobody["error"].startswith("us/nobody ")
    # The hub is gone now, and what it gave is still there.
    offline, missing = asked(
        [{"architecture": "hf-hub:us/tiny"}, {"architecture": "quilt-b-32"}], tmp_path / "cache", HF_HUB_OFFLINE="1"
    )
    assert {**offline, "seconds": 0} == {**tiny, "seconds": 0}
    assert "https://huggingface.co/wisdomik/QuiltNet-B-32" in missing["error"]


def test_without_a_network_a_name_fails_within_seconds(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    name, tag = asked(
        [{"architecture": "quilt-b-16"}, {"architecture": "ViT-B-32", "checkpoint": "laion2b_s34b_b79k"}],
        tmp_path,
        HF_ENDPOINT=f"http://127.0.0.1:{port}",
    )
    assert "wisdomik/QuiltNet-B-16 is not in the hub's cache" in name["error"]
    assert tag["error"].endswith("give checkpoint=FILE")
    assert max(name["seconds"], tag["seconds"]) < 15
