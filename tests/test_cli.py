"""What the commands print, where, and with which exit code."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from PIL import Image

from pathnav.report.load import load_run
from support.chat_server import ChatServer, call, failure
from support.commands import Bench, Command

ISSUE_KEYS = [
    *("format", "outcome", "box", "iou", "conclusion", "confidence", "rois_used", "budget", "steps", "tokens"),
    *("cost_usd", "seconds", "agent", "model", "target_cut", "unbudgeted", "out"),
]
COMMANDS = ["locate", "run", "report", "agents", "inspect", "phantom", "stub"]
REPORT = {"conclusion": "here", "bbox": [600, 600, 100, 100], "confidence": 0.7}


@pytest.fixture
def pathnav(capsys: pytest.CaptureFixture[str]) -> Command:
    """Call `pathnav` in this process."""
    return Command(capsys)


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    """Set up a folder with all that a command needs, and work in it."""
    monkeypatch.chdir(tmp_path)
    return Bench.set_up(tmp_path)


def printed(out: str) -> dict[str, Any]:
    """Return the one JSON object on stdout."""
    (line,) = out.splitlines()
    found: dict[str, Any] = json.loads(line)
    return found


@pytest.mark.parametrize("command", [[], *([name] for name in COMMANDS)], ids=lambda words: " ".join(words) or "none")
def test_every_command_has_a_help(pathnav: Command, command: list[str]) -> None:
    said = pathnav(*command, "--help")
    assert said.code == 0
    assert said.err == ""
    assert said.out.startswith("Usage: pathnav")
    assert "╭" not in said.out


def test_pathnav_alone_prints_its_help_with_every_command(pathnav: Command) -> None:
    said = pathnav()
    assert said.code == 0
    assert all(f"\n  {command} " in said.out for command in COMMANDS)


def test_the_version_is_printed(pathnav: Command) -> None:
    from pathnav import __version__

    assert pathnav("--version").out == f"pathnav {__version__}\n"


def test_locate_prints_exactly_the_keys_of_its_format(pathnav: Command, bench: Bench) -> None:
    said = pathnav(*bench.words("--agent", "parent-centre", "--json"))
    found = printed(said.out)
    assert said.code == 0
    assert said.err == ""
    assert list(found) == ISSUE_KEYS
    assert found["format"] == "pathnav-result-1"
    assert (found["out"], found["iou"], found["tokens"], found["model"]) == (None, None, None, None)
    assert (found["outcome"], found["budget"], found["agent"]) == ("finished", 7, "parent-centre")


def test_locate_without_a_model_says_that_the_stub_is_none(pathnav: Command, bench: Bench) -> None:
    said = pathnav(*bench.words("--json"))
    (line,) = said.sentences
    assert "stub-pixel-reader" in line
    assert "no model" in line
    assert printed(said.out)["model"] == "stub-pixel-reader"


def test_locate_leaves_nothing_behind_without_out(
    pathnav: Command, bench: Bench, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    before = bench.files()
    assert pathnav(*bench.words("--json")).code == 0
    assert bench.files() == before


def test_locate_for_a_reader_says_what_came_of_it(pathnav: Command, bench: Bench) -> None:
    said = pathnav(*bench.node("--agent", bench.agent("Looker"), "--out", "kept"))
    assert said.code == 0
    lines = dict(line.split(":", 1) for line in said.out.splitlines())
    assert lines["outcome"].strip() == "finished"
    assert lines["box"].strip().startswith("[500, 400, 400, 400] level-0 px")
    assert lines["looks"].strip() == "1 of 7 ROIs in 2 steps"
    assert lines["record"].strip() == "kept"


def test_text_with_brackets_is_printed_as_it_is(pathnav: Command, bench: Bench) -> None:
    agent = bench.folder / "brackets.py"
    agent.write_text(
        "class Brackets:\n"
        "    def run(self, environment):\n"
        "        environment.report(environment.query.region, conclusion='[clip] [/bold] [red]')\n"
    )
    assert "[clip] [/bold] [red]" in pathnav(*bench.words("--agent", f"{agent}:Brackets")).out
    assert "'[clip]'" in pathnav(*bench.words("--agent", "[clip]")).err


def test_locate_with_a_tree_is_scored_and_a_second_time_kept(pathnav: Command, bench: Bench) -> None:
    asked = bench.node("--agent", "oracle", "--out", "kept", "--json")
    first = printed(pathnav(*asked).out)
    assert (first["iou"], first["out"]) == (1.0, "kept")
    before = {path: path.read_bytes() for path in bench.files() if path.is_file()}
    assert printed(pathnav(*asked).out) == first
    assert {path: path.read_bytes() for path in bench.files() if path.is_file()} == before


def test_other_questions_add_to_a_folder_and_the_report_shows_all(pathnav: Command, bench: Bench) -> None:
    for agent in ("parent-centre", "random", "oracle"):
        assert pathnav(*bench.node("--agent", agent, "--out", "kept")).code == 0
    run = load_run(bench.folder / "kept")
    assert [one.agent for one in run.results] == ["parent-centre", "random", "oracle"]
    assert run.unfinished == ()


def test_options_reach_the_agent_and_its_key(pathnav: Command, bench: Bench) -> None:
    with ChatServer(lambda request: call("finish_and_report", REPORT)) as server:
        asked = bench.words("--model", "m", "--base-url", server.base_url, "--out", "kept")
        assert pathnav(*asked, "--no-guides", "--agent-option", "view_px=256", "--max-tokens", 99).code == 0
        assert server.requests[0].images[0].size[0] <= 256
        body = server.requests[0].body
        assert 99 in (body.get("max_tokens"), body.get("max_completion_tokens"))
    (result,) = load_run(bench.folder / "kept").results
    assert (result.settings["guides"], result.settings["view_px"]) == (False, 256)


def test_a_key_is_sent_and_stands_in_no_file(pathnav: Command, bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", "sk-very-secret")
    with ChatServer(lambda request: call("finish_and_report", REPORT)) as server:
        url = ("--model", "m", "--base-url", server.base_url, "--api-key-env", "MY_KEY")
        said = pathnav(*bench.words(*url, "--out", "kept", "--json"))
        assert server.requests[0].headers["authorization"] == "Bearer sk-very-secret"
    assert "sk-very-secret" not in said.out + said.err
    assert all(b"sk-very-secret" not in path.read_bytes() for path in bench.files() if path.is_file())


def test_a_failing_endpoint_is_exit_1_with_the_json_and_the_way_on(pathnav: Command, bench: Bench) -> None:
    with ChatServer([failure(401, "no such key")]) as server:
        said = pathnav(*bench.words("--model", "m", "--base-url", server.base_url, "--out", "kept", "--json"))
    assert said.code == 1
    assert printed(said.out)["outcome"] == "infra_error"
    assert "401" in said.sentences[-1]
    assert "run the same command again" in said.sentences[-1]


def test_no_box_is_still_exit_0(pathnav: Command, bench: Bench) -> None:
    said = pathnav(*bench.node("--agent", bench.agent("Fails"), "--json"))
    assert said.code == 0
    assert (printed(said.out)["outcome"], printed(said.out)["box"]) == ("no_report", None)
    assert "ZeroDivisionError: no tissue" in said.err


def test_ctrl_c_is_exit_130(pathnav: Command, bench: Bench) -> None:
    agent = bench.folder / "interrupted.py"
    agent.write_text("class Interrupted:\n    def run(self, environment):\n        raise KeyboardInterrupt\n")
    said = pathnav(*bench.words("--agent", f"{agent}:Interrupted", "--out", "kept"))
    assert (said.code, said.out) == (130, "")
    (sentence,) = said.sentences
    assert sentence.startswith("pathnav: stopped by Ctrl-C")
    (unfinished,) = load_run(bench.folder / "kept").unfinished
    assert unfinished


def test_the_picture_is_drawn(pathnav: Command, bench: Bench) -> None:
    said = pathnav(*bench.node("--agent", bench.agent("Looker"), "--picture", "seen.png"))
    assert said.code == 0
    with Image.open("seen.png") as picture:
        assert max(picture.size) > 500


def test_a_run_prints_its_table_and_runs_again_without_asking(pathnav: Command, bench: Bench) -> None:
    scenario = bench.scenario(agents=["parent-centre", "random", "oracle"])
    first = pathnav("run", scenario)
    assert first.code == 0
    assert "parent-centre" in first.out
    assert "12 of 12 episodes" in first.err
    assert (bench.folder / "runs" / "scenario" / "run.json").is_file()
    logs = {path: path.read_bytes() for path in (bench.folder / "runs").rglob("*") if path.is_file()}
    again = pathnav("run", scenario)
    assert again.out == first.out
    assert "12 kept from before" in again.err
    assert {path: path.read_bytes() for path in (bench.folder / "runs").rglob("*") if path.is_file()} == logs


def test_a_changed_setting_adds_episodes_and_keeps_the_old(pathnav: Command, bench: Bench) -> None:
    scenario = bench.scenario()
    assert pathnav("run", scenario, "--out", "kept").code == 0
    assert pathnav("run", scenario, "--out", "kept", "--set", "localise.budget=[3,3,3]").code == 0
    run = load_run(bench.folder / "kept")
    assert sorted(one.query.budget for one in run.results) == [3, 3, 3, 3, 7, 7, 7, 7]


def test_a_run_tries_again_what_the_endpoint_lost(pathnav: Command, bench: Bench) -> None:
    scenario = bench.scenario(slides=1, agents=["vlm", "parent-centre"])
    with ChatServer([failure(401, "no"), call("finish_and_report", REPORT)]) as server:
        asked = ("run", scenario, "--out", "kept", "--model", "m", "--base-url", server.base_url)
        lost = pathnav(*asked, "--json")
    assert lost.code == 1
    assert "1 of 4 episodes were lost" in lost.sentences[-1]
    assert printed(lost.out)["format"] == "pathnav-report-1"
    with ChatServer([call("finish_and_report", REPORT)]) as server:
        asked = ("run", scenario, "--out", "kept", "--model", "m", "--base-url", server.base_url)
        found = pathnav(*asked, "--json")
        assert len(server.requests) == 1
    assert found.code == 0
    assert [one.outcome for one in load_run(bench.folder / "kept").results] == ["finished"] * 4


def test_the_controls_reach_the_model_and_the_record(pathnav: Command, bench: Bench) -> None:
    controls = {"jitter": 0.25, "blank_images": True, "swapped_findings": True}
    scenario = bench.scenario(slides=1, agents=["vlm"], magnifications=[40], views={"guides": False}, **controls)
    whole = {**REPORT, "bbox": [0, 0, 2000, 1600]}
    with ChatServer(lambda request: call("finish_and_report", whole)) as server:
        assert pathnav("run", scenario, "--out", "kept", "--model", "m", "--base-url", server.base_url).code == 0
        assert all(image.getextrema() == ((255, 255),) * 3 for sent in server.requests for image in sent.images)
        first, second = (request.text for request in server.requests)
    results = {one.query.id: one for one in load_run(bench.folder / "kept").results}
    assert {name: one.query.finding for name, one in results.items()} == {"a1i": "Necrosis.", "a2i": "Mitotic figures."}
    assert "Necrosis." in first
    assert "Mitotic figures." in second
    assert all(one.controls == controls for one in results.values())
    assert all(one.query.region[:2] not in ((200, 200), (700, 500)) for one in results.values())


@pytest.mark.parametrize("form", ["text", "markdown", "csv", "json"])
def test_a_report_is_printed_in_every_form(pathnav: Command, bench: Bench, form: str) -> None:
    assert pathnav("run", bench.scenario(), "--out", "kept").code == 0
    said = pathnav("report", "kept", "--format", form)
    assert (said.code, said.err) == (0, "")
    assert "parent-centre" in said.out


def test_agents_are_listed_with_their_origin(pathnav: Command) -> None:
    listed = {one["name"]: one for one in printed(pathnav("agents", "--json").out)["agents"]}
    assert {"vlm", "random", "grid-centroid", "tissue-density", "tissue-weighted", "parent-centre"} <= set(listed)
    assert listed["random"]["origin"].startswith("pathnav ")
    assert (listed["vlm"]["uses_model"], listed["tissue-density"]["unbudgeted"]) == (True, True)
    assert all(one["error"] is None and one["summary"] for one in listed.values())
    assert "tissue-density" in pathnav("agents").out


def test_inspect_tells_scale_levels_and_tissue(pathnav: Command, bench: Bench) -> None:
    facts = printed(pathnav("inspect", bench.slide, "--json").out)
    assert facts["format"] == "pathnav-inspect-1"
    assert (facts["width"], facts["height"]) == (2000, 1600)
    assert facts["mpp_um"] == pytest.approx([0.25, 0.25], rel=1e-3)
    assert [one["magnification"] for one in facts["magnifications"]] == [2.5, 10, 40]
    assert "2000 x 1600 px" in pathnav("inspect", bench.slide).out


def test_inspect_takes_a_slide_without_a_scale(pathnav: Command, shared: Path) -> None:
    slide = shared / "slides" / "svs-no-mpp-no-appmag.svs"
    facts = printed(pathnav("inspect", slide, "--json").out)
    assert (facts["mpp_um"], facts["magnifications"]) == (None, [])
    given = printed(pathnav("inspect", slide, "--objective-power", 20, "--json").out)
    assert (given["mpp_um"], given["mpp_source"]) == ([0.5, 0.5], "objective-power")


@pytest.mark.parametrize("where", ["scenario", "cohort"])
def test_paths_of_a_scenario_belong_to_the_file_that_names_them(
    pathnav: Command, bench: Bench, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, where: str
) -> None:
    scenario = bench.scenario()
    more: tuple[object, ...] = ()
    if where == "cohort":
        document = yaml.safe_load(scenario.read_text())
        (bench.folder / "cohort.yaml").write_text(yaml.safe_dump(document.pop("cohort")))
        scenario.write_text(yaml.safe_dump(document))
        more = ("--cohort", bench.folder / "cohort.yaml")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert pathnav("run", scenario, *more).code == 0


def test_a_reader_that_stops_early_is_no_error_message(bench: Bench, pathnav: Command) -> None:
    assert pathnav("run", bench.scenario(), "--out", "kept").code == 0
    script = "import sys; from pathnav.cli import main; sys.exit(main())"
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [sys.executable, "-c", script, "report", "kept"], stdout=writing, stderr=subprocess.PIPE, timeout=120
    )
    os.close(writing)
    assert done.stderr == b""
