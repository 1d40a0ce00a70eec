"""Scores of one reader are not those of another, and those of older stores are the usual reader's."""

import json
import os
from pathlib import Path

import pytest

from support.commands import Bench, Command
from support.exploring import Exploring

SMALL = ("--schedule", "1,1,1", "--out", "kept")


def test_tiles_of_another_reader_are_scored_anew_and_the_usual_one_may_be_named(pathnav: Command, bench: Bench) -> None:
    exploring, notes = Exploring(bench), bench.folder / "notes.txt"
    words = exploring.plain("--scorer", exploring.scorer("Left"), "--scorer-option", f"notes={notes}", *SMALL)
    assert pathnav(*words).code == 0
    once = len(notes.read_text().splitlines())
    assert pathnav(*words, "--reader", "openslide").code == 0
    assert len(notes.read_text().splitlines()) == once
    assert pathnav(*words, "--reader", "tiffslide").code == 0
    assert len(notes.read_text().splitlines()) == 2 * once
    for folder in Path("kept/episodes").iterdir():
        assert pathnav("replay", folder).code == 0


def test_tiles_at_another_scale_are_scored_anew_also_where_the_edge_cuts_them_to_the_same_box(
    pathnav: Command, bench: Bench
) -> None:
    exploring = Exploring(bench)
    plain = exploring.plain("--scorer", "nuclear-density", "--json")
    alone = pathnav(*plain, "--mpp", 0.5)
    for scale in (0.25, 0.5):
        said = pathnav(*plain, "--mpp", scale, "--out", "kept")
        assert said.code == 0
    assert json.loads(said.out)["calls_now"] == json.loads(alone.out)["calls_now"] > 0
    stored = [json.loads(path.read_text()) for path in Path("kept/episodes").glob("*/result.json")]
    (fine,) = (one for one in stored if one["slide"]["mpp_um"] == [0.5, 0.5])
    fresh = pathnav(*plain, "--mpp", 0.5, "--out", "fresh")
    assert fresh.code == 0
    (path,) = Path("fresh/episodes").glob("*/result.json")
    for here, there in zip(fine["levels"], json.loads(path.read_text())["levels"], strict=True):
        assert here["kept_confidences"] == there["kept_confidences"]
    for folder in Path("kept/episodes").iterdir():
        assert pathnav("replay", folder).code == 0


@pytest.mark.parametrize("command", ["explore", "locate"])
def test_a_record_is_replayed_from_any_folder(
    pathnav: Command, bench: Bench, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    exploring, slide = Exploring(bench), os.path.relpath(bench.slide)
    words = {
        "explore": exploring.annotated("--scorer", "random", *SMALL),
        "locate": bench.words("--agent", "random", "--out", "kept"),
    }[command]
    relative = [
        slide if word == bench.slide else os.path.relpath(word) if word == exploring.annotation else word
        for word in words
    ]
    assert pathnav(*relative).code == 0
    (folder,) = (path.absolute() for path in Path("kept/episodes").iterdir())
    (bench.folder / "elsewhere").mkdir()
    monkeypatch.chdir(bench.folder / "elsewhere")
    said = pathnav("replay", folder, "--json")
    assert said.code == 0, said
    assert json.loads(said.out)["not_compared"] == []


def test_a_slide_that_is_a_copy_is_told_and_dropped_from_the_count(pathnav: Command, bench: Bench) -> None:
    exploring = Exploring(bench)
    copy = bench.folder / "copy.tif"
    copy.write_bytes(bench.slide.read_bytes())
    slides = [
        {"path": str(path), "annotation": str(exploring.annotation), "tumour_classes": ["tumor"]}
        for path in (bench.slide, copy)
    ]
    explore = {"scorers": ["random"], "tile_px": 64, "min_tissue": 0, "schedule": [1, 1, 1]}
    document = {"format": "pathnav-scenario-1", "cohort": {"slides": slides}, "explore": explore}
    path = bench.folder / "twice.yaml"
    path.write_text(json.dumps(document), encoding="utf-8")
    said = pathnav("run", path, "--out", "kept")
    assert said.code == 0
    assert f"warning: {copy} is a copy of {bench.slide}" in said.err
    assert "1 of 1 searches" in said.err and "1 of 1 searches answered" in said.out and "of 2" not in said.err
