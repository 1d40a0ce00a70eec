"""Files of the user that a command writes: no file is replaced that pathnav did not write."""

import json
import shutil
from pathlib import Path

import pytest
from PIL import Image

from support.commands import Bench, Command


@pytest.mark.parametrize("what", ["picture", "slide", "annotation", "link", "folder", "fifo"])
def test_a_picture_replaces_no_file_of_another_kind(pathnav: Command, bench: Bench, what: str) -> None:
    import os

    path = bench.folder / "seen.png"
    if what == "picture":
        Image.new("RGB", (40, 30), "red").save(path)
    elif what == "slide":
        shutil.copy(bench.slide, path)
    elif what == "annotation":
        path.write_text(json.dumps({"type": "FeatureCollection", "features": []}))
    elif what == "link":
        path.symlink_to(bench.slide)
    elif what == "folder":
        path.mkdir()
    else:
        os.mkfifo(path)
    kept = path.read_bytes() if path.is_file() else None
    said = pathnav(*bench.words("--agent", "random", "--picture", path, "--out", "new"))
    assert (said.code, said.out) == (2, "")
    (sentence,) = said.sentences
    assert str(path) in sentence and ("name another file" in sentence or "is a folder" in sentence)
    assert kept is None or path.read_bytes() == kept
    assert not Path("new").exists()


def test_the_slide_itself_is_not_drawn_over(pathnav: Command, bench: Bench) -> None:
    slide = bench.folder / "slide.png"
    shutil.copy(bench.slide, slide)
    before = slide.read_bytes()
    asked = ("locate", slide, "--finding", "x", "--magnification", 10, "--agent", "random", "--picture", slide)
    assert "was not written by pathnav" in pathnav(*asked).err
    assert slide.read_bytes() == before


def test_a_picture_of_pathnavs_own_may_be_drawn_again(pathnav: Command, bench: Bench) -> None:
    for agent in ("random", bench.agent("Looker")):
        assert pathnav(*bench.words("--agent", agent, "--picture", "seen.png")).code == 0
    with Image.open("seen.png") as picture:
        assert picture.info["Software"] == "pathnav"


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
