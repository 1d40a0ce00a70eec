"""Files of the user that a command writes: none that exists is replaced unless `--force` is given."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from PIL import Image

from support.commands import Bench, Command

KINDS: dict[str, Callable[[Path, Bench], object]] = {
    "file": lambda path, bench: path.write_text("kept"),
    "link": lambda path, bench: path.symlink_to(bench.slide),
    "folder": lambda path, bench: path.mkdir(),
    "fifo": lambda path, bench: os.mkfifo(path),
}
SEARCH = ("--scorer", "random", "--tile-px", 64, "--min-tissue", 0, "--schedule", "1,1,1")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("option", ["--picture", "--geojson"])
def test_nothing_that_exists_is_replaced_and_nothing_runs(
    pathnav: Command, bench: Bench, option: str, kind: str
) -> None:
    path = bench.folder / ("seen.png" if option == "--picture" else "kept.geojson")
    KINDS[kind](path, bench)
    command = bench.words("--agent", "random") if option == "--picture" else ("explore", bench.slide, *SEARCH)
    before = bench.slide.read_bytes()
    said = pathnav(*command, option, path, "--out", "new")
    assert (said.code, said.out) == (2, "")
    (sentence,) = said.sentences
    assert str(path) in sentence and ("--force" in sentence or kind == "folder")
    assert bench.slide.read_bytes() == before
    assert kind != "file" or path.read_text() == "kept"
    assert not Path("new").exists()


def test_with_force_a_file_is_replaced_and_a_link_leads_to_nothing_that_is(pathnav: Command, bench: Bench) -> None:
    before = bench.slide.read_bytes()
    Path("seen.png").symlink_to(bench.slide)
    assert pathnav(*bench.words("--agent", "random", "--picture", "seen.png", "--force")).code == 0
    with Image.open("seen.png") as picture:
        assert picture.format == "PNG"
    Path("kept.geojson").write_text("old")
    assert pathnav("explore", bench.slide, *SEARCH, "--geojson", "kept.geojson", "--force").code == 0
    assert json.loads(Path("kept.geojson").read_text())["format"] == "pathnav-kept-tiles-1"
    assert bench.slide.read_bytes() == before


def test_a_phantom_replaces_files_with_force_only(pathnav: Command, bench: Bench) -> None:
    draw = ("phantom", "demo.tiff", "--side", 1024)
    assert pathnav(*draw).code == 0
    before = {path: path.read_bytes() for path in bench.folder.glob("demo*")}
    said = pathnav(*draw, "--seed", 1)
    assert (said.code, said.out) == (2, "")
    assert "demo.tiff" in said.sentences[0] and "--force" in said.sentences[0]
    assert {path: path.read_bytes() for path in before} == before
    assert pathnav(*draw, "--seed", 1, "--force").code == 0
    assert all(path.read_bytes() != content for path, content in before.items())
