"""Scores of Mode B against brute force: what is read, what is added up, and over which slides."""

import itertools
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from pathnav.errors import RecordError
from pathnav.report.exploration_record import ExplorationResult
from pathnav.report.explorations import SearchRow, search_rows
from pathnav.report.load import load_run
from pathnav.report.picture import draw_episode
from pathnav.report.ratios import RATIOS, UNCONDITIONAL, ratio_cell
from support.explorations import COUNTS, LOST, NO_TUMOUR, Counts, exploration, level
from support.records import result, write_run


def read(**changes: Any) -> ExplorationResult:
    return ExplorationResult.model_validate(exploration(**changes))


def rows_of(*records: dict[str, Any]) -> list[SearchRow]:
    return search_rows(ExplorationResult.model_validate(record) for record in records)


@st.composite
def slide_counts(draw: st.DrawFn) -> tuple[Counts, ...]:
    """Counts as a search can have them: within reach, kept and optimum are parts of all."""
    levels = []
    for place in range(3):
        positives = draw(st.integers(0, 30))
        reachable = positives if place == 0 else draw(st.integers(0, positives))
        kept_positives = draw(st.integers(0, reachable))
        kept = kept_positives + draw(st.integers(0, 5))
        levels.append((positives, reachable, kept, kept_positives, draw(st.integers(kept_positives, positives))))
    return tuple(levels)


# reading


def test_both_kinds_of_result_are_read_from_one_folder(tmp_path: Path) -> None:
    run = load_run(write_run(tmp_path / "r", [result(), exploration(), result()], planned=4))
    assert [len(run.results), len(run.explorations), run.planned, run.unfinished] == [2, 1, 4, ("key003",)]
    assert run.explorations[0].levels[2].kept_positives == 8


def test_a_broken_off_exploration_is_unfinished_but_known(tmp_path: Path) -> None:
    run = load_run(write_run(tmp_path / "r", [exploration(**{**LOST, "outcome": "interrupted"}), exploration(**LOST)]))
    assert (len(run.explorations), len(run.interrupted), run.unfinished) == (1, 1, ("key000",))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"format": "pathnav-exploration-1"}', "is damaged: key: Field required"),
        ('{"format": "pathnav-exploration-2"}', "but has 'pathnav-exploration-2'"),
        (json.dumps(exploration(key="key000", levels=[])), "a finished exploration has levels at [2.5, 10.0, 40.0]"),
        (json.dumps(exploration(key="key000", schedule=[6])), "is damaged: schedule"),
        (json.dumps(exploration(key="key000", outcome="won")), "is damaged: outcome"),
        (json.dumps(exploration(key="other")), "belongs to the episode 'other'"),
        (
            json.dumps(exploration(key="key000", levels=[level(0, None), level(1, COUNTS[1]), level(2, COUNTS[2])])),
            "the counts of positives must be known at all levels or at none",
        ),
        (
            json.dumps(exploration(key="key000", levels=[level(i, COUNTS[i], kept=-1) for i in range(3)])),
            "is damaged: levels.0.kept",
        ),
    ],
)
def test_a_damaged_exploration_is_refused_with_its_path(tmp_path: Path, text: str, reason: str) -> None:
    folder = write_run(tmp_path / "r", [exploration()])
    path = folder / "episodes" / "key000" / "result.json"
    path.write_text(text)
    with pytest.raises(RecordError) as refused:
        load_run(folder)
    assert str(path) in str(refused.value) and reason in str(refused.value) and "\n" not in str(refused.value)


def test_a_damaged_plan_of_searches_is_refused(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "r", [exploration()])
    plan = json.loads((folder / "run.json").read_text())
    (folder / "run.json").write_text(json.dumps({**plan, "explorations": [{"slide": "a.svs"}]}))
    with pytest.raises(RecordError, match=r"run\.json is damaged: explorations\.0\.fingerprint: Field required"):
        load_run(folder)


def test_an_exploration_has_no_trajectory_to_draw(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "r", [exploration()])
    with pytest.raises(RecordError, match="is an exploration of a whole slide"):
        draw_episode(folder, "key000")


@pytest.mark.parametrize(
    ("scorer", "origin", "is_shipped"),
    [
        ("random", "pathnav 0.1.0", True),
        ("nuclear-density", "pathnav_baselines.nuclear_density_scorer", True),
        ("random", "/home/u/mine.py", False),
        ("mine", "pathnav 0.1.0", False),
        ("random", None, False),
    ],
)
def test_a_scorer_is_pathnavs_own_by_name_and_origin(scorer: str, origin: str | None, is_shipped: bool) -> None:
    assert read(scorer=scorer, origin=origin).is_shipped is is_shipped


# rows


@pytest.mark.parametrize(
    "change",
    [
        {"scorer": "random"},
        {"model": "qwen"},
        {"configuration": "d" * 20},
        {"schedule": [1, 1, 1]},
        {"fill_to_k": True},
        {"tile_px": 512},
        {"min_tissue": 0.0},
        {"seed": 8},
        {"origin": "/home/u/mine.py"},
    ],
)
def test_what_was_searched_differently_is_another_row(change: dict[str, Any]) -> None:
    assert len(rows_of(exploration("a"), exploration("b", **change))) == 2


def test_one_slide_under_two_annotations_is_two_rows() -> None:
    other = ((9, 9, 6, 4, 6), *COUNTS[1:])
    rows = rows_of(exploration("a"), exploration("a", other), exploration("b"), exploration("b", other))
    assert [[one.levels[0].positives for one in row.slides] for row in rows] == [[10, 10], [9, 9]]


def test_rows_stand_in_the_papers_order_with_the_control_last() -> None:
    names = ["vlm", "oracle", "random", "clip-retrieval", "mine", "tissue-density"]
    found = rows_of(*(exploration(scorer=name) for name in names))
    assert [row.group.scorer for row in found] == [
        "random",
        "tissue-density",
        "clip-retrieval",
        "mine",
        "vlm",
        "oracle",
    ]


# ratios


def brute_force(name: str, place: int, slides: Sequence[tuple[Counts, ...]]) -> tuple[float | None, int, float | None]:
    """Return micro-average, n slides and macro-average of one rate, slide by slide, by the protocol's words."""
    parts, wholes, own = 0, 0, []
    for slide in slides:
        has_tumour = any(counts[0] for counts in slide)
        positives, reachable, kept, kept_positives, optimum = slide[place]
        part, whole = {
            "conditional_hit": (kept_positives, reachable),
            "unconditional_hit": (kept_positives, positives),
            "optimum_hit": (optimum, positives),
            "oracle_normalised": (kept_positives, optimum),
            "reachable_share": (reachable, positives),
            "precision": (kept_positives, kept),
        }[name]
        if not has_tumour and name != "precision":
            continue
        parts, wholes = parts + part, wholes + whole
        own += [part / whole] if whole else []
    return (parts / wholes if wholes else None), len(own), (sum(own) / len(own) if own else None)


@given(st.lists(slide_counts(), min_size=1, max_size=6))
def test_ratios_equal_those_of_brute_force(slides: list[tuple[Counts, ...]]) -> None:
    (row,) = rows_of(*(exploration(str(place), counts) for place, counts in enumerate(slides)))
    for ratio in RATIOS:
        for place, cell in enumerate(row.ratios[ratio.name]):
            if ratio.needs_truth:
                value, n_slides, macro = brute_force(ratio.name, place, slides)
                assert (cell.value, cell.n_slides) == (pytest.approx(value), n_slides)
                assert (cell.macro.value, cell.macro.n_slides) == (pytest.approx(macro), n_slides)


def test_yes_rates_speak_of_all_slides_and_tie_rates_of_annotated_ones_as_in_explore() -> None:
    levels = [level(i, None, scored=10, yes=4, candidates=4, tied=1) for i in range(3)]
    (row,) = rows_of(exploration("a", None, levels=levels), exploration("b", NO_TUMOUR), exploration("c"))
    assert row.ratios["yes_rate"][0].value == (4 + 9 + 9) / (10 + 18 + 18)
    assert row.ratios["tie_rate"][0].value == (3 + 3) / (9 + 9)
    (alone,) = rows_of(exploration("a", None, levels=levels))
    assert alone.ratios["tie_rate"][0].value is None


def test_a_slide_without_tumour_has_no_rate_but_counts_in_precision() -> None:
    (row,) = rows_of(exploration("a"), exploration("b", NO_TUMOUR))
    assert [row.ratios["unconditional_hit"][0].value, row.ratios["unconditional_hit"][0].n_slides] == [0.4, 1]
    assert [row.ratios["precision"][0].value, row.ratios["precision"][0].n_slides] == [4 / 12, 2]


def test_a_slide_without_annotation_is_in_no_rate() -> None:
    (row,) = rows_of(exploration("a"), exploration("b", None))
    assert {cell.n_slides for name in ("conditional_hit", "precision") for cell in row.ratios[name]} == {1}
    assert row.efforts["calls"].n_slides == 2


def test_a_lost_slide_is_counted_and_never_scored() -> None:
    (row,) = rows_of(exploration("a"), exploration("b", **LOST))
    assert (len(row.slides), len(row.lost), row.efforts["tiles_scored"].n_slides) == (1, 1, 1)


def counts_of(positives: int, kept_positives: int) -> tuple[Counts, ...]:
    return ((positives, positives, max(1, kept_positives), kept_positives, positives),) * 3


PAIRS = [(10, 2), (3, 3), (40, 8), (0, 0), (7, 1)]


def test_the_interval_equals_that_over_all_draws_of_slides() -> None:
    """3,125 draws of 5 slides; the one of the empty slide alone has no ratio."""
    slides = [exploration(str(i), (*counts_of(*pair)[:2], (1, 1, 1, 1, 1))) for i, pair in enumerate(PAIRS)]
    cell = ratio_cell(UNCONDITIONAL, 0, [ExplorationResult.model_validate(slide) for slide in slides])
    drawn = [(sum(p for p, _ in draw), sum(k for _, k in draw)) for draw in itertools.product(PAIRS, repeat=5)]
    low, high = np.percentile([kept / positives for positives, kept in drawn if positives], [2.5, 97.5])
    assert cell.interval is not None
    assert (cell.interval.low, cell.interval.high) == pytest.approx((low, high), abs=0.02)


def test_the_interval_of_the_ratio_agrees_with_scipy() -> None:
    rng = np.random.default_rng(4)
    positives = rng.integers(1, 60, 60)
    kept = rng.binomial(positives, rng.beta(2, 3, 60))
    slides = [
        read(slide=str(i), counts=counts_of(int(p), int(k)))
        for i, (p, k) in enumerate(zip(positives, kept, strict=True))
    ]
    theirs = stats.bootstrap(
        (kept, positives),
        lambda k, p, axis: k.sum(axis=axis) / p.sum(axis=axis),
        paired=True,
        n_resamples=20_000,
        method="percentile",
        rng=1,
    ).confidence_interval
    found = ratio_cell(UNCONDITIONAL, 0, slides).interval
    assert found is not None
    assert (found.low, found.high) == pytest.approx((theirs.low, theirs.high), abs=0.008)


def test_the_interval_is_that_of_the_ratio_not_of_the_mean_of_ratios() -> None:
    slides = [read(slide=str(i), counts=counts_of(*pair)) for i, pair in enumerate([(1, 1)] * 9 + [(1000, 0)])]
    cell = ratio_cell(UNCONDITIONAL, 0, slides)
    assert cell.value == pytest.approx(9 / 1009) and cell.macro.value == pytest.approx(0.9)
    assert cell.interval is not None and cell.interval.low < 0.01


def test_one_slide_has_no_interval() -> None:
    cell = ratio_cell(UNCONDITIONAL, 0, [read()])
    assert (cell.value, cell.interval, cell.is_thin) == (0.4, None, True)


def test_effort_that_nobody_knows_is_unknown_and_that_of_no_model_does_not_apply() -> None:
    told = {"model": "qwen", "tokens": {"input": 100, "output": 9}}
    (asked, silent) = (
        rows_of(exploration("a", **told), exploration("b", model="qwen"))[0],
        rows_of(exploration("a", scorer="random"))[0],
    )
    assert [asked.efforts["tokens_input"].value, asked.efforts["tokens_input"].n_unknown] == [100, 1]
    assert [silent.efforts["tokens_input"].value, silent.efforts["tokens_input"].n_unknown] == [None, 0]
