"""Whose a folder is, and what its description keeps."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from pathnav.errors import ConfigError, RecordError
from pathnav.records import EventLog
from pathnav.run.description import describe_run
from pathnav.run.folder import RunFolder


def description(*keys: str, **changes: object) -> dict[str, object]:
    plain = describe_run("n", {"budget": 3}, seed=1, episodes=keys, started="2026-01-01T00:00:00+00:00")
    return {**plain, **changes}


def opened(path: Path, *keys: str, **changes: object) -> None:
    RunFolder(path).open(description(*keys, **changes))


def everything(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_new_folder_is_made_with_its_parents(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "runs" / "one")
    folder.check()
    assert not (tmp_path / "runs").exists()
    folder.open(description("k1"))
    assert folder.description()["episodes"] == ["k1"]


def test_an_empty_folder_and_one_of_ours_are_taken(tmp_path: Path) -> None:
    opened(tmp_path, "k1")
    RunFolder(tmp_path).check()


def test_a_folder_that_was_killed_while_it_was_made_is_taken(tmp_path: Path) -> None:
    (tmp_path / ".run.json.1-2.tmp").write_text("{")
    (tmp_path / "run.lock").touch()
    opened(tmp_path, "k1")


@pytest.mark.parametrize("name", ["notes.txt", ".hidden", "images"])
def test_a_folder_with_something_else_in_it_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("mine")
    before = everything(tmp_path)
    with pytest.raises(ConfigError, match=r"is not empty and has no run\.json"):
        opened(tmp_path, "k1")
    assert everything(tmp_path) == before


def test_a_file_and_a_run_of_another_format_are_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(ConfigError, match="is a file"):
        RunFolder(tmp_path / "file").check()
    with pytest.raises(ConfigError, match="cannot be made"):
        RunFolder(tmp_path / "file" / "below").open(description("k1"))
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "run.json").write_text('{"format": "pathnav-run-9"}')
    with pytest.raises(RecordError, match="pathnav-run-9"):
        RunFolder(tmp_path / "run").check()


def test_the_same_run_again_leaves_its_description_as_it_is(tmp_path: Path) -> None:
    opened(tmp_path, "k1")
    before = (tmp_path / "run.json").read_bytes()
    opened(tmp_path, "k1", started="2027-01-01T00:00:00+00:00")
    assert (tmp_path / "run.json").read_bytes() == before


def test_another_scenario_adds_keys_and_keeps_what_was_asked_before(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    folder.open(description("k1", "k2"))
    folder.open(description("k2", "k3", scenario={"budget": 9}))
    folder.open(description("k4", scenario={"budget": 12}))
    found = folder.description()
    assert (found["episodes"], found["earlier_episodes"]) == (["k4"], ["k1", "k2", "k3"])
    assert found["scenario"] == {"budget": 12}
    assert [earlier["scenario"] for earlier in found["earlier"]] == [{"budget": 3}, {"budget": 9}]


def test_a_description_names_versions_machine_and_seed() -> None:
    found = json.loads(json.dumps(description("k1")))
    assert found["format"] == "pathnav-run-1"
    assert found["seed"] == 1
    for package in ("numpy", "imagecodecs", "tifffile", "scikit-image", "httpx"):
        assert found["versions"][package], package
    assert found["machine"]["cpus"] >= 1


def test_a_plan_that_is_run_again_counts_as_the_latest(tmp_path: Path) -> None:
    opened(tmp_path, "k1", "k2")
    opened(tmp_path, "k2", "k3", scenario={"budget": 9})
    opened(tmp_path, "k1", "k2")
    found = RunFolder(tmp_path).description()
    assert (found["episodes"], found["earlier_episodes"]) == (["k1", "k2"], ["k3"])


def test_a_folder_may_be_open_twice_and_keeps_the_keys_of_both(tmp_path: Path) -> None:
    RunFolder(tmp_path).open(description("k1"))
    RunFolder(tmp_path).open(description("k2"))
    found = RunFolder(tmp_path).description()
    assert (found["episodes"], found["earlier_episodes"]) == (["k2"], ["k1"])


def test_eight_processes_that_describe_one_folder_lose_no_key(tmp_path: Path) -> None:
    script = "import json, pathlib, sys\nfrom pathnav.run.folder import RunFolder\n"
    script += "RunFolder(pathlib.Path(sys.argv[1])).open(json.loads(sys.argv[2]))\n"
    asked = [[sys.executable, "-c", script, str(tmp_path), json.dumps(description(f"k{n}"))] for n in range(8)]
    running = [subprocess.Popen(one) for one in asked]
    assert [one.wait(120) for one in running] == [0] * 8
    found = RunFolder(tmp_path).description()
    assert sorted([*found["episodes"], *found["earlier_episodes"]]) == [f"k{number}" for number in range(8)]


def test_a_folder_in_which_nothing_was_learnt_is_undone_and_any_other_stays(tmp_path: Path) -> None:
    for key, result in (("k1", False), ("k2", True)):
        folder = RunFolder(tmp_path / key)
        folder.open(description(key))
        place = folder.make_episode(key)
        (place / "result.json" if result else place / "events.jsonl").write_text("{}")
        folder.undo()
    assert [path.name for path in tmp_path.iterdir()] == ["k2"]


def test_a_folder_in_which_another_process_is_at_work_stays(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "run")
    folder.open(description("k1"))
    with EventLog(folder.make_episode("k1") / "events.jsonl"):
        folder.undo()
    assert folder.run_json.exists()
