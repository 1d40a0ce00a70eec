"""Images of a replay are compared by their bytes, and where these differ by their pixels."""

import hashlib
import io
import shutil

import pytest
from PIL import Image

from pathnav.run.replay import replay_episode
from support.commands import Bench
from support.replaying import changed, event, only, played


@pytest.mark.parametrize("from_model", [False, True], ids=["tools", "model"])
def test_other_bytes_with_the_same_pixels_are_told_once(bench: Bench, from_model: bool) -> None:
    folder = played(bench, "finished")
    store = bench.folder / "out" / "images"
    old = event(folder, "roi:1")["sha256"]
    jpeg = (store / f"{old}.jpg").read_bytes()
    other = jpeg[:2] + b"\xff\xfe\x00\x06abcd" + jpeg[2:]  # a comment
    new = hashlib.sha256(other).hexdigest()
    (store / f"{new}.jpg").write_bytes(other)
    text = (folder / "events.jsonl").read_text()
    (folder / "events.jsonl").write_text(text.replace(old, new))
    said = only(replay_episode(folder, model_from_record=from_model))
    assert said == "roi:1: bytes differ, pixels equal within 0 grey levels"


def test_other_pixels_are_told_with_how_far_they_are_off(bench: Bench) -> None:
    folder = played(bench, "finished")
    buffer = io.BytesIO()
    shown = event(folder, "roi:1")
    with Image.open(bench.folder / "out" / "images" / f"{shown['sha256']}.jpg") as image:
        Image.new("RGB", image.size).save(buffer, "JPEG")
        size = image.size
    black = hashlib.sha256(buffer.getvalue()).hexdigest()
    (bench.folder / "out" / "images" / f"{black}.jpg").write_bytes(buffer.getvalue())
    changed(folder, "roi:1", sha256=black)
    assert "roi:1: pixels differ by up to 2" in "\n".join(replay_episode(folder).differences)
    small = io.BytesIO()
    Image.new("RGB", (8, 9)).save(small, "JPEG")
    changed(folder, "roi:1", sha256=hashlib.sha256(small.getvalue()).hexdigest())
    (bench.folder / "out" / "images" / f"{hashlib.sha256(small.getvalue()).hexdigest()}.jpg").write_bytes(
        small.getvalue()
    )
    said = "\n".join(replay_episode(folder).differences)
    assert f"roi:1: the image is {size[0]} x {size[1]} px now, recorded 8 x 9 px" in said


def test_a_recorded_image_that_is_gone_matters_only_where_bytes_differ(bench: Bench) -> None:
    folder = played(bench, "finished")
    shutil.rmtree(bench.folder / "out" / "images")
    assert replay_episode(folder).is_equal
    changed(folder, "roi:1", sha256="f" * 64)
    assert "the recorded one cannot be compared" in "\n".join(replay_episode(folder).differences)
