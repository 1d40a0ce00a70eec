"""What leaves the process, who may read what is written, and where a key may stand: nowhere."""

import io
import json
import os
import re
import socket
import stat
from pathlib import Path

import numpy as np
import pytest
import yaml
from PIL import Image

from pathnav.model.settings import TRACING_VARIABLES
from support.chat_server import Answer, ChatServer, Request, call, calls, failure, html, say
from support.commands import Bench, Command
from support.exploring import polygon, write_annotation
from support.patient_slide import LABEL_RGB, MACRO_RGB, WORDS, write_patient_slide

KEY = "sk-planted-Rocinante-0123456789"


def answer(request: Request) -> Answer:
    """Look at all of it, then at a part, and report; call every tile suspicious."""
    if not request.tool_names:
        return say("Yes. Confidence: 80")
    turn = sum(message["role"] == "assistant" for message in request.messages)
    if turn == 0:
        whole = {"x": 0, "y": 0, "w": 1024, "h": 1024, "reason": "all"}
        part = {"x": 512, "y": 256, "w": 200, "h": 100, "reason": "part"}
        return calls(("get_image_info", {}), ("extract_roi", whole), ("extract_roi", part), ("extract_roi", {"x": "?"}))
    return call("finish_and_report", {"conclusion": "there", "bbox": [512, 256, 200, 100], "confidence": 0.5})


@pytest.fixture
def sent(tmp_path: Path, pathnav: Command, monkeypatch: pytest.MonkeyPatch) -> list[Request]:
    """Return every request of a question and of a search about a patient's slide."""
    slide = write_patient_slide(tmp_path)
    monkeypatch.chdir(slide.parent)
    monkeypatch.setenv("USER", "Zebulon")
    annotation = write_annotation(slide.parent / "SS77-Dulcinea.geojson", polygon(100, 100, 400, 400))
    asked = ("--finding", "dense infiltrate", "--magnification", 10, "--out", tmp_path / "out")
    with ChatServer(answer) as server:
        model = ("--model", "m", "--base-url", server.base_url)
        assert pathnav("locate", slide, *asked, *model).code == 0
        about = ("--annotation", annotation, "--tumour-class", "tumor", "--tile-px", 64, "--schedule", "1,1,1")
        assert pathnav("explore", slide, *about, "--out", tmp_path / "out2", *model).code == 0
    return server.requests


def test_no_name_of_file_or_patient_leaves_the_process(sent: list[Request]) -> None:
    assert sum(bool(request.tool_names) for request in sent) == 2
    assert len(sent) > 10
    for request in sent:
        headers = "\n".join(f"{name}: {value}" for name, value in request.headers.items())
        content = request.raw.decode("utf-8")
        everything = f"{request.path}\n{headers}\n{content}"
        for word in (*WORDS, ".svs", ".geojson", "aperio"):
            assert word.lower() not in everything.lower(), word
        assert not re.search(rf"\b{re.escape(socket.gethostname())}\b", everything)
        for jpeg in request.jpegs:
            assert not any(word.encode().lower() in jpeg.lower() for word in WORDS)


def test_images_that_are_sent_are_pixels_and_nothing_else(sent: list[Request]) -> None:
    images = [jpeg for request in sent for jpeg in request.jpegs]
    assert len(images) > 10
    for jpeg in images:
        with Image.open(io.BytesIO(jpeg)) as image:
            assert set(image.info) <= {"jfif", "jfif_version", "jfif_unit", "jfif_density"}
            assert not image.getexif()
            assert image.app.keys() <= {"APP0"}


def test_neither_label_nor_macro_image_is_ever_sent(sent: list[Request]) -> None:
    for request in sent:
        for image in request.images:
            rgb = np.asarray(image, dtype=np.int16)
            for colour in (LABEL_RGB, MACRO_RGB):
                assert not (np.abs(rgb - np.array(colour)).max(axis=2) < 60).any()


def test_only_asked_for_facts_of_the_slide_are_sent(sent: list[Request]) -> None:
    replies = [m["content"] for request in sent for m in request.messages if m["role"] == "tool"]
    facts = next(json.loads(reply) for reply in replies if "slide_size_px" in reply)
    assert re.fullmatch(r"slide-[0-9a-f]{6}", facts.pop("slide"))
    assert set(facts) == {
        *("slide_size_px", "scanned_area", "mpp_um", "objective_power", "levels", "magnification"),
        *("search_region", "target_size_px", "rois_left", "steps_left"),
    }


def test_what_is_written_is_for_the_user_alone(bench: Bench, pathnav: Command, tmp_path: Path) -> None:
    before, out = os.umask(0o022), tmp_path / "out"
    picture, kept = tmp_path / "seen.png", tmp_path / "kept.geojson"
    try:
        assert pathnav(*bench.node("--out", out, "--picture", picture)).code == 0
        shape = ("--tile-px", 64, "--min-tissue", 0, "--schedule", "1,1,1", "--scorer", "random", "--geojson", kept)
        assert pathnav("explore", bench.slide, *shape, "--out", out).code == 0
        with ChatServer([call("get_image_info", {}), *[failure(400, "no")] * 9]) as server:
            lost = (*bench.words("--out", out), "--model", "m", "--base-url", server.base_url)
            assert pathnav(*lost).code == 1
    finally:
        os.umask(before)
    written = {path: stat.S_IMODE(path.stat().st_mode) for path in (picture, kept, out, *out.rglob("*"))}
    names = {path.name for path in written}
    assert {"scores", "events.jsonl", "result.json", "run.json", "images"} <= names
    assert {path.name: oct(mode) for path, mode in written.items() if mode & 0o077} == {}


@pytest.mark.parametrize("variable", TRACING_VARIABLES)
def test_a_variable_that_would_send_pixels_elsewhere_stops_the_start(
    bench: Bench, pathnav: Command, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    monkeypatch.setenv(variable, "true")
    before = bench.files()
    said = pathnav(*bench.words(), "--out", bench.folder / "out")
    assert (said.code, said.out, len(said.sentences)) == (2, "", 1)
    assert variable in said.err
    assert bench.files() == before


TELLS = '''
"""An agent and a scorer that tell the key."""

from pathnav.explore import Source, TileScore


class Tells:
    uses_model = True

    def run(self, environment):
        key = environment.chat.settings.api_key
        environment.extract_roi(environment.query.region, f"with {key}")
        environment.chat.ask([{"role": "user", "content": f"my key is {key}"}])
        raise ValueError(f"the key is {key}")


class Scores:
    uses_model = True

    def accept_chat(self, chat, workers):
        self.key = chat.settings.api_key

    def score(self, tiles):
        yield TileScore(True, 0.5, Source.COMPUTED, detail={"said": f"by {self.key}"})
        raise ValueError(f"the key is {self.key}")
'''

ECHOES = {
    "refused": lambda: failure(402, f"Incorrect API key provided: {KEY}"),
    "broken": lambda: html(400, f"<html>{KEY}</html>"),
    "said": lambda: calls(("extract_roi", f'{{"x": "{KEY}"'), (KEY, {}), content=f"my key is {KEY}"),
    "report": lambda: call("finish_and_report", {"conclusion": KEY, "bbox": [300, 300, 99, 99], "confidence": KEY}),
}


@pytest.mark.parametrize("echo", ECHOES)
@pytest.mark.parametrize("agent", ["vlm", "tells.py:Tells"])
def test_a_key_stands_in_no_file_of_a_run_that_repeats_it(
    bench: Bench, pathnav: Command, monkeypatch: pytest.MonkeyPatch, agent: str, echo: str
) -> None:
    monkeypatch.setenv("PLANTED", KEY)
    (bench.folder / "tells.py").write_text(TELLS)
    out = bench.folder / "out"
    scorers = ["tells.py:Scores", {"vlm": {}}]
    explore = {"scorers": scorers, "tile_px": 64, "schedule": [1, 1, 1]}
    scenario = bench.scenario(1, agents=[agent])
    with ChatServer(lambda request: ECHOES[echo]()) as server:
        model = {"name": "m", "base_url": server.base_url, "api_key_env": "PLANTED"}
        document = yaml.safe_load(scenario.read_text()) | {"explore": explore, "model": model}
        document["cohort"]["slides"][0]["tumour_free"] = True
        scenario.write_text(yaml.safe_dump(document))
        said = pathnav("run", scenario, "--out", out)
    assert said.code in (0, 1), said.err
    assert KEY in server.requests[0].headers["authorization"]
    assert agent != "vlm" or not any(KEY in request.raw.decode() for request in server.requests), "nor sent back"
    assert KEY not in said.out + said.err
    found = [path for path in out.rglob("*") if path.is_file() and KEY.encode() in path.read_bytes()]
    assert found == []
    assert len(list(out.glob("episodes/*/result.json"))) >= 4


def test_a_key_stands_in_no_file_that_is_left_to_resume_from(
    bench: Bench, pathnav: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLANTED", KEY)
    out, asked = bench.folder / "out", bench.words("--out", bench.folder / "out", "--model", "m")
    echo = calls(("extract_roi", {"x": 1, "y": 1, "w": 99, "h": 99, "reason": KEY}), content=f"my key is {KEY}")
    with ChatServer([echo, failure(401, KEY)]) as server:
        assert pathnav(*asked, "--base-url", server.base_url, "--api-key-env", "PLANTED").code == 1
        assert KEY not in server.requests[1].raw.decode()
    files = [path for path in out.rglob("*") if path.is_file()]
    assert any(path.name == "events.jsonl" for path in files)
    assert not [path for path in files if KEY.encode() in path.read_bytes()]
