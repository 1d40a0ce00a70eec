"""What a search refuses before anything is written, and where it takes a slide's scale from."""

import json
from pathlib import Path
from typing import Any

import pytest
import tifffile
import yaml

from support.commands import Bench, Command
from support.coordinates import level_pixels
from support.exploring import Exploring
from support.trees import SLIDE_LAYOUT, tree_document, write_json


@pytest.fixture
def exploring(bench: Bench) -> Exploring:
    return Exploring(bench)


def test_a_k_that_nothing_can_fill_is_refused(pathnav: Command, exploring: Exploring) -> None:
    out = exploring.bench.folder / "out"
    said = pathnav(*exploring.plain("--scorer", "random", "--schedule", "6,3,2000000", "--out", out))
    assert (said.code, said.out, out.exists()) == (2, "", False)
    assert "a K of a schedule must be at most 1,000,000, got 2,000,000" in said.sentences[-1]
    assert pathnav(*exploring.plain("--scorer", "random", "--schedule", "1000000,1,1")).code == 0


def test_a_target_that_the_prompt_file_does_not_ask_for_is_refused(pathnav: Command, exploring: Exploring) -> None:
    prompt, out = exploring.bench.folder / "question.txt", exploring.bench.folder / "out"
    prompt.write_text("Is there anything odd? Yes or No, and a number from 0 to 100.")
    command = exploring.plain("--prompt", prompt, "--schedule", "1,1,1", "--out", out)
    said = pathnav(*command, "--target-text", "mitoses")
    assert (said.code, said.out, out.exists()) == (2, "", False)
    assert f"the prompt file {prompt} has no {{target_text}}" in said.sentences[-1]
    assert pathnav(*command).code == 0


def scenario(folder: Path, **slide: Any) -> Path:
    """Write a scenario of Mode B over a slide without a scale and return its path."""
    document = {
        "format": "pathnav-scenario-1",
        "cohort": {"slides": [{"path": "bare.tif", "tumour_free": True, **slide}]},
        "explore": {"scorers": ["random"], "tile_px": 64, "min_tissue": 0},
    }
    path = folder / "bare.yaml"
    path.write_text(yaml.safe_dump(document), encoding="utf-8")
    return path


@pytest.fixture
def bare(tmp_path: Path) -> Path:
    """A folder with a slide that does not say its scale, and a tree that does."""
    with tifffile.TiffWriter(tmp_path / "bare.tif") as file:
        for level in range(2):
            pixels = level_pixels(SLIDE_LAYOUT, level)
            file.write(pixels, photometric="rgb", tile=(128, 128), compression="deflate", subfiletype=level)
    write_json(tmp_path / "bare.json", tree_document("bare.tif", mpp=0.5))
    return tmp_path


def test_a_scale_that_only_the_diagnostic_tree_knows_is_used(pathnav: Command, bare: Path) -> None:
    said = pathnav("run", scenario(bare, tree="bare.json"), "--out", bare / "out")
    assert said.code == 0, said.err
    (path,) = (bare / "out").glob("episodes/*/result.json")
    record = json.loads(path.read_text())
    assert record["slide"]["mpp_um"] == [0.5, 0.5]
    assert record["levels"][2]["tiles"] == -(-2000 // 32) * -(-1600 // 32), "a tile of 64 px at 40x is 32 px wide"


def test_the_scenarios_scale_goes_before_the_trees(pathnav: Command, bare: Path) -> None:
    assert pathnav("run", scenario(bare, tree="bare.json", mpp=0.25), "--out", bare / "out").code == 0
    (path,) = (bare / "out").glob("episodes/*/result.json")
    assert json.loads(path.read_text())["slide"]["mpp_um"] == [0.25, 0.25]


def test_a_slide_whose_scale_nobody_knows_is_refused(pathnav: Command, bare: Path) -> None:
    write_json(bare / "bare.json", tree_document("bare.tif", mpp=None))
    said = pathnav("run", scenario(bare, tree="bare.json"), "--out", bare / "out")
    assert (said.code, (bare / "out").exists()) == (2, False)
    assert "mpp" in said.sentences[-1]


def test_a_slide_annotated_as_free_of_tumour_is_told_as_that(pathnav: Command, exploring: Exploring) -> None:
    exploring.annotation.write_text(json.dumps({"positive": [], "negative": []}))
    said = pathnav(*exploring.plain("--scorer", "random", "--annotation", exploring.annotation))
    assert said.code == 0
    assert "warning: the slide is annotated as free of tumour" in said.err
    assert "level-0 px" not in said.err


JUDGES = """
from pathnav.explore import Source, TileScore


class No:
    def score(self, tiles):
        return [TileScore(False, 0.2, Source.COMPUTED) for tile in tiles]


class Silent:
    def score(self, tiles):
        return [TileScore.unparsed(0, {}) for tile in tiles]
"""


@pytest.fixture
def judges(exploring: Exploring) -> Path:
    """A file with scorers that keep nothing."""
    path = exploring.bench.folder / "judges.py"
    path.write_text(JUDGES, encoding="utf-8")
    return path


def test_a_scorer_that_says_no_to_every_tile_is_told(pathnav: Command, exploring: Exploring, judges: Path) -> None:
    said = pathnav(*exploring.plain("--scorer", f"{judges}:No"))
    assert said.code == 0
    assert "warning: scorer 'No' says No to all 4 tiles at 2.5x, so that none was kept" in said.err
    assert "warning" not in pathnav(*exploring.plain("--scorer", f"{judges}:No", "--fill-to-k")).err


def test_a_scorer_without_a_model_is_not_advised_on_models(
    pathnav: Command, exploring: Exploring, judges: Path
) -> None:
    said = pathnav(*exploring.plain("--scorer", f"{judges}:Silent"))
    assert said.code == 0
    assert "warning: scorer 'Silent' says neither Yes nor No of 4 tiles, and no tile was kept" in said.err
    assert "--max-tokens" not in said.err
    assert "model" not in said.err
