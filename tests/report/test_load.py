"""Reading run folders: whole, partial, torn and foreign ones."""

import json
from pathlib import Path

import pytest

from pathnav.errors import RecordError
from pathnav.report.load import EpisodeResult, load_run
from support.records import result, write_run


def test_results_come_in_the_order_of_the_plan(tmp_path: Path) -> None:
    run = load_run(write_run(tmp_path / "r", [result(agent="random"), result(agent="vlm")]))
    assert [episode.agent for episode in run.results] == ["random", "vlm"]
    assert (run.planned, run.unfinished) == (2, ())


def test_a_run_that_goes_on_says_which_episodes_are_missing(tmp_path: Path) -> None:
    run = load_run(write_run(tmp_path / "r", [result()], planned=3))
    assert (len(run.results), run.planned, run.unfinished) == (1, 3, ("key001", "key002"))


def test_an_interrupted_episode_is_not_finished(tmp_path: Path) -> None:
    run = load_run(write_run(tmp_path / "r", [result(), result(outcome="interrupted", iou=None)]))
    assert (len(run.results), run.unfinished) == (1, ("key001",))


def test_unknown_stays_none(tmp_path: Path) -> None:
    episode = load_run(write_run(tmp_path / "r", [result()])).results[0]
    assert (episode.tokens, episode.cost_usd, episode.pixels_sent) == (None, None, None)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "is not JSON"),
        ('{"format": "pathnav-res', "is not JSON"),
        ("[]", "should have the format 'pathnav-result-1', but has None"),
        ('{"format": "pathnav-result-9"}', "but has 'pathnav-result-9'"),
        ('{"format": "pathnav-result-1"}', "is damaged: key: Field required"),
        (json.dumps(result(key="key000", iou="much")), "is damaged: iou: Input should be a valid number"),
        (json.dumps(result(key="key000", outcome="won")), "is damaged: outcome"),
        (json.dumps(result(key="another")), "belongs to the episode 'another'"),
    ],
)
def test_a_damaged_result_is_refused_with_its_path(tmp_path: Path, text: str, reason: str) -> None:
    folder = write_run(tmp_path / "r", [result()])
    path = folder / "episodes" / "key000" / "result.json"
    path.write_text(text)
    with pytest.raises(RecordError) as refused:
        load_run(folder)
    assert str(path) in str(refused.value) and reason in str(refused.value)


def test_a_foreign_result_is_refused(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "r", [result()])
    (folder / "episodes" / "stranger").mkdir()
    (folder / "episodes" / "stranger" / "result.json").write_text(json.dumps(result(key="stranger")))
    with pytest.raises(RecordError, match=r"stranger.*is not an episode of this run"):
        load_run(folder)


def test_a_folder_that_is_not_a_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RecordError, match="is empty"):
        load_run(tmp_path)


def test_a_folder_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RecordError, match="is not a folder"):
        load_run(tmp_path / "nowhere")


def test_only_the_latest_plan_is_read_and_earlier_results_are_counted(tmp_path: Path) -> None:
    records = [result(agent="old"), result(agent="older"), result(agent="new")]
    run = load_run(write_run(tmp_path / "r", records, earlier=2))
    assert [episode.agent for episode in run.results] == ["new"]
    assert (run.planned, run.n_earlier) == (1, 2)


@pytest.mark.parametrize(
    ("agent", "origin", "is_shipped"),
    [
        ("random", "pathnav 0.1.0", True),
        ("random", "pathnav_baselines.random_window", True),
        ("oracle", "pathnav.localise.oracle", True),
        ("random", "/home/u/mine.py", False),
        ("random", "pathnav.py", False),
        ("random", "pathnav 0.py", False),
        ("random", "pathnav-extras 0.1.0", False),
        ("mine", "pathnav 0.1.0", False),
    ],
)
def test_an_agent_is_pathnavs_own_by_name_and_origin(agent: str, origin: str, is_shipped: bool) -> None:
    assert EpisodeResult.model_validate(result(agent=agent, origin=origin)).is_shipped is is_shipped
