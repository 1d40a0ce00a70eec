"""The scorer `clip-retrieval` with a real network: tumour first, and other words show the model no image."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pathnav.explore import TileTree
from pathnav.retrieval import ModelChoice, contrast_of, load
from pathnav.slide import open_slide
from pathnav.testing import check_scorer
from support.blue_slide import MPP_UM, PLANTED, write_blue_slide
from support.commands import Command

pytestmark = pytest.mark.clip

TILE_PX = 64


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write the slide with three blue squares, and the largest of them as tumour."""
    folder = tmp_path_factory.mktemp("blue")
    box = PLANTED[2.5]
    ring = [[box.x, box.y], [box.right, box.y], [box.right, box.bottom], [box.x, box.bottom], [box.x, box.y]]
    feature = {
        "type": "Feature",
        "geometry": {"type": "Polygon", "coordinates": [ring]},
        "properties": {"classification": {"name": "tumour"}},
    }
    (folder / "blue.geojson").write_text(json.dumps({"type": "FeatureCollection", "features": [feature]}))
    return write_blue_slide(folder / "blue.tiff")


def explored(pathnav: Command, path: Path, planted: str, out: Path, *more: object) -> dict[str, Any]:
    """Return what `pathnav explore --json` says."""
    said = pathnav(
        *("explore", path, "--mpp", MPP_UM, "--tile-px", TILE_PX, "--annotation", path.with_suffix(".geojson")),
        *("--scorer", "clip-retrieval", "--scorer-option", f"architecture={planted}", "--out", out, "--json"),
        *("--scorer-option", "not_tumour=red", *more),
    )
    assert said.code == 0, said.err
    found: dict[str, Any] = json.loads(said.out)
    return found


def test_a_search_keeps_the_planted_tumour(pathnav: Command, path: Path, planted: str, tmp_path: Path) -> None:
    found = explored(pathnav, path, planted, tmp_path / "out", "--scorer-option", "tumour=blue")
    assert found["outcome"] == "finished"
    assert [level["unconditional_hit"] for level in found["levels"]] == [
        level["optimum_hit"] for level in found["levels"]
    ]
    assert found["levels"][0]["unconditional_hit"] == 1.0


def test_other_words_score_anew_and_show_the_model_no_image(
    pathnav: Command, path: Path, planted: str, tmp_path: Path
) -> None:
    first = explored(pathnav, path, planted, tmp_path / "out", "--scorer-option", "tumour=blue")
    second = explored(pathnav, path, planted, tmp_path / "out", "--scorer-option", "tumour=[blue, very blue]")
    again = explored(pathnav, path, planted, tmp_path / "out", "--scorer-option", "tumour=[blue, very blue]")
    assert first["calls_now"] == second["calls_now"] > 0 == again["calls_now"]
    costs = [json.loads(file.read_text())["embeddings"] for file in (tmp_path / "out").glob("episodes/*/result.json")]
    tiles = first["calls_now"]
    assert sorted((cost["encoded"], cost["kept_from_before"]) for cost in costs) == [(0, tiles), (tiles, 0)]


def test_embeddings_at_another_scale_are_others(pathnav: Command, path: Path, planted: str, tmp_path: Path) -> None:
    words = ("--scorer-option", "tumour=blue", "--schedule", "1,1,1")
    fresh = explored(pathnav, path, planted, tmp_path / "fresh", *words, "--mpp", 0.5)
    explored(pathnav, path, planted, tmp_path / "out", *words)
    explored(pathnav, path, planted, tmp_path / "out", "--scorer-option", "tumour=cyan", "--mpp", 0.5)
    costs = [json.loads(file.read_text()) for file in (tmp_path / "out").glob("episodes/*/result.json")]
    (other,) = (one["embeddings"] for one in costs if one["slide"]["mpp_um"] == [0.5, 0.5])
    assert other["kept_from_before"] == 0 < fresh["calls_now"] <= other["encoded"]


def test_a_score_is_the_probability_of_the_tiles_own_image(path: Path, planted: str) -> None:
    from pathnav_baselines.clip_retrieval_scorer import ClipRetrievalScorer

    model = load(ModelChoice(planted))
    with open_slide(path, mpp=MPP_UM) as slide:
        tiles = TileTree(slide, TILE_PX).images(1, np.arange(40))
        scores = list(ClipRetrievalScorer(planted, tumour="blue", not_tumour="red").score(tiles))
        images = np.stack([model.fitted(tile.read()) for tile in tiles])
    expected = contrast_of("blue", "red").probabilities(model, model.encode_images(images))
    assert all(score.yes for score in scores)
    assert np.allclose([score.confidence for score in scores], expected, atol=2e-6)


def test_the_scorer_keeps_the_contract(planted: str) -> None:
    assert check_scorer("clip-retrieval", options={"architecture": planted})


@pytest.mark.parametrize("option", ["tumour=[]", "not_tumour=3", "not_tumour=[a, '']"])
def test_words_that_are_none_are_refused(
    pathnav: Command, path: Path, planted: str, tmp_path: Path, option: str
) -> None:
    said = pathnav(
        *("explore", path, "--mpp", MPP_UM, "--scorer", "clip-retrieval", "--out", tmp_path / "out"),
        *("--scorer-option", f"architecture={planted}", "--scorer-option", option),
    )
    assert said.code == 2
    assert len(said.sentences) == 1
    assert option.partition("=")[0] in said.err
    assert not (tmp_path / "out").exists()
