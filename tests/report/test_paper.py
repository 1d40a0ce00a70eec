"""The paper's values are the facts that were handed over, and are paired with the right agents."""

import json
from pathlib import Path

import pytest

from pathnav.report.paper import budget_name, paper


def test_every_value_equals_the_shared_facts(shared: Path) -> None:
    facts = json.loads((shared / "paper" / "pathagentbench.json").read_text())
    table, sweep = facts["mode_a"]["rows"], facts["mode_a_budget_sweep"]["rows"]
    for row in paper().rows:
        place = [2.5, 10, 40].index(row.magnification)
        if row.budget in (None, "base"):
            assert row.miou == table[row.name][place]
        if row.name in sweep and row.budget is not None:
            assert row.miou == sweep[row.name][row.budget][place]
            assert row.rois == facts["mode_a_budget_sweep"]["budgets"][row.budget][place]
    assert {row.name for row in paper().rows} == set(table)
    assert len(paper().rows) == 3 * (5 + 3 * 3 + 1)


@pytest.mark.parametrize(
    ("agent", "name"),
    [
        ("random", "Random sampling"),
        ("grid-centroid", "Grid centroid"),
        ("tissue-density", "Tissue density"),
        ("tissue-weighted", "Tissue density"),
        ("parent-centre", "Parent-box center"),
        ("clip-retrieval", "CONCH retrieval"),
    ],
)
def test_each_baseline_has_the_papers_row_beside_it(agent: str, name: str) -> None:
    row = paper().baseline(agent, 10)
    assert row is not None and row.name == name


def test_an_agent_that_the_paper_does_not_have_gets_no_row() -> None:
    assert paper().baseline("vlm", 10) is None


def test_footnote_counts_the_cells_below_random() -> None:
    assert paper().sweep_footnote().startswith("17 of the paper's 18 tight and loose cells lie below its random row")


def test_only_sweep_cells_are_doubted() -> None:
    doubted = {(row.name, row.budget) for row in paper().rows if row.doubted}
    assert doubted == {(m, b) for m in ("GPT-5.2", "Gemini-3-Flash", "Qwen-3.5-Flash") for b in ("tight", "loose")}


def test_budgets_are_named_as_in_the_paper() -> None:
    assert [budget_name(2.5, 10), budget_name(10, 3), budget_name(40, 10), budget_name(40, 7)] == [
        "base",
        "tight",
        "loose",
        None,
    ]
