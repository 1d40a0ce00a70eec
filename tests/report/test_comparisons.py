"""Agents are compared on shared queries, with Holm's adjustment over the table."""

from typing import Any

import pytest

from pathnav.report.comparisons import compare
from pathnav.report.load import EpisodeResult
from pathnav.report.scores import score_rows
from pathnav.report.statistics import holm, paired_permutation_p
from support.records import result


def answers(agent: str, ious: dict[str, float], **changes: Any) -> list[EpisodeResult]:
    return [
        EpisodeResult.model_validate(result(agent=agent, slide__fingerprint=slide, iou=iou, **changes))
        for slide, iou in ious.items()
    ]


OURS = {"a": 0.5, "b": 0.4, "c": 0.6, "d": 0.1}
THEIRS = {"a": 0.1, "b": 0.5, "c": 0.2, "e": 0.9}


def test_only_shared_queries_are_compared() -> None:
    (found,) = compare(score_rows([*answers("mine", OURS), *answers("random", THEIRS)]))
    differences = [0.4, -0.1, 0.4]
    assert found.difference == pytest.approx(sum(differences) / 3)
    assert (found.n_queries, found.n_slides) == (3, 3)
    assert found.p == paired_permutation_p(differences, ["a", "b", "c"])


def test_a_lost_episode_is_not_compared() -> None:
    lost = answers("mine", {"a": 0.0}, outcome="infra_error")
    lost = [episode.model_copy(update={"iou": None}) for episode in lost]
    assert compare(score_rows([*lost, *answers("random", THEIRS)])) == []


def test_holm_runs_over_the_whole_table() -> None:
    episodes = [*answers("mine", OURS), *answers("random", THEIRS), *answers("parent-centre", OURS)]
    episodes += [*answers("mine", OURS, query__magnification=40), *answers("random", THEIRS, query__magnification=40)]
    found = compare(score_rows(episodes))
    assert len(found) == 4
    assert [c.p_holm for c in found] == holm([c.p for c in found])


def test_random_is_not_compared_with_itself_nor_twice_with_parent_centre() -> None:
    found = compare(score_rows([*answers("random", OURS), *answers("parent-centre", THEIRS)]))
    assert [(c.group.agent, c.reference) for c in found] == [("parent-centre", "random")]


def test_the_control_is_not_tested() -> None:
    assert compare(score_rows([*answers("oracle", OURS), *answers("random", THEIRS)])) == []


def test_a_user_s_agent_of_that_name_is_neither_reference_nor_control() -> None:
    episodes = [*answers("random", OURS, origin="/home/u/mine.py"), *answers("random", THEIRS)]
    episodes += answers("oracle", OURS, origin="/home/u/mine.py")
    found = compare(score_rows(episodes))
    tested = [(c.group.agent, c.group.is_shipped, c.reference) for c in found]
    assert tested == [("oracle", False, "random"), ("random", False, "random")]
    shared = "abc"
    assert found[1].difference == pytest.approx(sum(OURS[key] - THEIRS[key] for key in shared) / 3)


def test_a_baseline_that_looks_at_nothing_is_tested_once_for_all_budgets() -> None:
    episodes = []
    for budget in (3, 7, 15):
        episodes += answers("random", THEIRS, query__budget=budget)
        episodes += answers("grid-centroid", OURS, query__budget=budget)
        episodes += answers("vlm", OURS, query__budget=budget, model="qwen", rois_used=budget)
    found = compare(score_rows(episodes))
    tested = [(c.group.agent, c.budgets) for c in found]
    assert tested == [("grid-centroid", (3, 7, 15)), ("vlm", (3,)), ("vlm", (7,)), ("vlm", (15,))]


def test_under_jitter_the_reference_is_the_jittered_parent() -> None:
    jitter: dict[str, Any] = {"controls": {"jitter": 0.25}}
    (found,) = compare(score_rows([*answers("vlm", OURS, **jitter), *answers("parent-centre", THEIRS, **jitter)]))
    assert (found.group.agent, found.reference) == ("vlm", "jittered-parent")


def test_rows_under_different_controls_are_not_compared() -> None:
    jittered = answers("mine", OURS, controls={"jitter": 0.25})
    assert compare(score_rows([*jittered, *answers("random", THEIRS)])) == []


def test_the_baseline_with_the_same_budget_is_taken() -> None:
    episodes = answers("mine", OURS, query__budget=15)
    episodes += answers("random", dict.fromkeys(OURS, 0.0), query__budget=3)
    episodes += answers("random", OURS, query__budget=15)
    found = {c.group.budget: c.difference for c in compare(score_rows(episodes)) if c.group.agent == "mine"}
    assert found == {15: 0.0}


def test_a_baseline_of_another_budget_serves_where_there_is_no_other() -> None:
    episodes = [*answers("mine", OURS, query__budget=15), *answers("random", OURS, query__budget=7)]
    assert len(compare(score_rows(episodes))) == 1
