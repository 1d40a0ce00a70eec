"""`pathnav run` and `pathnav report`: a scenario, its table, and running it again."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from pathnav.report.load import load_run
from pathnav.slide import Slide, open_slide
from support.chat_server import ChatServer, call, failure, say
from support.commands import Bench, Command
from support.trees import tree_document, write_json

REPORT = {"conclusion": "here", "bbox": [600, 600, 100, 100], "confidence": 0.7}


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
    assert [one.query.budget for one in run.results] == [3, 3, 3, 3]
    assert run.n_earlier == 4


def test_a_run_stores_the_drawn_sample_and_its_list_of_cases(pathnav: Command, bench: Bench) -> None:
    assert pathnav("run", bench.scenario(), "--out", "kept", "--set", "cohort.sample={slides: 1}").code == 0
    description = json.loads((bench.folder / "kept" / "run.json").read_text())
    (drawn,) = description["sample"]
    assert drawn["organ"] == "breast"
    assert drawn["nodes"] == ["a1", "a2"]
    cases = description["cases"]
    assert [case["id"] for case in cases] == [f"{drawn['slide']}/{node}/base" for node in drawn["nodes"]]
    assert cases[0]["target"] == [200, 200, 400, 400]


def test_a_run_opens_each_of_its_slides_once(pathnav: Command, bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []

    def counting(path: str, **options: Any) -> Slide:
        opened.append(path)
        return open_slide(path, **options)

    monkeypatch.setattr("pathnav.slide.open_slide", counting)
    assert pathnav("run", bench.scenario(slides=2, agents=["parent-centre", "random"])).code == 0
    assert len(opened) == len(set(opened)) == 2


def test_a_run_warns_of_damaged_tiles(pathnav: Command, bench: Bench, shared: Path) -> None:
    slide = shared / "slides" / "corrupt-one-tile-zeroed.svs"
    tree = tree_document(slide.name, mpp=None)
    tree["slides"][0] |= {"nodes": tree["slides"][0]["nodes"][:1], "paths": []}
    write_json(bench.folder / "damaged.json", tree)
    scenario = bench.scenario(magnifications=[2.5])
    document = yaml.safe_load(scenario.read_text())
    scenario.write_text(
        yaml.safe_dump(document | {"cohort": {"slides": [{"path": str(slide), "tree": "damaged.json"}]}})
    )
    said = pathnav("run", scenario, "--out", "kept")
    assert said.code == 0, said.err
    (line,) = [line for line in said.sentences if "damaged tiles" in line]
    assert line.startswith(f"warning: {slide}: damaged tiles: 1 of")


def test_a_run_tries_again_what_the_endpoint_lost(pathnav: Command, bench: Bench) -> None:
    scenario = bench.scenario(slides=1, agents=["vlm", "parent-centre"])
    with ChatServer([say("hm"), failure(401, "no"), call("finish_and_report", REPORT)]) as server:
        asked = ("run", scenario, "--out", "kept", "--model", "m", "--base-url", server.base_url)
        lost = pathnav(*asked, "--json")
    assert lost.code == 1
    assert "1 of 4 episodes were lost" in lost.sentences[-1]
    assert lost.json["format"] == "pathnav-report-1"
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


def test_a_report_is_printed_in_every_form(pathnav: Command, bench: Bench) -> None:
    assert pathnav("run", bench.scenario(), "--out", "kept").code == 0
    for form in ("text", "markdown", "csv", "json"):
        said = pathnav("report", "kept", "--format", form)
        assert (said.code, said.err, "parent-centre" in said.out) == (0, "", True)


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


def test_on_a_terminal_a_bar_counts_episodes_and_rois(bench: Bench) -> None:
    reading, writing = os.openpty()
    script = "import sys; from pathnav.cli import main; sys.exit(main())"
    asked = [sys.executable, "-c", script, "run", str(bench.scenario(agents=[bench.agent("Looker")])), "--out", "kept"]
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "100"}
    done = subprocess.run(asked, stdout=subprocess.PIPE, stderr=writing, timeout=120, env=environment)
    os.close(writing)
    shown = os.read(reading, 65536).decode()
    os.close(reading)
    assert done.returncode == 0, shown
    assert "4 of 4 episodes" in shown
    assert "4 ROIs" in shown
    assert done.stdout.decode().startswith("Mode A: scenario")
