"""How an episode ends, whatever happens in it, and what its record says."""

import json

import pytest

from pathnav.localise.environment import Environment
from support.chat_server import ChatServer, call, failure
from support.commands import Bench
from support.episodes import ask, endpoint, events, stored

REPORT = {"conclusion": "here", "bbox": [600, 600, 100, 100], "confidence": 0.7}


def test_a_users_agent_looks_reports_and_is_scored(bench: Bench) -> None:
    result = ask(bench, bench.agent("Looker"))
    assert result["format"] == "pathnav-result-1"
    assert (result["outcome"], result["reason"]) == ("finished", None)
    assert (result["agent"], result["version"], result["model"]) == ("Looker", "0", None)
    assert result["reported"] == [668, 568, 64, 64]
    assert result["box"] == [500, 400, 400, 400]
    assert result["target"] == [200, 200, 400, 400]
    assert result["iou"] == pytest.approx(100 * 200 / (2 * 160_000 - 100 * 200))
    assert (result["conclusion"], result["confidence"]) == ("there", 0.5)
    assert (result["rois"], result["rois_used"], result["budget"]) == ([[668, 568, 64, 64]], 1, 7)
    assert result["examined_mm2"] == pytest.approx((64 * 0.25e-3) ** 2)
    assert (result["tokens"], result["cost_usd"], result["pixels_sent"]) == (None, None, None)
    assert result["query"]["id"] == "a1"
    assert result["slide"]["path"] == str(bench.slide)


def test_the_oracle_is_told_the_target_and_scores_one(bench: Bench) -> None:
    assert ask(bench, "oracle")["iou"] == 1.0


def test_a_plug_in_that_calls_itself_oracle_is_told_nothing(bench: Bench) -> None:
    result = ask(bench, bench.agent("Oracle"))
    assert result["agent"] == "oracle"
    assert result["conclusion"] == "None"
    assert result["iou"] < 1


def test_a_plug_in_that_inherits_from_the_oracle_is_told_nothing(bench: Bench) -> None:
    from pathnav.localise.agent import Oracle

    class Sly(Oracle):
        """Inherit."""

    result = ask(bench, Sly)
    assert (result["outcome"], result["box"]) == ("no_report", None)


@pytest.mark.parametrize(
    ("agent", "outcome", "reason"),
    [
        ("Fails", "no_report", "ZeroDivisionError: no tissue"),
        ("FailsLate", "finished", "ZeroDivisionError: too late"),
        ("Overspends", "no_report", "all 7 ROIs are used"),
        ("Quits", "no_report", "SystemExit: 3"),
    ],
)
def test_what_goes_wrong_in_a_users_agent_is_its_own_failure(
    bench: Bench, agent: str, outcome: str, reason: str
) -> None:
    result = ask(bench, bench.agent(agent))
    assert result["outcome"] == outcome
    assert reason in result["reason"]
    assert result["iou"] == 0 if outcome == "no_report" else result["iou"] > 0
    errors = [event for event in events(bench.folder / "out") if event["kind"] == "error"]
    assert "Traceback" in errors[0]["traceback"]


def test_the_failure_of_a_users_agent_is_not_tried_again(bench: Bench) -> None:
    ask(bench, bench.agent("Fails"))
    before = events(bench.folder / "out")
    ask(bench, bench.agent("Fails"))
    assert events(bench.folder / "out") == before


def test_an_endpoint_that_fails_for_good_is_not_scored_and_is_tried_again(bench: Bench) -> None:
    with ChatServer([failure(402, "no money")]) as server:
        lost = ask(bench, "vlm", model=endpoint(server))
    assert lost["outcome"] == "infra_error"
    assert "402" in lost["reason"]
    assert (lost["iou"], lost["iou_fallback"], lost["box"]) == (None, None, None)
    with ChatServer([call("finish_and_report", REPORT)]) as server:
        found = ask(bench, "vlm", model=endpoint(server))
    assert (found["outcome"], found["key"]) == ("finished", lost["key"])
    assert found["tokens"] == {"input": 11, "output": 7}
    assert found["pixels_sent"] > 0
    kinds = [event["kind"] for event in events(bench.folder / "out")]
    assert kinds.count("start") == 2
    assert kinds.count("outcome") == 2


def test_an_episode_goes_on_where_the_endpoint_failed(bench: Bench) -> None:
    look = {"x": 200, "y": 200, "w": 300, "h": 300, "reason": "dense"}
    with ChatServer([call("extract_roi", look), failure(401, "expired")]) as server:
        lost = ask(bench, "vlm", model=endpoint(server))
    assert (lost["outcome"], lost["rois_used"]) == ("infra_error", 1)
    with ChatServer([call("finish_and_report", REPORT)]) as server:
        found = ask(bench, "vlm", model=endpoint(server))
        assert len(server.requests) == 1
    assert (found["outcome"], found["rois_used"], found["steps"]) == ("finished", 1, 2)


def test_a_server_that_gives_no_usage_leaves_tokens_unknown(bench: Bench) -> None:
    with ChatServer([call("finish_and_report", REPORT, usage=None)]) as server:
        result = ask(bench, "vlm", model=endpoint(server))
    assert (result["tokens"], result["calls"]) == (None, 1)


def test_ctrl_c_is_recorded_and_the_next_run_goes_on(bench: Bench) -> None:
    class Interrupted:
        """Be interrupted the first time."""

        times = 0

        def run(self, environment: Environment) -> None:
            """Look, and report unless it is the first time."""
            type(self).times += 1
            environment.extract_roi(environment.query.region)
            if self.times == 1:
                raise KeyboardInterrupt
            environment.report(environment.query.region)

    with pytest.raises(KeyboardInterrupt):
        ask(bench, Interrupted)
    first = stored(bench.folder / "out")
    assert (first["outcome"], first["iou"], first["rois_used"]) == ("interrupted", None, 1)
    second = ask(bench, Interrupted)
    assert (second["outcome"], second["rois_used"]) == ("finished", 1)
    takes = {event["id"]: event["take"] for event in events(bench.folder / "out") if event["kind"] == "roi"}
    assert takes == {"roi:1": 1, "take2:roi:1": 2}


def test_an_episode_leaves_its_events_and_its_result_alone(bench: Bench) -> None:
    ask(bench, "vlm")
    (episode,) = (bench.folder / "out" / "episodes").iterdir()
    assert {path.name for path in episode.iterdir()} == {"events.jsonl", "result.json"}


def test_the_target_stands_in_no_event(bench: Bench) -> None:
    ask(bench, "vlm")
    text = json.dumps([event for event in events(bench.folder / "out") if event["kind"] != "report"])
    assert "target_box" not in text
    assert '"target"' not in text
    assert "[200, 200, 400, 400]" not in text


def test_seconds_add_up_over_attempts_without_the_time_between() -> None:
    from pathnav.run.ledger import seconds_before

    def event(kind: str, second: int) -> dict[str, str]:
        return {"kind": kind, "time": f"2026-01-01T00:00:{second:02d}+00:00"}

    log = [event("start", 0), event("roi", 4), event("start", 20), event("roi", 21), event("start", 40)]
    assert seconds_before(log) == 5
    assert seconds_before([]) == 0


DAMAGING = """
from pathnav.geometry import Box


class Agent:
    def run(self, environment):
        environment.extract_roi(Box.centred(environment.query.region.centre, 64, 64))
        {damage}
        environment.report(environment.query.region)
"""


@pytest.mark.parametrize(
    "damage",
    [
        "environment._rois = None",
        "environment._report = 7; return",
        "environment._slide = None",
        "environment.__dict__.clear(); return",
        "environment._survey = 3",
    ],
)
def test_an_agent_that_damages_its_environment_fails_by_itself(bench: Bench, damage: str) -> None:
    path = bench.folder / "damaging.py"
    path.write_text(DAMAGING.replace("{damage}", damage), encoding="utf-8")
    result = ask(bench, f"{path}:Agent")
    assert (result["outcome"], result["box"], result["iou"]) == ("no_report", None, 0.0)
    assert "damaged its environment" in result["reason"]
    assert (result["rois_used"], result["rois"]) == (1, [[668, 568, 64, 64]])
