"""`pathnav replay`: what it prints, where, and with which exit code."""

import json
from pathlib import Path

from support.commands import Bench, Command


def recorded(bench: Bench, pathnav: Command) -> Path:
    out = bench.folder / "out"
    assert pathnav(*bench.node("--agent", bench.agent("Looker"), "--out", out)).code == 0
    (folder,) = (out / "episodes").iterdir()
    return folder


def test_an_equal_replay_prints_one_line_and_ends_with_0(bench: Bench, pathnav: Command) -> None:
    said = pathnav("replay", recorded(bench, pathnav))
    assert (said.code, said.out) == (0, "equal: 2 events, 1 images (agent)\n")


def test_a_difference_is_a_line_and_ends_with_1(bench: Bench, pathnav: Command) -> None:
    folder = recorded(bench, pathnav)
    text = (folder / "events.jsonl").read_text()
    (folder / "events.jsonl").write_text(text.replace('"reason": "the middle"', '"reason": "there"'))
    said = pathnav("replay", folder)
    assert (said.code, said.out) == (1, 'roi:1.reason: recorded "there", now "the middle"\n')
    found = json.loads(pathnav("replay", folder, "--json").out)
    assert found["format"] == "pathnav-replay-1"
    assert (found["equal"], found["mode"], found["events"], found["images"]) == (False, "agent", 2, 1)
    assert found["differences"] == said.out.splitlines()


def test_what_cannot_be_replayed_ends_with_2_and_a_sentence(bench: Bench, pathnav: Command) -> None:
    folder = recorded(bench, pathnav)
    bench.slide.rename(bench.folder / "moved.tif")
    said = pathnav("replay", folder)
    assert (said.code, said.out, len(said.sentences)) == (2, "", 1)
    assert "--slide FILE" in said.err
    assert pathnav("replay", folder, "--slide", bench.folder / "moved.tif").code == 0
    assert pathnav("replay", bench.folder).code == 2


def test_the_replies_of_a_model_are_taken_from_the_record(bench: Bench, pathnav: Command) -> None:
    out = bench.folder / "out"
    assert pathnav(*bench.node("--out", out)).code == 0
    (folder,) = (out / "episodes").iterdir()
    said = pathnav("replay", folder, "--model-from-record")
    assert said.code == 0
    assert said.out.endswith("(model)\n")
