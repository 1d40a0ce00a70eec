"""What the commands print, where, and with which exit code."""

import json
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from PIL import Image

from pathnav.records import EventLog
from pathnav.report.load import load_run
from pathnav.report.picture import draw_result
from pathnav.run.case import SlideSource
from support.chat_server import ChatServer, call
from support.commands import Bench, Command

ISSUE_KEYS = [
    *("format", "outcome", "box", "iou", "conclusion", "confidence", "rois_used", "budget", "steps", "tokens"),
    *("cost_usd", "seconds", "agent", "model", "target_cut", "unbudgeted", "out"),
]
COMMANDS = ["locate", "explore", "run", "report", "agents", "scorers", "inspect", "annotations", "phantom", "stub"]
REPORT = {"conclusion": "here", "bbox": [600, 600, 100, 100], "confidence": 0.7}


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
    found = said.json
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
    assert said.json["model"] == "stub-pixel-reader"


def test_locate_leaves_nothing_behind_without_out(
    pathnav: Command, bench: Bench, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    before = bench.files()
    assert pathnav(*bench.words("--json")).code == 0
    assert bench.files() == before
    assert list((tmp_path / "temporary").iterdir()) == []


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
    first = pathnav(*asked).json
    assert (first["iou"], first["out"]) == (1.0, "kept")
    before = {path: path.read_bytes() for path in bench.files() if path.is_file()}
    assert pathnav(*asked).json == first
    assert {path: path.read_bytes() for path in bench.files() if path.is_file()} == before


def test_other_questions_add_to_a_folder_and_the_report_shows_all(pathnav: Command, bench: Bench) -> None:
    for agent in ("parent-centre", "random", "oracle"):
        assert pathnav(*bench.node("--agent", agent, "--out", "kept")).code == 0
    run = load_run(bench.folder / "kept")
    assert sorted(one.agent for one in run.results) == ["oracle", "parent-centre", "random"]
    assert (run.unfinished, run.n_earlier) == ((), 0)
    description = json.loads((bench.folder / "kept" / "run.json").read_text())
    assert [len(description[name]) for name in ("episodes", "earlier_episodes", "cases")] == [1, 2, 1]


def test_options_reach_the_agent_and_its_key(pathnav: Command, bench: Bench) -> None:
    with ChatServer(lambda request: call("finish_and_report", REPORT)) as server:
        asked = bench.words("--model", "m", "--base-url", server.base_url, "--out", "kept")
        assert pathnav(*asked, "--no-guides", "--agent-option", "view_px=256", "--max-tokens", 99).code == 0
        assert server.requests[0].images[0].size[0] <= 256
        body = server.requests[0].body
        assert 99 in (body.get("max_tokens"), body.get("max_completion_tokens"))
    (result,) = load_run(bench.folder / "kept").results
    assert (result.settings["guides"], result.settings["view_px"]) == (False, 256)


def test_no_box_is_still_exit_0(pathnav: Command, bench: Bench) -> None:
    said = pathnav(*bench.node("--agent", bench.agent("Fails"), "--json"))
    assert said.code == 0
    assert (said.json["outcome"], said.json["box"]) == ("no_report", None)
    assert "ZeroDivisionError: no tissue" in said.err


def test_the_picture_is_drawn(pathnav: Command, bench: Bench) -> None:
    said = pathnav(*bench.node("--agent", bench.agent("Looker"), "--picture", "seen.png"))
    assert said.code == 0
    with Image.open("seen.png") as picture:
        assert max(picture.size) > 500


def test_of_declared_draws_no_box_is_drawn_as_the_answer(pathnav: Command, bench: Bench) -> None:
    for agent, name in (("random", "draws.png"), (bench.agent("Looker"), "box.png")):
        assert pathnav(*bench.node("--agent", agent, "--picture", name, "--out", name[:-4])).code == 0
    draws, box = (load_run(bench.folder / name).results[0] for name in ("draws", "box"))
    with SlideSource(str(bench.slide)).open() as slide:
        for result, name in ((draws, "draws.png"), (box, "box.png")):
            assert draw_result(slide, result).tobytes() == Image.open(name).convert("RGB").tobytes()


def test_damaged_tiles_are_a_warning_with_their_share(pathnav: Command, shared: Path, tmp_path: Path) -> None:
    slide = shared / "slides" / "corrupt-one-tile-zeroed.svs"
    asked = ("--finding", "x", "--magnification", 10, "--agent", "parent-centre", "--out", tmp_path / "kept")
    said = pathnav("locate", slide, *asked)
    assert said.code == 0
    (line,) = [line for line in said.sentences if "damaged tiles: 1 of" in line]
    assert line.startswith("warning: ")
    assert re.search(r"\(\d+\.\d\d% of the area\)", line)
    (path,) = (tmp_path / "kept" / "episodes").glob("*/result.json")
    assert line.removeprefix("warning: ") in json.loads(path.read_text())["slide"]["warnings"]
    facts = pathnav.json("inspect", slide)
    assert facts["failed_share"] > 0
    assert line.removeprefix("warning: ") in facts["warnings"]


def test_a_question_that_another_run_is_asking_is_exit_2(pathnav: Command, bench: Bench) -> None:
    asked = bench.words("--agent", "parent-centre", "--out", "kept")
    assert pathnav(*asked).code == 0
    (result,) = (bench.folder / "kept" / "episodes").glob("*/result.json")
    result.unlink()
    with EventLog(result.with_name("events.jsonl")):
        said = pathnav(*asked)
        assert pathnav(*bench.words("--agent", "random", "--out", "kept")).code == 0
    assert (said.code, said.out) == (2, "")
    (sentence,) = said.sentences
    assert "kept is in use by another run" in sentence
    assert pathnav(*asked).code == 0


def test_agents_are_listed_with_their_origin(pathnav: Command) -> None:
    listed = {one["name"]: one for one in pathnav.json("agents")["agents"]}
    assert {"vlm", "random", "grid-centroid", "tissue-density", "tissue-weighted", "parent-centre"} <= set(listed)
    assert listed["random"]["origin"].startswith("pathnav ")
    assert (listed["vlm"]["uses_model"], listed["tissue-density"]["unbudgeted"]) == (True, True)
    assert all(one["error"] is None and one["summary"] for one in listed.values())
    assert "tissue-density" in pathnav("agents").out


def test_inspect_tells_scale_levels_and_tissue(pathnav: Command, bench: Bench) -> None:
    facts = pathnav.json("inspect", bench.slide)
    assert facts["format"] == "pathnav-inspect-1"
    assert facts["dimensions"] == [2000, 1600]
    assert facts["mpp_um"] == pytest.approx([0.25, 0.25], rel=1e-3)
    assert [one["magnification"] for one in facts["magnifications"]] == [2.5, 10, 40]
    text = pathnav("inspect", bench.slide).out
    assert "2000 x 1600 px" in text
    assert "2.5x reduced 16 times, 10x reduced 4 times, 40x native" in text


def test_inspect_takes_a_slide_without_a_scale(pathnav: Command, shared: Path) -> None:
    slide = shared / "slides" / "svs-no-mpp-no-appmag.svs"
    facts = pathnav.json("inspect", slide)
    assert (facts["mpp_um"], facts["magnifications"]) == (None, None)
    assert "unknown: give --mpp" in pathnav("inspect", slide).out
    given = pathnav.json("inspect", slide, "--objective-power", 20)
    assert (given["mpp_um"], given["mpp_source"]) == ([0.5, 0.5], "objective-power")


def test_the_stub_serves_another_process_until_ctrl_c(pathnav: Command, bench: Bench) -> None:
    script = "import sys; from pathnav.cli import main; sys.exit(main())"
    served = subprocess.Popen([sys.executable, "-c", script, "stub", "--port", "0"], stderr=subprocess.PIPE, text=True)
    try:
        assert served.stderr is not None
        url = re.findall(r"http://\S+", served.stderr.readline())[0]
        said = pathnav(*bench.words("--model", "stub-pixel-reader", "--base-url", url, "--json"))
        assert said.code == 0
        assert "which is no model" in said.err
        assert said.json["model"] == "stub-pixel-reader"
    finally:
        served.send_signal(signal.SIGINT)
        assert served.wait(60) in (0, 130)
        served.stderr.close()
