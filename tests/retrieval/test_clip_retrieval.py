"""The agent `clip-retrieval` with a real network: it finds what was planted, and agrees with brute force."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pathnav.cohort.query import Query
from pathnav.geometry import Box, iou
from pathnav.localise import Environment, MemoryRecorder
from pathnav.phantom import make_phantom
from pathnav.retrieval import EmbeddingStore, ModelChoice, WindowGrid, finding_vector, load
from pathnav.slide import Slide, open_slide
from pathnav.testing import check_agent
from support.blue_slide import MPP_UM, PLANTED, REGIONS, write_blue_slide
from support.commands import Command
from support.planted_clip import save_planted

pytestmark = pytest.mark.clip


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return the architecture of the planted network."""
    return f"local-dir:{save_planted(tmp_path_factory.mktemp('planted') / 'network')}"


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write the slide with three blue squares."""
    return write_blue_slide(tmp_path_factory.mktemp("blue") / "blue.tiff")


@pytest.fixture
def slide(path: Path) -> Iterator[Slide]:
    """Open it."""
    with open_slide(path, mpp=MPP_UM) as opened:
        yield opened


def query_for(magnification: float, finding: str = "blue") -> Query:
    """Ask for the square of a magnification."""
    target = PLANTED[magnification]
    region = REGIONS[magnification]
    return Query("slide-blue", magnification, finding, region, target.width, target.height, 5)


def retrieved(
    slide: Slide, query: Query, planted: str, store: EmbeddingStore | None = None, **options: Any
) -> tuple[Box, dict[str, Any], dict[str, int]]:
    """Return the box that the agent reports, what it wrote down, and what its embeddings cost."""
    from pathnav_baselines.clip_retrieval import ClipRetrieval

    recorder = MemoryRecorder()
    environment = Environment(slide, query, unbudgeted=True, recorder=recorder, embeddings=store)
    ClipRetrieval(planted, **options).run(environment)
    assert environment.report_made is not None
    costs = environment.survey.embedding_costs
    assert costs is not None
    return environment.report_made.box, recorder.events["retrieval"], costs


@pytest.mark.parametrize("magnification", PLANTED)
def test_the_planted_window_is_found(slide: Slide, planted: str, magnification: float) -> None:
    box, event, _ = retrieved(slide, query_for(magnification), planted)
    best = max(
        iou(Box.from_list(window.tolist()), PLANTED[magnification])
        for window in WindowGrid.over(REGIONS[magnification], box.width, box.height).boxes()
    )
    assert iou(box, PLANTED[magnification]) == pytest.approx(best)
    assert event["peaks"][0]["box"] == box.as_list()


@pytest.mark.parametrize("magnification", PLANTED)
def test_from_coarse_to_fine_gives_the_same_answer_with_fewer_windows(
    slide: Slide, planted: str, magnification: float
) -> None:
    box, event, _ = retrieved(slide, query_for(magnification), planted)
    coarse_box, coarse_event, _ = retrieved(slide, query_for(magnification), planted, coarse_to_fine=True)
    assert coarse_box == box
    assert coarse_event["compared"] < (0.6 if event["with_tissue"] > 100 else 1.0) * event["compared"]


def test_from_coarse_to_fine_answers_the_queries_of_a_phantom_alike_with_fewer_windows(
    planted: str, tmp_path: Path
) -> None:
    files = make_phantom(tmp_path / "phantom.tiff", seed=0, side=4096)
    nodes = {node["id"]: node for node in json.loads(files.tree.read_text())["slides"][0]["nodes"]}
    compared = {False: 0, True: 0}
    with open_slide(files.slide) as phantom:
        for node in list(nodes.values())[::2]:
            region = Box.from_list(nodes[node["parent"]]["box"]) if node["parent"] else phantom.bounds
            query = Query("phantom", node["magnification"], "blue", region, *node["box"][2:], 5)
            found = {}
            for is_coarse in compared:
                found[is_coarse], event, _ = retrieved(phantom, query, planted, coarse_to_fine=is_coarse)
                compared[is_coarse] += event["compared"]
            assert found[True] == found[False], node["id"]
    assert compared[True] < 0.95 * compared[False]


def test_the_answer_is_that_of_brute_force(slide: Slide, planted: str) -> None:
    query = query_for(10.0)
    box, event, _ = retrieved(slide, query, planted)
    model = load(ModelChoice(planted))
    grid = WindowGrid.over(query.region, query.target_width, query.target_height)
    text = finding_vector(model, query.finding)
    scores = []
    for x, y, width, height in grid.boxes().tolist():
        pixels = slide.read(Box(x, y, width, height), magnification=40.0 * model.side_px / width)
        scores.append(float(model.encode_images(model.fitted(pixels)[None])[0] @ text))
    best = int(np.argmax(scores))
    assert box.as_list() == grid.boxes()[best].tolist()
    assert event["peaks"][0]["score"] == pytest.approx(scores[best], abs=2e-3)


def test_another_finding_on_the_same_grid_encodes_no_image(slide: Slide, planted: str, tmp_path: Path) -> None:
    _, _, first = retrieved(slide, query_for(10.0), planted, EmbeddingStore(tmp_path))
    box, _, second = retrieved(slide, query_for(10.0, "red"), planted, EmbeddingStore(tmp_path))
    assert first["encoded"] > 0 == first["kept_from_before"]
    assert second["encoded"] == 0 < second["kept_from_before"] == first["encoded"]
    assert second["store_bytes"] > 0
    assert iou(box, PLANTED[10.0]) == 0


def test_the_same_seed_gives_the_same_record(slide: Slide, planted: str) -> None:
    first, second = (retrieved(slide, query_for(40.0), planted) for _ in range(2))
    assert json.dumps(first[1]) == json.dumps(second[1])


def test_a_finding_that_is_cut_is_noted(slide: Slide, planted: str) -> None:
    _, event, _ = retrieved(slide, query_for(10.0, "blue " * 100), planted)
    assert event["finding_is_cut"] is True
    assert retrieved(slide, query_for(10.0), planted)[1]["finding_is_cut"] is False


def test_the_agent_keeps_the_contract(planted: str) -> None:
    assert check_agent("clip-retrieval", options={"architecture": planted}).unbudgeted


def test_a_run_names_the_weights_by_their_content(path: Path, planted: str, tmp_path: Path, pathnav: Command) -> None:
    copy = tmp_path / "copy"
    copy.mkdir()
    for file in Path(planted.removeprefix("local-dir:")).iterdir():
        (copy / file.name).write_bytes(file.read_bytes())
    keys, out = set(), tmp_path / "out"
    for architecture in (planted, f"local-dir:{copy}"):
        said = pathnav(
            *("locate", path, "--mpp", MPP_UM, "--finding", "blue", "--magnification", 10, "--out", out),
            *("--region", "0,2048,2048,2048", "--target-size", "512,512", "--agent", "clip-retrieval"),
            *("--agent-option", f"architecture={architecture}", "--json"),
        )
        assert said.code == 0, said.err
        assert json.loads(said.out)["outcome"] == "finished"
        keys |= {episode.name for episode in (out / "episodes").iterdir()}
    assert len(keys) == 1


def test_a_wrong_checkpoint_is_refused_before_anything_is_written(path: Path, tmp_path: Path, pathnav: Command) -> None:
    page = tmp_path / "weights.pt"
    page.write_text("<!DOCTYPE html><html><body>Log in to continue</body></html>")
    said = pathnav(
        *("locate", path, "--mpp", MPP_UM, "--finding", "blue", "--magnification", 10, "--out", tmp_path / "out"),
        *("--agent", "clip-retrieval", "--agent-option", "architecture=ViT-B-32"),
        *("--agent-option", f"checkpoint={page}"),
    )
    assert said.code == 2
    assert len(said.sentences) == 1
    assert not (tmp_path / "out").exists()
