"""What counts in which score, what does not, and what stays unknown."""

from typing import Any

import numpy as np
import pytest

from pathnav.report.load import EpisodeResult
from pathnav.report.scores import METRICS, Cell, Row, score_rows
from pathnav.report.statistics import cluster_bootstrap
from support.records import result


def episode(**changes: Any) -> EpisodeResult:
    return EpisodeResult.model_validate(result(**changes))


def on(slide: str, finding: str = "n1", **changes: Any) -> EpisodeResult:
    return episode(slide__fingerprint=slide, query__finding=finding, **changes)


NO_BOX: dict[str, Any] = {
    "outcome": "no_report",
    "box": None,
    "reported": None,
    "iou": 0.0,
    "iou_fallback": 0.5,
    "iou_any": 0.0,
}
LOST: dict[str, Any] = {"outcome": "infra_error", "box": None, "iou": None, "iou_fallback": None, "iou_any": None}


def only_row(episodes: list[EpisodeResult]) -> Row:
    (row,) = score_rows(episodes)
    return row


def cell(name: str, episodes: list[EpisodeResult]) -> Cell:
    return only_row(episodes).cells[name]


def test_a_missing_box_scores_zero_and_stays_out_of_miou_valid() -> None:
    episodes = [on("a", iou=0.4), on("b", **NO_BOX)]
    scores = {name: found.value for name, found in only_row(episodes).cells.items()}
    assert scores["miou"] == pytest.approx(0.2)
    assert scores["valid_box_rate"] == pytest.approx(0.5)
    assert scores["miou_valid"] == pytest.approx(0.4)
    assert scores["miou_fallback"] == pytest.approx((0.2 + 0.5) / 2)
    assert cell("miou_valid", episodes).n_queries == 1


@pytest.mark.parametrize("outcome", ["no_report", "format_errors", "step_limit", "refused", "context_overflow"])
def test_every_failure_of_the_agent_is_scored(outcome: str) -> None:
    assert cell("miou", [on("a", iou=0.4), on("b", **{**NO_BOX, "outcome": outcome})]).value == pytest.approx(0.2)


def test_infrastructure_failures_are_counted_and_never_scored() -> None:
    row = only_row([on("a", iou=0.4), on("b", **LOST), on("c", **LOST)])
    assert (row.n_infra, row.n_queries, row.n_slides) == (2, 1, 1)
    assert row.cells["miou"].value == pytest.approx(0.4)
    assert row.cells["valid_box_rate"].value == 1.0


def test_a_row_of_nothing_but_failures_has_no_score() -> None:
    row = only_row([on("a", **LOST)])
    assert (row.n_infra, row.n_queries) == (1, 0)
    assert all(found.value is None for found in row.cells.values())


def test_without_a_target_nothing_is_scored_but_the_box_counts() -> None:
    row = only_row([on("a", iou=None, iou_fallback=None, iou_any=None)])
    assert row.cells["miou"].value is None
    assert row.cells["valid_box_rate"].value == 1.0


def test_unknown_is_never_zero() -> None:
    found = cell("cost_usd", [on("a", model="m"), on("b", model="m")])
    assert (found.value, found.n_unknown) == (None, 2)


def test_a_mean_over_some_unknown_says_so() -> None:
    tokens = {"input": 100, "output": 5}
    found = cell("tokens_input", [on("a", model="m", tokens=tokens), on("b", model="m")])
    assert (found.value, found.n_queries, found.n_unknown) == (100, 1, 1)


def test_tokens_of_an_agent_without_a_model_do_not_apply() -> None:
    found = cell("tokens_input", [on("a"), on("b")])
    assert (found.value, found.n_unknown) == (None, 0)


@pytest.mark.parametrize(("iou", "hit"), [(0.29999, 0.0), (0.3, 1.0), (0.9, 1.0)])
def test_a_hit_starts_at_03(iou: float, hit: float) -> None:
    assert cell("iou_at_0.3", [on("a", iou=iou)]).value == hit


def test_draws_carry_their_expected_share_of_hits() -> None:
    found = cell(
        "iou_at_0.3", [on("a", iou=0.1, draws=1000, hit_share=0.07), on("b", iou=0.1, draws=1000, hit_share=0.03)]
    )
    assert found.value == pytest.approx(0.05)


def test_the_unit_of_n_is_the_query_whatever_the_repeats() -> None:
    episodes = [on("a", repeat=0, iou=0.2), on("a", repeat=1, iou=0.4), on("b", repeat=0, iou=0.9)]
    found = cell("miou", episodes)
    assert (found.n_queries, found.n_slides) == (2, 2)
    assert found.value == pytest.approx((0.3 + 0.9) / 2)


def test_the_spread_over_repeats_is_that_of_the_score() -> None:
    episodes = [
        on(slide, repeat=r, iou=iou) for slide, r, iou in [("a", 0, 0.2), ("b", 0, 0.4), ("a", 1, 0.4), ("b", 1, 0.8)]
    ]
    assert cell("miou", episodes).sd_repeats == pytest.approx(np.std([0.3, 0.6], ddof=1))


def test_a_single_pass_has_no_spread() -> None:
    assert cell("miou", [on("a"), on("b")]).sd_repeats is None


def test_a_mean_over_valid_boxes_weighs_a_query_by_its_valid_share() -> None:
    episodes = [on("a", repeat=0, iou=0.6), on("a", "n1", repeat=1, **NO_BOX), on("b", repeat=0, iou=0.3)]
    assert cell("miou_valid", episodes).value == pytest.approx((0.5 * 0.6 + 0.3) / 1.5)


def test_intervals_resample_slides() -> None:
    values = {("a", "1"): 0.1, ("a", "2"): 0.3, ("b", "1"): 0.5, ("c", "1"): 0.7}
    found = cell("miou", [on(slide, query, iou=iou) for (slide, query), iou in values.items()])
    assert found.interval == cluster_bootstrap(list(values.values()), [slide for slide, _ in values])


def test_one_slide_has_no_interval() -> None:
    found = cell("miou", [on("a", "1"), on("a", "2")])
    assert (found.value, found.interval, found.is_thin) == (0.2, None, True)


def test_five_slides_are_not_thin() -> None:
    assert not cell("miou", [on(slide) for slide in "abcde"]).is_thin


@pytest.mark.parametrize(
    "other",
    [
        {"agent": "vlm"},
        {"model": "m"},
        {"settings": {"guides": False}},
        {"controls": {"jitter": 0.25}},
        {"decoding": {"temperature": 1}},
        {"version": "1"},
        {"configuration": "abc"},
        {"origin": "/home/u/mine.py"},
        {"controls": {"swapped_findings": True}},
        {"query__budget": 3},
        {"query__magnification": 40},
    ],
)
def test_what_differs_in_what_was_chosen_is_never_averaged(other: dict[str, Any]) -> None:
    assert len(score_rows([episode(), episode(**other)])) == 2


def test_scores_do_not_depend_on_the_order_of_episodes() -> None:
    episodes = [on(slide, iou=i / 10, repeat=r) for i, slide in enumerate("abcde") for r in (0, 1)]
    assert only_row(episodes).cells == only_row(episodes[::-1]).cells


def test_every_score_of_the_protocol_has_a_column() -> None:
    asked = "miou iou_at_0.3 valid_box_rate miou_valid miou_fallback iou_any rois_used steps examined_mm2 pixels_sent"
    assert {*asked.split(), "tokens_input", "tokens_output", "cost_usd", "seconds"} == {m.name for m in METRICS}


@pytest.mark.parametrize(
    "changed",
    [
        {"query__region": [0, 0, 4000, 3000]},
        {"target": [500, 500, 900, 900]},
        {"query__finding": "another"},
        {"query__magnification": 40},
        {"slide__fingerprint": "b"},
    ],
)
def test_a_query_with_another_region_target_or_finding_is_another_query(changed: dict[str, Any]) -> None:
    first, second = episode(), episode(**changed)
    assert first.query_key != second.query_key
    assert not any(row.repeats > 1 for row in score_rows([first, second]))


def test_an_option_cannot_hide_another_of_the_same_name() -> None:
    """An agent's own `temperature` beside the model's."""
    episodes = [episode(settings={"temperature": ours}, decoding={"temperature": 0}) for ours in (1, 2)]
    assert len(score_rows(episodes)) == 2


def test_the_spread_over_repeats_compares_the_same_queries() -> None:
    """Repeat 1 lost the easy query: its mean over what is left says nothing about repeats."""
    easy = [on("a", repeat=0, iou=0.9), on("a", repeat=1, **LOST)]
    hard = [on("b", repeat=0, iou=0.1), on("b", repeat=1, iou=0.1)]
    assert cell("miou", easy + hard).sd_repeats == pytest.approx(0.0)
    assert cell("miou", [easy[0], hard[1]]).sd_repeats is None


def test_parent_centre_on_jittered_regions_is_the_jittered_parent() -> None:
    jittered = only_row([on("a", controls={"jitter": 0.25})]).group
    assert (jittered.agent, jittered.controls) == ("jittered-parent", '{"jitter": 0.25}')
    assert only_row([on("a", controls={"jitter": 0.25}, origin="/home/u/mine.py")]).group.agent == "parent-centre"
