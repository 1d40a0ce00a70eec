"""A copy for a reviewer holds no path, file name, address, user or machine, wherever these were planted."""

import hashlib
import io
import json
import shutil
import socket
import stat
from pathlib import Path
from typing import Any

import pytest
import yaml
from PIL import Image

from pathnav.cli import main
from pathnav.errors import ConfigError, RecordError
from pathnav.report.summary import make_report
from pathnav.run.anonymise import anonymise_run
from pathnav.run.names_of_run import Names, names_of
from pathnav.run.replay import replay_episode
from support.chat_server import Answer, ChatServer, Request, call, calls, failure
from support.commands import Command
from support.exploring import polygon, write_annotation
from support.trees import tree_document, write_json, write_slide

SLIDE = "Quixote_Miguel-1547.tif"
PLANTED = ("quixote", "miguel", "dulcinea", "sancho", "zebulon", "saint placebo", "placebo-ws17", "rocinante")

AGENT = '''
"""An agent that tells all it knows."""

import socket


class Tells:
    def run(self, environment):
        environment.extract_roi(environment.query.region, f"I run on {socket.gethostname()} from {__file__}")
        raise ValueError(f"{__file__} failed on {socket.gethostname()} for zebulon")
'''


def answer(request: Request) -> Answer:
    """Look twice, say where the slide lies as though it were known, and report."""
    turn = sum(message["role"] == "assistant" for message in request.messages)
    if "finish_and_report" not in request.tool_names:
        return failure(400, f"cannot do that with /srv/saint placebo/{SLIDE}")
    if turn == 0:
        box = {"x": 300, "y": 300, "w": 200, "h": 200}
        return calls(("extract_roi", {**box, "reason": f"as in {SLIDE}"}), ("extract_roi", {**box, "reason": ""}))
    said = f"as seen in C:\\Users\\zebulon\\{SLIDE} and ~/rocinante/sancho/marks.geojson"
    return call("finish_and_report", {"conclusion": said, "bbox": [300, 300, 200, 200], "confidence": 0.5})


HOME, MACHINE = ("home", "zebulon", "Saint Placebo"), "placebo-ws17.example.org"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Run both modes in a folder full of names, on a machine with a name; return the folder."""
    folder = tmp_path_factory.mktemp("made").joinpath(*HOME)
    folder.mkdir(parents=True)
    write_slide(folder / SLIDE)
    write_json(folder / "biopsy-Dulcinea.json", tree_document(SLIDE))
    (folder / "rocinante.py").write_text(AGENT)
    write_annotation(folder / "Sancho marks.geojson", polygon(100, 100, 700, 500))
    slide = {"path": SLIDE, "tree": "biopsy-Dulcinea.json", "annotation": "Sancho marks.geojson"}
    scenario = {
        "format": "pathnav-scenario-1",
        "cohort": {"slides": [{**slide, "tumour_classes": ["tumor"]}]},
        "localise": {"agents": ["vlm", "random", "rocinante.py:Tells"], "magnifications": [10]},
        "explore": {"scorers": ["random", {"vlm": {}}], "tile_px": 64},
    }
    path, out = folder / "rocinante-study.yaml", folder / "runs" / "dulcinea"
    path.write_text(yaml.safe_dump(scenario))
    with ChatServer(answer) as server, pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setattr(socket, "gethostname", lambda: MACHINE)
        code = main(["run", str(path), "--out", str(out), "--model", "m", "--base-url", server.base_url])
    assert code == 1, "the searches of the model are lost"
    return folder


@pytest.fixture
def run(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the run in a copy of the folder, which is worked in, on the same machine."""
    folder = tmp_path.joinpath(*HOME)
    shutil.copytree(made, folder)
    monkeypatch.chdir(folder)
    monkeypatch.setattr(socket, "gethostname", lambda: MACHINE)
    return folder / "runs" / "dulcinea"


def leaks(folder: Path) -> list[str]:
    """Return what of the planted strings stands in any file's bytes or name."""
    found = []
    for path in [folder, *folder.rglob("*")]:
        content = path.read_bytes().lower() if path.is_file() else b""
        texts = content + str(path.relative_to(folder.parent)).lower().encode()
        found += [f"{path}: {name}" for name in PLANTED if name.encode() in texts]
        found += [f"{path}: address" for name in (b"127.0.0.1", b"://", b"/home", b".tif") if name in texts]
    return found


def test_nothing_that_was_planted_is_in_the_copy_and_reports_work_on_it(run: Path, tmp_path: Path) -> None:
    assert leaks(run), "the test would see a leak"
    before = {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}
    made = anonymise_run(run, tmp_path / "copy" / "for-review")
    assert leaks(made.out) == []
    assert {path: path.read_bytes() for path in run.rglob("*") if path.is_file()} == before
    assert (made.episodes, made.left_out) == (8, 0)
    assert made.images == len(list((run / "images").iterdir()))
    ours, theirs = make_report(run), make_report(made.out)
    assert [{**row, "origin": ""} for row in theirs.as_json()["rows"]] == [
        {**row, "origin": ""} for row in ours.as_json()["rows"]
    ]
    assert [row.origin for row in theirs.rows if row.group.is_shipped] == ["pathnav 0.1.0"] * 2
    assert {result.slide.path for result in theirs.run.results} == {ours.run.results[0].slide.fingerprint}
    assert [path.name for path in made.out.parent.iterdir()] == ["for-review"]
    for path in [made.out, *made.out.rglob("*")]:
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600)


def test_an_episode_of_the_copy_runs_again_with_the_slide(run: Path, tmp_path: Path) -> None:
    out = anonymise_run(run, tmp_path / "copy").out
    paths = [path.parent for path in (out / "episodes").glob("*/result.json")]
    of_model = [path for path in paths if json.loads((path / "result.json").read_text()).get("agent") == "vlm"]
    assert all(replay_episode(path, str(run.parent.parent / SLIDE)).images for path in of_model)


def test_images_that_tell_more_than_pixels_are_left_out(run: Path, tmp_path: Path) -> None:
    first = next((run / "images").iterdir()).read_bytes()
    exif = Image.Exif()
    exif[0x010E] = "Quixote"
    picture = io.BytesIO()
    Image.new("RGB", (8, 8)).save(picture, "JPEG", exif=exif)
    for spoilt in (
        first[:2] + b"\xff\xfe\x00\x09Quixote" + first[2:],
        first + b"Quixote",
        picture.getvalue(),
        b"Quixote",
    ):
        (run / "images" / f"{hashlib.sha256(spoilt).hexdigest()}.jpg").write_bytes(spoilt)
    (run / "images" / "quixote.jpg").write_bytes(first)
    made = anonymise_run(run, tmp_path / "copy")
    assert made.left_out == 5
    assert leaks(made.out) == []


def test_images_may_stay_at_home(run: Path, tmp_path: Path, pathnav: Command) -> None:
    said = pathnav("anonymise", run, "--out", tmp_path / "copy", "--no-images")
    assert (said.code, said.out) == (0, f"{tmp_path / 'copy'}: 8 episodes, 0 images\n")
    assert not (tmp_path / "copy" / "images").exists()
    assert not (tmp_path / "copy" / "scores.sqlite").exists()


def test_a_place_that_is_taken_is_refused_and_left_alone(run: Path, tmp_path: Path, pathnav: Command) -> None:
    taken = tmp_path / "taken"
    taken.mkdir()
    anonymise_run(run, taken)  # an empty folder gives way
    assert pathnav("anonymise", run, "--out", taken).code == 2
    with pytest.raises(ConfigError, match="is not an empty folder"):
        anonymise_run(run, taken)
    with pytest.raises(ConfigError, match="lies inside of the run folder"):
        anonymise_run(run, run / "copy")
    with pytest.raises(RecordError):
        anonymise_run(tmp_path / "none", tmp_path / "copy")


def test_a_damaged_run_leaves_no_half_copy(run: Path, tmp_path: Path) -> None:
    events = next(run.glob("episodes/*/events.jsonl"))
    events.write_text("nonsense\n" + events.read_text())
    (tmp_path / "copies").mkdir()
    with pytest.raises(RecordError, match="line 1"):
        anonymise_run(run, tmp_path / "copies" / "copy")
    assert list((tmp_path / "copies").iterdir()) == []


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("cannot read /data/x/y: no", "cannot read [path]: no"),
        ("see ~/x/y and ../z/w.", "see [path] and [path]."),
        (r"see D:\scans\a and \\server\share\b", "see [path] and [path]"),
        ("at https://x.org:80/v1?q=1, twice", "at [url], twice"),
        ("from 10.1.2.3:8000", "from [host]"),
        ("a.svs, b/c.JSON", "[file], [file]"),
        ("write to a.b@c.org", "write to [address]"),
        ("and/or, 0.25 um/px, [1, 2], 12:30, n/a, e.g. 40x", "and/or, 0.25 um/px, [1, 2], 12:30, n/a, e.g. 40x"),
    ],
)
def test_what_looks_like_a_place_is_replaced_and_prose_is_not(text: str, plain: str) -> None:
    assert Names({}).text(text) == plain


def test_names_are_replaced_as_whole_words_and_ours_are_kept() -> None:
    result: dict[str, Any] = {"slide": {"path": "x/finished.svs", "fingerprint": "f" * 64}, "agent": "random"}
    names = names_of({"scenario": {"file": "random.json", "tree": "Ann.json"}}, [result])
    assert names.json({"outcome": "finished", "agent": "random"}) == {"outcome": "finished", "agent": "random"}
    assert names.text("x/finished.svs") == "f" * 64
    assert names.text("Ann.json, Annotated") == "[file], Annotated"


def test_names_are_found_in_the_text_of_arguments_too() -> None:
    slides = {"slide": {"path": "D:\\Müller.svs", "fingerprint": "f" * 64}}
    arguments = json.dumps({"reason": "as in D:\\Müller.svs by Müller"})
    assert json.loads(names_of({}, [slides]).text(arguments)) == {"reason": f"as in {'f' * 64} by {'f' * 64}"}
