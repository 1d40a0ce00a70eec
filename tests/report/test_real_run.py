"""Records that `pathnav.run` writes are the records that a report reads."""

from pathlib import Path

import pytest

from pathnav.cohort.query import Query, Target
from pathnav.geometry import Box
from pathnav.report import draw_episode, make_report
from pathnav.report.render import render
from pathnav.run.agent_choice import AgentChoice
from pathnav.run.case import Case, SlideFacts, SlideSource
from pathnav.run.description import describe_run
from pathnav.run.episode import EpisodeJob
from pathnav.run.folder import RunFolder
from pathnav.run.open_slides import OpenSlides
from pathnav.run.plan import episodes
from pathnav.run.runner import run_plan
from support.blot_slide import write_blot_slide

AGENTS = ("random", "grid-centroid", "tissue-density", "tissue-weighted", "parent-centre", "oracle")


@pytest.fixture(scope="module")
def run_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All baselines on one slide whose only tissue is the target."""
    place = tmp_path_factory.mktemp("real")
    target = Box(900, 700, 300, 300)
    source = SlideSource(str(write_blot_slide(place / "s.tif", 2000, 1500, [target])), mpp=0.5)
    folder = RunFolder(place / "run")
    with OpenSlides() as slides:
        slide = slides.get(source)
        query = Query("slide-3fa9c1", 10, "the blot", slide.bounds, 300, 300, 7)
        case = Case(source, SlideFacts.of(slide), query, Target(target, (target,)), query_id="n1")
        plan = episodes([case], [AgentChoice.of(name) for name in AGENTS], seed=7)
        described = describe_run("real", {}, seed=7, episodes=[episode.key for episode in plan], started="now")
        run_plan([EpisodeJob(episode) for episode in plan], folder, described, slides)
    return folder.path


def test_every_baseline_has_its_row(run_folder: Path) -> None:
    report = make_report(run_folder)
    assert [row.group.agent for row in report.rows] == list(AGENTS)
    miou = {row.group.agent: row.cells["miou"].value for row in report.rows}
    assert miou["oracle"] == 1.0 and miou["tissue-density"] == pytest.approx(1.0, abs=0.1)
    assert miou["random"] is not None and 0 < miou["random"] < 0.1


def test_draws_are_reported_as_expectations(run_folder: Path) -> None:
    report = make_report(run_folder)
    hits = {row.group.agent: row.cells["iou_at_0.3"].value for row in report.rows}
    assert hits["random"] is not None and 0 < hits["random"] < 0.2
    assert "Agents that declare a distribution of boxes" in render(report)


def test_every_episode_can_be_drawn(run_folder: Path) -> None:
    for path in (run_folder / "episodes").iterdir():
        assert max(draw_episode(run_folder, path.name, max_side_px=400).size) <= 400


def test_the_harness_s_agents_are_known_as_pathnavs_own(run_folder: Path) -> None:
    report = make_report(run_folder)
    assert all(row.group.is_shipped and len(row.group.configuration) == 20 for row in report.rows)
