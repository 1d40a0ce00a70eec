"""The paper's Mode B values are the facts that were handed over, and what is said of them can be computed."""

import json
from pathlib import Path

import pytest

from pathnav.report.paper_searches import (
    above_the_oracle,
    paper_hits,
    paper_sweep,
    rows_off_the_count,
    same_first_k,
    sweep_footnote,
)


def test_every_hit_rate_equals_the_shared_facts(shared: Path) -> None:
    facts = json.loads((shared / "paper" / "pathagentbench.json").read_text())["mode_b"]
    ours = {
        row.name: {"conditional": list(row.conditional or ()), "unconditional": list(row.unconditional)}
        for row in paper_hits().rows
    }
    assert ours == facts["rows"]
    assert {row.schedule for row in paper_hits().rows} == {tuple(facts["schedule"])}
    assert facts["n"] == f"{paper_hits().n_slides} slides"


def test_every_cell_of_the_sweep_equals_the_shared_facts(shared: Path) -> None:
    facts = json.loads((shared / "paper" / "pathagentbench.json").read_text())["mode_b_k_sweep"]
    theirs = {
        (name, tuple(schedule)): values or []  # null: the paper leaves the cell empty
        for name, row in facts["rows"].items()
        for schedule, values in zip(facts["schedules"], row, strict=True)
    }
    assert {(row.name, row.schedule): list(row.unconditional) for row in paper_sweep().rows} == theirs
    assert facts["n"] == f"{paper_sweep().n_slides} slides"


@pytest.mark.parametrize(
    ("scorer", "name"),
    [("random", "Random sampling"), ("tissue-density", "Tissue density"), ("clip-retrieval", "CONCH retrieval")],
)
def test_each_scorer_has_the_papers_row_beside_it(scorer: str, name: str) -> None:
    assert [row.name for row in paper_hits().rows if scorer in row.beside] == [name]


def test_the_sweep_has_its_random_and_oracle_beside_ours() -> None:
    beside = {row.name: row.beside for row in paper_sweep().rows}
    assert beside == {"Random": ("random",), "Oracle": ("oracle",), "Patho-R1": (), "Qwen": (), "Gemini": ()}


def test_two_rows_of_the_sweep_are_no_multiples_of_one_228th() -> None:
    """All other 2.5x values are: 15/228 = 6.58 %, 42/228 = 18.42 %, and so on."""
    assert rows_off_the_count() == ["Patho-R1", "Gemini"]


def test_one_model_of_the_sweep_beats_the_oracle() -> None:
    ((row, oracle),) = above_the_oracle()
    assert (row.name, row.schedule, row.unconditional[0], oracle.unconditional[0]) == (
        "Gemini",
        (6, 5, 3),
        70.37,
        67.54,
    )


def test_the_first_level_of_the_sweep_depends_on_later_k() -> None:
    assert same_first_k() == {
        "Random": (30.70, 33.77),
        "Patho-R1": (7.92, 12.40),
        "Gemini": (54.82, 70.37),
        "Oracle": (67.11, 67.54),
    }


def test_the_footnote_says_so() -> None:
    footnote = sweep_footnote()
    assert "multiples of 1/228 but in the rows Patho-R1 and Gemini" in footnote
    assert "4 of 5 rows have two values for the same first K" in footnote
    assert "Gemini at K = 6,5,3 lies above the oracle (70.37 against 67.54)" in footnote
