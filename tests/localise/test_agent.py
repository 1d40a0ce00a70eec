"""Windows that another agent proposes become part of the brief, and the row says that the region was surveyed."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from pathnav.errors import ConfigError, PathnavError, PluginError
from pathnav.localise.vlm import VlmAgent
from pathnav.model.profile import Frame, load_profile
from pathnav.run.replay import replay_episode
from support.chat_server import ChatServer, Request, call, failure
from support.commands import Bench
from support.episodes import ask, endpoint, events
from support.playing import ANSWER

PROPOSERS = '''
"""Agents that propose windows."""

from pathlib import Path

from pathnav.geometry import Box
from pathnav.localise import Proposal


class Corners:
    """Proposes three windows, and writes down that it was asked."""

    name = "corners"
    unbudgeted = True

    def run(self, environment):
        environment.report(self.propose(environment, 1)[0].box)

    def propose(self, environment, count):
        with (Path(__file__).parent / "asked").open("a") as file:
            file.write("x")
        environment.survey.tissue_mask()
        places = [(300, 310), (400, 410), (500, 510)]
        boxes = [Box(x, y, 64, 64) for x, y in places]
        return [Proposal(box, 0.9 - place / 10) for place, box in enumerate(boxes)]
'''

REPORT = call("finish_and_report", {**ANSWER, "bbox": [600, 600, 100, 100]})


def brief_of(request: Request) -> list[str]:
    """Return the lines of what the model is told first."""
    return [line for part in request.parts if part["type"] == "text" for line in part["text"].splitlines()]


@pytest.fixture
def proposers(tmp_path: Path) -> str:
    """Return the file of agents that propose."""
    path = tmp_path / "proposers.py"
    path.write_text(PROPOSERS)
    return str(path)


def test_the_brief_lists_the_windows_best_first(bench: Bench, proposers: str) -> None:
    with ChatServer([REPORT]) as server:
        options = {"hints": f"{proposers}:Corners", "hint_count": 2}
        result = ask(bench, "vlm", options=options, model=endpoint(server))
        lines = brief_of(server.requests[0])
    assert lines[-2:] == ["1. [300, 310, 64, 64]", "2. [400, 410, 64, 64]"]
    assert "level-0 px" in lines[-3]
    assert result["unbudgeted"] is True
    assert result["rois_used"] == 0
    (hints,) = [event for event in events(bench.folder / "out") if event["kind"] == "hints"]
    assert [one["score"] for one in hints["hints"]] == [0.9, 0.8]
    assert hints["agent"] == "corners"


def test_a_model_with_coordinates_of_its_own_reads_hints_in_them(bench: Bench, proposers: str) -> None:
    with ChatServer([REPORT]) as server:
        profile = load_profile("openai").model_copy(update={"frame": Frame.UNIT})
        model = replace(endpoint(server), profile=profile)
        ask(bench, "vlm", options={"hints": f"{proposers}:Corners"}, model=model)
        lines = brief_of(server.requests[0])
    numbers = [float(number) for number in lines[-1].partition("[")[2].rstrip("]").split(",")]
    assert all(0 <= number <= 1 for number in numbers)


def test_hints_are_found_once_for_an_episode_that_is_resumed(bench: Bench, proposers: str) -> None:
    options, asked = {"hints": f"{proposers}:Corners"}, Path(proposers).parent / "asked"
    with ChatServer([call("get_image_info", {}), failure(401, "no"), REPORT]) as server:
        first = ask(bench, "vlm", options=options, model=endpoint(server))
        second = ask(bench, "vlm", options=options, model=endpoint(server))
    assert (first["outcome"], second["outcome"]) == ("infra_error", "finished")
    assert asked.read_text() == "x"
    assert second["examined_mm2"] == first["examined_mm2"] > 0


def test_an_episode_with_hints_runs_again_to_the_same_record_and_other_hints_are_told(
    bench: Bench, proposers: str
) -> None:
    with ChatServer([REPORT]) as server:
        ask(bench, "vlm", options={"hints": f"{proposers}:Corners"}, model=endpoint(server))
    (episode,) = (bench.folder / "out" / "episodes").iterdir()
    for from_model in (False, True):
        assert replay_episode(episode, model_from_record=from_model).differences == ()
    Path(proposers).write_text(PROPOSERS.replace("(300, 310)", "(310, 310)"))
    found = replay_episode(episode, model_from_record=True)
    assert any("hints" in line for line in found.differences)


def test_other_hints_are_other_settings_and_none_survey_nothing(proposers: str) -> None:
    options = ({}, {"hints": f"{proposers}:Corners"}, {"hints": f"{proposers}:Corners", "hint_count": 1})
    agents = [VlmAgent(**one) for one in options]
    assert [agent.unbudgeted for agent in agents] == [False, True, True]
    assert len({json.dumps(agent.settings) + agent.prompt_hash for agent in agents}) == 3


@pytest.mark.parametrize(
    ("options", "error", "said"),
    [
        ({"hints": "random"}, ConfigError, "agent 'random' gives no hints: it has no method propose"),
        ({"hints": "nope"}, PluginError, "there is no agent named 'nope'"),
        ({"hints": 3}, ConfigError, r"hints must be an agent's name or {name: options}, got 3"),
        ({"hints": {"a": {}, "b": {}}}, ConfigError, "hints must be"),
        ({"hints": "clip"}, PathnavError, "architecture"),
        ({"hints": "clip", "hint_count": 0}, ConfigError, "hint_count must be a whole number from 1 to 10, got 0"),
        ({"hints": "clip", "hint_count": True}, ConfigError, "hint_count"),
    ],
)
def test_hints_that_cannot_be_given_are_refused_in_a_sentence(
    options: dict[str, object], error: type[Exception], said: str
) -> None:
    with pytest.raises(error, match=said):
        VlmAgent(**options)  # type: ignore[arg-type]
