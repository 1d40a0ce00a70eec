"""A recorded episode runs again to the same images, boxes and scores, and what was tampered with is told."""

import json
from typing import Any

import pytest

from pathnav.errors import ConfigError, PluginError, RecordError, SlideError
from pathnav.model import ChatSettings
from pathnav.model.profile import BoxForm, Frame, Profile
from pathnav.run.replay import replay_episode
from support.chat_server import ChatServer, call, failure, say
from support.commands import Bench, Command
from support.episodes import ask, endpoint
from support.replaying import EPISODES, LOOK, REPORT, changed, changed_result, episode, event, files, only, played
from support.trees import write_slide

BASELINES = ("random", "grid-centroid", "tissue-density", "tissue-weighted", "parent-centre", "oracle")
CHATTY = '''
"""An agent that talks to its model itself."""

import base64

from pathnav.geometry import Box


class Talks:
    name = "talker"
    uses_model = True

    def run(self, environment):
        view = environment.overview()
        url = "data:image/jpeg;base64," + base64.b64encode(view.jpeg).decode()
        seen = [{"type": "text", "text": "Where?"}, {"type": "image_url", "image_url": {"url": url}}]
        reply = environment.chat.ask([{"role": "user", "content": seen}])
        x = float(reply.text)
        environment.extract_roi(Box(x, 300, 200, 200), "said so")
        environment.report(Box(x, 300, 200, 200), "there", 0.5)
'''


@pytest.mark.parametrize("from_model", [False, True], ids=["tools", "model"])
@pytest.mark.parametrize("name", EPISODES)
def test_an_episode_of_a_model_runs_again_to_the_same_record(bench: Bench, name: str, from_model: bool) -> None:
    folder = played(bench, name)
    before = files(bench.folder)
    found = replay_episode(folder, model_from_record=from_model)
    assert found.differences == ()
    assert found.mode == ("model" if from_model else "tools")
    assert found.images >= 1
    assert files(bench.folder) == before


@pytest.mark.parametrize("from_model", [False, True], ids=["tools", "model"])
def test_coordinates_of_a_profile_are_those_of_the_record(bench: Bench, from_model: bool) -> None:
    profile = Profile(frame=Frame.THOUSAND_YX, box=BoxForm.XYXY)
    look = call("extract_roi", {"image": 0, "bbox": [100, 200, 400, 700], "reason": "dark"})
    report = call("finish_and_report", {"image": 1, "bbox": [0, 0, 900, 800], "conclusion": "m", "confidence": 1})
    with ChatServer([look, report]) as server:
        model = ChatSettings(base_url=server.base_url, model="canned", profile=profile)
        assert ask(bench, "vlm", model=model, options={"view_px": 256})["rois_used"] == 1
    assert replay_episode(episode(bench), model_from_record=from_model).differences == ()


@pytest.mark.parametrize("agent", BASELINES)
def test_a_baseline_runs_again_with_its_seed(bench: Bench, agent: str) -> None:
    ask(bench, agent, seed=5)
    found = replay_episode(episode(bench))
    assert (found.mode, found.differences) == ("agent", ())


def test_a_repetition_has_the_seed_of_its_own(bench: Bench, pathnav: Command) -> None:
    out = bench.folder / "out"
    assert pathnav("run", bench.scenario(1, agents=["random"], repeats=3), "--out", out).code == 0
    found = [replay_episode(folder) for folder in (out / "episodes").iterdir()]
    assert len(found) == 6
    assert all(one.is_equal for one in found)


def test_controls_are_applied_again(bench: Bench, pathnav: Command) -> None:
    out = bench.folder / "out"
    scenario = bench.scenario(1, agents=["vlm", bench.agent("Looker")], blank_images=True, jitter=0.25)
    assert pathnav("run", scenario, "--out", out).code == 0
    assert all(replay_episode(folder).is_equal for folder in (out / "episodes").iterdir())


@pytest.mark.parametrize("agent", ["Looker", "Whole", "Fails", "FailsLate", "Overspends"])
def test_a_users_agent_runs_again_also_to_its_failure(bench: Bench, agent: str) -> None:
    ask(bench, bench.agent(agent))
    assert replay_episode(episode(bench)).differences == ()


@pytest.mark.parametrize("from_model", [False, True], ids=["actions", "model"])
def test_an_agent_that_talks_itself_runs_again_in_its_last_take(bench: Bench, from_model: bool) -> None:
    (bench.folder / "talks.py").write_text(CHATTY)
    answers = [failure(400, "no"), say("250")]
    with ChatServer(answers) as server:
        for outcome in ("infra_error", "finished"):
            assert ask(bench, "talks.py:Talks", model=endpoint(server))["outcome"] == outcome
    found = replay_episode(episode(bench), model_from_record=from_model)
    assert (found.mode, found.differences) == ("model" if from_model else "actions", ())


@pytest.mark.parametrize("from_model", [False, True], ids=["tools", "model"])
def test_an_episode_that_was_continued_runs_again_as_one(bench: Bench, from_model: bool) -> None:
    for answers, outcome in (
        ([call("extract_roi", LOOK), failure(400, "no")], "infra_error"),
        ([call("finish_and_report", REPORT)], "finished"),
    ):
        with ChatServer(answers) as server:
            assert ask(bench, "vlm", model=endpoint(server))["outcome"] == outcome
    assert replay_episode(episode(bench), model_from_record=from_model).differences == ()


def test_the_best_box_of_the_same_finding_is_compared_where_the_record_knows_them(bench: Bench) -> None:
    folder = played(bench, "finished")
    changed_result(folder, equivalents=None)
    assert replay_episode(folder).not_compared[0].startswith("iou_any: the record lacks equivalents")
    changed_result(folder, equivalents=[[200, 200, 400, 400], [700, 500, 400, 400]])
    found = replay_episode(folder)
    assert (found.differences, found.not_compared) == ((), ())


def test_a_changed_box_is_told(bench: Bench) -> None:
    folder = played(bench, "finished")
    changed(folder, "roi:1", box=[150, 250, 300, 199])
    assert only(replay_episode(folder)) == "roi:1.box: recorded [150, 250, 300, 199], now [150, 250, 300, 200]"


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"scored_target": [0, 0, 100, 100]}, "result.scored_target"),
        ({"budget": 99}, "budget: 99"),
        ({"key": "0" * 20}, "query.key"),
    ],
)
def test_a_changed_question_is_told(bench: Bench, fields: dict[str, Any], told: str) -> None:
    folder = played(bench, "finished")
    changed_result(folder, **fields)
    assert any(line.startswith(told) for line in replay_episode(folder).differences)


def test_another_finding_in_the_result_is_told(bench: Bench) -> None:
    folder = played(bench, "finished")
    asked = json.loads((folder / "result.json").read_text())["query"]
    changed_result(folder, query={**asked, "finding": "zzz"})
    assert any(line.startswith("query.finding") for line in replay_episode(folder).differences)


def test_a_changed_score_is_told(bench: Bench) -> None:
    folder = played(bench, "finished")
    iou = json.loads((folder / "result.json").read_text())["iou"]
    changed_result(folder, iou=0.99)
    assert only(replay_episode(folder)) == f"result.iou: recorded 0.99, now {iou}"


def test_a_changed_answer_of_the_model_changes_what_follows(bench: Bench) -> None:
    folder = played(bench, "finished")
    reply = event(folder, "reply:3")
    arguments = reply["calls"][0]["arguments"].replace("[300, 300", "[310, 300")
    changed(folder, "reply:3", calls=[{**reply["calls"][0], "arguments": arguments}])
    said = "\n".join(replay_episode(folder, model_from_record=True).differences)
    assert "report.box: recorded [300, 300, 200, 200], now [310, 300, 200, 200]" in said
    assert "result.reported" in said
    assert "result.iou" in said


def test_another_prompt_is_told_by_the_digest_of_the_request(bench: Bench) -> None:
    folder = played(bench, "finished")
    changed(folder, "request:1", request_sha256="0" * 64)
    assert replay_episode(folder).is_equal
    assert only(replay_episode(folder, model_from_record=True)).startswith("request:1.request_sha256: recorded")


def test_a_request_too_many_is_told(bench: Bench) -> None:
    folder = played(bench, "finished")
    path = folder / "events.jsonl"
    kept = [line for line in path.read_text().splitlines() if json.loads(line)["id"] != "reply:3"]
    path.write_text("".join(line + "\n" for line in kept))
    said = replay_episode(folder, model_from_record=True).differences
    assert said[0].startswith("agent: fails now: request 3 was not made when the episode was recorded")


def test_another_code_of_an_agent_is_told(bench: Bench) -> None:
    ask(bench, bench.agent("Looker"))
    path = bench.folder / "agents.py"
    path.write_text(path.read_text().replace("the middle", "the center"))
    said = replay_episode(episode(bench)).differences
    assert said[0] == "agent: its code, version or settings are not those of the record"
    assert said[1] == 'roi:1.reason: recorded "the middle", now "the center"'


def test_an_agent_that_is_gone_cannot_be_replayed(bench: Bench) -> None:
    ask(bench, bench.agent("Looker"))
    (bench.folder / "agents.py").write_text("class Other: pass")
    with pytest.raises(PluginError, match="no class 'Looker'"):
        replay_episode(episode(bench))
    (bench.folder / "agents.py").unlink()
    with pytest.raises(RecordError, match=r"agents\.py cannot be read"):
        replay_episode(episode(bench))


def test_a_slide_that_moved_is_named_and_another_is_refused(bench: Bench) -> None:
    folder = played(bench, "finished")
    bench.slide.rename(bench.folder / "moved.tif")
    with pytest.raises(SlideError) as caught:
        replay_episode(folder)
    assert "--slide" in str(caught.value.remedy)
    assert replay_episode(folder, str(bench.folder / "moved.tif")).is_equal
    write_slide(bench.slide, 0.26)
    with pytest.raises(SlideError, match="its fingerprint differs"):
        replay_episode(folder)


def test_a_slide_is_read_with_the_scale_that_was_given(bench: Bench, pathnav: Command) -> None:
    out = bench.folder / "out"
    assert pathnav(*bench.words("--mpp", 0.5, "--out", out)).code == 0
    assert replay_episode(episode(bench)).is_equal


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"format": "pathnav-result-9"}, "has the format 'pathnav-result-9'; this version replays"),
        ({"outcome": "infra_error"}, "ended as infra_error, which is no answer"),
        ({"query": {}}, "does not tell what was asked"),
        ({"slide": {}}, r"lacks slide\.path"),
    ],
)
def test_a_record_that_cannot_be_replayed_says_why(bench: Bench, fields: dict[str, Any], reason: str) -> None:
    folder = played(bench, "finished")
    changed_result(folder, **fields)
    with pytest.raises(RecordError, match=reason):
        replay_episode(folder)


def test_what_is_no_episode_is_refused(bench: Bench) -> None:
    folder = played(bench, "finished")
    with pytest.raises(RecordError, match="name one of its episodes"):
        replay_episode(bench.folder / "out")
    with pytest.raises(RecordError, match="is not a folder"):
        replay_episode(folder / "none")
    (folder / "result.json").unlink()
    with pytest.raises(RecordError, match="not finished"):
        replay_episode(folder)


def test_replies_can_only_be_taken_where_there_are_some(bench: Bench) -> None:
    ask(bench, "random")
    with pytest.raises(ConfigError, match="asked no model"):
        replay_episode(episode(bench), model_from_record=True)
