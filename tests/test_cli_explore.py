"""What `pathnav explore` prints, keeps and refuses."""

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
import shapely

from pathnav.explore import Schedule, TileTree
from pathnav.explore.hit_rates import HitCounts
from pathnav.explore.invariants import Row, broken_invariants
from pathnav.slide import open_slide
from support.commands import Bench, Command
from support.exploring import Exploring, polygon, write_annotation

KEYS = [
    *("format", "outcome", "scorer", "schedule", "calls", "calls_now", "unparsed", "levels", "tokens", "cost_usd"),
    *("seconds", "out"),
]
LEVEL_KEYS = [
    *("magnification", "tiles", "scored", "yes", "kept", "kept_boxes", "positives", "reachable", "kept_positives"),
    *("conditional_hit", "unconditional_hit", "optimum_hit", "tie_rate"),
]


@pytest.fixture
def exploring(bench: Bench) -> Exploring:
    return Exploring(bench)


def test_explore_prints_exactly_the_keys_of_its_format(pathnav: Command, exploring: Exploring) -> None:
    found = pathnav.json(*exploring.annotated("--scorer", "random"))
    assert list(found) == KEYS
    assert found["format"] == "pathnav-exploration-1"
    assert [list(level) for level in found["levels"]] == [LEVEL_KEYS] * 3
    assert [level["magnification"] for level in found["levels"]] == [2.5, 10, 40]
    assert (found["out"], found["cost_usd"], found["tokens"]) == (None, None, None)
    assert found["calls"] == found["calls_now"] == sum(level["scored"] for level in found["levels"])


def test_without_an_annotation_nothing_is_measured(pathnav: Command, exploring: Exploring) -> None:
    for level in pathnav.json(*exploring.plain("--scorer", "random"))["levels"]:
        assert [level[key] for key in LEVEL_KEYS[6:]] == [None] * 7
        assert level["kept"] == len(level["kept_boxes"]) > 0


def test_the_pixels_of_kept_boxes_nest(pathnav: Command, exploring: Exploring) -> None:
    levels = pathnav.json(*exploring.annotated("--scorer", exploring.scorer("Left"), "--schedule", "2,2,2"))["levels"]
    shapes = [shapely.box(x, y, x + w, y + h) for x, y, w, h in levels[1]["kept_boxes"]]
    for x, y, w, h in levels[2]["kept_boxes"]:
        assert sum(shape.covers(shapely.box(x, y, x + w, y + h)) for shape in shapes) == 1


def test_another_schedule_over_known_tiles_asks_nothing(pathnav: Command, exploring: Exploring) -> None:
    out = exploring.bench.folder / "run"
    command = exploring.annotated("--scorer", exploring.scorer("Left"), "--out", out)
    first = pathnav.json(*command, "--schedule", "3,3,3")
    second = pathnav.json(*command, "--schedule", "3,2,1")
    assert first["calls_now"] == first["calls"] > 0
    assert (second["calls_now"], second["calls"] > 0) == (0, True)
    again = pathnav.json(*command, "--schedule", "3,3,3")
    assert again["calls_now"] == 0
    assert {**again, "calls_now": first["calls_now"]} == first


def test_an_option_that_a_scorer_does_not_declare_is_another_scorer(pathnav: Command, exploring: Exploring) -> None:
    command = exploring.plain("--scorer", exploring.scorer("Left"), "--out", exploring.bench.folder / "run")
    assert pathnav.json(*command)["calls_now"] > 0
    assert pathnav.json(*command, "--scorer-option", "sleep_s=0.0001")["calls_now"] > 0


def test_a_rerun_gives_the_same_bytes_apart_from_times(pathnav: Command, exploring: Exploring) -> None:
    records = []
    for name in ("one", "two"):
        out = exploring.bench.folder / name
        pathnav(*exploring.annotated("--scorer", "random", "--seed", 5, "--out", out))
        (path,) = out.glob("episodes/*/result.json")
        record = json.loads(path.read_text())
        records.append((path.parent.name, {key: value for key, value in record.items() if "seconds" not in key}))
    assert records[0] == records[1]


def test_killed_and_continued_no_stored_tile_is_scored_again(exploring: Exploring, pathnav: Command) -> None:
    out, notes = exploring.bench.folder / "run", exploring.bench.folder / "notes.txt"
    options = ("--scorer-option", f"notes={notes}", "--scorer-option", "sleep_s=0.01", "--out", out)
    command = [str(word) for word in exploring.annotated("--scorer", exploring.scorer("Left"), *options)]
    source = "import sys; from pathnav.cli import main; sys.exit(main(sys.argv[1:]))"
    for _ in range(3):
        before = notes.read_text().count("\n") if notes.exists() else 0
        process = subprocess.Popen([sys.executable, "-c", source, *command], stdout=-3, stderr=-3)
        deadline = time.monotonic() + 60
        while (not notes.exists() or notes.read_text().count("\n") < before + 20) and process.poll() is None:
            assert time.monotonic() < deadline
            time.sleep(0.005)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    found = pathnav.json(*command)
    asked = Counter(notes.read_text().splitlines())
    assert found["outcome"] == "finished"
    assert found["calls"] == len(asked)
    assert 0 < found["calls_now"] < found["calls"]
    assert sum(asked.values()) - len(asked) <= 3, "at most the tile in flight at each kill"
    alone = pathnav.json(*exploring.annotated("--scorer", exploring.scorer("Left")))
    assert [level["kept_boxes"] for level in alone["levels"]] == [level["kept_boxes"] for level in found["levels"]]


def test_kept_tiles_are_written_for_qupath(pathnav: Command, exploring: Exploring) -> None:
    path = exploring.bench.folder / "kept.geojson"
    found = pathnav.json(*exploring.annotated("--scorer", "random", "--geojson", path))
    features = json.loads(path.read_text())["features"]
    by_id = {feature["id"]: feature for feature in features}
    assert len(by_id) == len(features) == sum(level["kept"] for level in found["levels"])
    boxes = [tuple(box) for level in found["levels"] for box in level["kept_boxes"]]
    shapes = [shapely.geometry.shape(feature["geometry"]) for feature in features]
    assert [(x, y, x + w, y + h) for x, y, w, h in boxes] == [shape.bounds for shape in shapes]
    for feature, shape in zip(features, shapes, strict=True):
        told = feature["properties"]
        assert told["objectType"] == "annotation"
        assert 0 <= told["measurements"][0]["value"] <= 1
        if told["metadata"]["magnification"] != "2.5x":
            parent = shapely.geometry.shape(by_id[told["metadata"]["parent"]]["geometry"])
            assert parent.covers(shape)
    said = pathnav("annotations", path, "--json")
    assert [row["name"] for row in json.loads(said.out)["classes"]] == ["kept 2.5x", "kept 10x", "kept 40x"]


def test_a_scorer_that_fails_at_once_is_bad_input(pathnav: Command, exploring: Exploring) -> None:
    for name, reason in (("Fails", "ZeroDivisionError: no tissue"), ("Short", "gave 0 scores for")):
        said = pathnav(*exploring.annotated("--scorer", exploring.scorer(name), "--json"))
        assert (said.code, said.out) == (2, "")
        assert reason in said.sentences[-1]


def test_no_plug_in_is_handed_the_truth(pathnav: Command, exploring: Exploring) -> None:
    assert pathnav.json(*exploring.annotated("--scorer", exploring.scorer("OracleScorer")))["outcome"] == "finished"


def test_the_text_is_a_table_that_a_reader_can_follow(pathnav: Command, exploring: Exploring) -> None:
    said = pathnav(*exploring.annotated("--scorer", "oracle", "--schedule", "1,1,1"))
    lines = said.out.splitlines()
    assert lines[0] == "outcome:    finished"
    assert [line.split()[0] for line in lines[-3:]] == ["2.5x", "10x", "40x"]
    assert len({len(line) for line in lines[-4:]}) == 1


SLOW_SCORERS = [pytest.param(name, marks=pytest.mark.slow) for name in ("tissue-density", "random")]


@pytest.mark.parametrize("scorer", ["oracle", "nuclear-density", *SLOW_SCORERS])
def test_a_real_slide_keeps_to_the_invariants(pathnav: Command, shared: Path, tmp_path: Path, scorer: str) -> None:
    slide = shared / "slides" / "virtual-hgsc-groundtruth.svs"
    truth = ("--annotation", slide.with_suffix(".geojson"), "--tumour-class", "tumor")
    rows, out = [], tmp_path / "run"
    for keep in ("1,1,1", "3,3,3", "6,3,2", "6,5,3", "10,5,3"):
        arguments = ("explore", slide, *truth, "--scorer", scorer, "--tile-px", 128, "--schedule", keep, "--out", out)
        assert pathnav(*arguments).code == 0
    with open_slide(slide) as opened:
        tree = TileTree(opened, 128)
        assert [tree.count(level) for level in range(3)] == [15, 204, 2990]
    for path in out.glob("episodes/*/result.json"):
        record = json.loads(path.read_text())
        levels = tuple(
            HitCounts(*(level[k] for k in ("positives", "reachable", "kept", "kept_positives", "optimum_positives")))
            for level in record["levels"]
        )
        rows.append(Row(scorer, frozenset({record["slide"]["fingerprint"]}), Schedule.of(record["schedule"]), levels))
        if scorer == "oracle":
            assert levels[0].kept_positives == levels[0].optimum_positives
    assert len(rows) == 5
    assert broken_invariants(rows) == []


def test_coordinates_may_count_from_the_scanned_area(pathnav: Command, shared: Path, tmp_path: Path) -> None:
    slide = shared / "slides" / "mirax-sparse-bounds.mrxs"
    with open_slide(slide) as opened:
        bounds = opened.bounds
    kept = {}
    for name, corner, more in (("plane", (bounds.x, bounds.y), ()), ("area", (0, 0), ("--relative-to-bounds",))):
        path = write_annotation(tmp_path / f"{name}.geojson", polygon(corner[0] + 300, corner[1] + 300, 600, 600))
        drawn = tmp_path / f"{name}.kept.geojson"
        arguments = ("explore", slide, "--annotation", path, "--scorer", "oracle", "--tile-px", 64, "--geojson", drawn)
        found = pathnav.json(*arguments, *more)
        first = json.loads(drawn.read_text())["features"][0]["geometry"]["coordinates"][0][0]
        kept[name] = (
            [level["kept_positives"] for level in found["levels"]],
            found["levels"][0]["kept_boxes"][0],
            first,
        )
    assert kept["plane"][:2] == kept["area"][:2]
    assert [a - b for a, b in zip(kept["plane"][2], kept["area"][2], strict=True)] == [bounds.x, bounds.y]


def test_the_installed_scorers_are_listed(pathnav: Command) -> None:
    said = pathnav("scorers")
    assert said.code == 0
    assert [line.split()[0] for line in said.out.splitlines()] == [
        *("clip-retrieval", "nuclear-density", "oracle", "random", "tissue-density", "vlm")
    ]
    assert "(needs a chat endpoint)" in said.out.splitlines()[-1]
    found = json.loads(pathnav("scorers", "--json").out)
    assert (found["format"], found["scorers"][3]["name"]) == ("pathnav-scorers-1", "random")
