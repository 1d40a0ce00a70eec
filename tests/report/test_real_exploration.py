"""Records of Mode B that `pathnav explore` writes are the records that a report reads."""

import json

import pytest

from pathnav.report import make_report
from pathnav.report.render import render
from support.commands import Bench, Command
from support.exploring import Exploring


@pytest.mark.parametrize("scorer", ["random", "oracle"])
def test_a_recorded_search_is_reported_as_it_was_printed(pathnav: Command, bench: Bench, scorer: str) -> None:
    out = bench.folder / "searched"
    said = pathnav(*Exploring(bench).annotated("--scorer", scorer, "--out", out, "--schedule", "2,2,2"), "--json")
    assert said.code == 0, said
    printed = json.loads(said.out)
    found = make_report(out).as_json()["explorations"]
    (row,) = found["rows"]
    assert (row["scorer"], row["pathnavs_own"], row["schedule"], row["set"]) == (scorer, True, [2, 2, 2], 1)
    assert (found["planned"], found["answered"], found["broken_invariants"]) == (1, 1, [])
    for ours, level in zip(row["levels"], printed["levels"], strict=True):
        assert {name: ours[name] for name in ("magnification", "tiles", "scored", "kept")} == {
            name: level[name] for name in ("magnification", "tiles", "scored", "kept")
        }
        for rate in ("conditional_hit", "unconditional_hit", "optimum_hit"):
            assert ours["rates"][rate]["value"] == level[rate]
        assert ours["rates"]["unconditional_hit"]["denominator"] == level["positives"]


def test_a_search_without_an_annotation_is_reported_without_rates(pathnav: Command, bench: Bench) -> None:
    out = bench.folder / "searched"
    assert pathnav(*Exploring(bench).plain("--scorer", "random", "--out", out)).code == 0
    said = render(make_report(out))
    assert "Without an annotation" in said and "Mode B at" not in said and "Answers: rates in %" in said
