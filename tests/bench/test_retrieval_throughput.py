"""Windows and tiles become embeddings nearly as fast as the network alone takes ready tensors; ratios within one run.

Run with `pytest -o addopts= -s --import-mode=importlib tests/bench/test_retrieval_throughput.py`; needs the extra
`clip`. The network is ViT-B-32 with random weights, on one thread in both runs; reading has the other core. With an
accelerator it runs there: `PATHNAV_BENCH_DEVICE=cuda`.
"""

import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pathnav_baselines.clip_retrieval_scorer import embedded_tiles

from pathnav.explore import TileTree
from pathnav.localise.survey import Survey
from pathnav.retrieval import EmbeddingStore, ImageTextModel, ModelChoice, WindowGrid, load
from pathnav.slide import Slide, open_slide
from support.blue_slide import MPP_UM, SIDE_PX, write_blue_slide
from support.tiny_clip import save_checkpoint

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.timeout(1200)

ARCHITECTURE = "ViT-B-32"
DEVICE = os.environ.get("PATHNAV_BENCH_DEVICE", "cpu")
GOAL = 0.9
WINDOW_PX = 640
LEAST_IMAGES = {"cpu": 100}.get(DEVICE, 5000)
REPEATS = 2


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ImageTextModel]:
    """Load the network, on one thread."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    weights = save_checkpoint(tmp_path_factory.mktemp("weights") / "random.pt", ARCHITECTURE)
    yield load(ModelChoice(ARCHITECTURE, str(weights), device=DEVICE))
    torch.set_num_threads(threads)


@pytest.fixture(scope="module")
def slide(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Slide]:
    """Open a slide of three levels."""
    with open_slide(write_blue_slide(tmp_path_factory.mktemp("slide") / "slide.tiff"), mpp=MPP_UM) as opened:
        yield opened


def alone_s(model: ImageTextModel, count: int) -> float:
    """Return how long the network takes for ready tensors, in batches as the pipeline has them."""
    network: Any = model._network
    ready = torch.rand(model.batch, 3, model.side_px, model.side_px, device=DEVICE)
    kind = {"bf16": torch.bfloat16, "fp16": torch.float16}.get(model.precision)
    start = time.perf_counter()
    with torch.inference_mode(), torch.autocast(DEVICE.partition(":")[0], kind, enabled=kind is not None):
        for _ in range(0, count, model.batch):
            vectors = network.encode_image(ready)
        _ = vectors.float().cpu()
    return time.perf_counter() - start


def share_reached(model: ImageTextModel, count: int, pipeline: Callable[[], object], what: str) -> float:
    """Print and return the pipeline's rate as a share of the network's: the best of some runs of each, in turn."""
    alone, whole = [], []
    for _ in range(REPEATS):
        alone.append(alone_s(model, count))
        start = time.perf_counter()
        pipeline()
        whole.append(time.perf_counter() - start)
    share = min(alone) / min(whole)
    rates = f"{count / min(whole):.1f} of {count / min(alone):.1f} images a second"
    sys.stdout.write(
        f"\n{what}, {ARCHITECTURE} on {_name()}, {model.precision}, batch {model.batch}: {rates}, {share:.2f}"
    )
    return share


def _name() -> str:
    return torch.cuda.get_device_name() if DEVICE.startswith("cuda") else f"{DEVICE}, 1 thread"


def test_windows_are_encoded_at_nine_tenths_of_the_networks_own_rate(model: ImageTextModel, slide: Slide) -> None:
    width = WINDOW_PX if DEVICE == "cpu" else WINDOW_PX // 5
    grid = WindowGrid.over(slide.bounds, width, width)
    numbers = np.arange(grid.count)
    assert grid.count >= LEAST_IMAGES
    share = share_reached(
        model, grid.count, lambda: Survey(slide, slide.bounds, False).embed(grid, numbers, model), "windows"
    )
    assert share >= GOAL


def test_tiles_are_encoded_at_nine_tenths_of_the_networks_own_rate(
    model: ImageTextModel, slide: Slide, tmp_path: Path
) -> None:
    tree = TileTree(slide, SIDE_PX // 16 if DEVICE == "cpu" else SIDE_PX // 80, 0.0)
    tiles = tree.images(2, np.arange(tree.count(2)))
    assert len(tiles) >= LEAST_IMAGES
    share = share_reached(model, len(tiles), lambda: embedded_tiles(tiles, model, EmbeddingStore()), "tiles")
    assert share >= GOAL
