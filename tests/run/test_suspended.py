"""A process that was suspended keeps its hold on a record: the others leave that episode and run the rest."""

import threading

import pytest

from pathnav.run.record import EventLog
from support.commands import Bench, Command
from support.runs import results


def test_an_episode_whose_record_a_suspended_process_holds_is_left_and_the_rest_is_run(
    pathnav: Command, bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    scenario, out = bench.scenario(agents=["parent-centre", "random"]), bench.folder / "kept"
    assert pathnav("run", scenario, "--out", out).code == 0
    whole = results(out)
    episodes = sorted(path.parent for path in out.glob("episodes/*/result.json"))
    for place in episodes[:3]:
        (place / "result.json").unlink()
    with EventLog(episodes[0] / "events.jsonl"), EventLog(episodes[1] / "events.jsonl"):
        said = pathnav("run", scenario, "--out", out, "--workers", 2)
    assert said.code == 0, said
    assert caplog.text.count("is in use by another run: left to it for now; the rest goes on") == 1
    assert said.sentences[-1] == "pathnav: 2 episodes are left to other processes, which are running them now"
    assert len(results(out)) == len(whole) - 2
    assert pathnav("run", scenario, "--out", out).code == 0
    assert results(out) == whole


def test_a_record_that_is_given_free_meanwhile_is_run_after_all(pathnav: Command, bench: Bench) -> None:
    scenario, out = bench.scenario(agents=["parent-centre", bench.agent("Waits")]), bench.folder / "kept"
    assert pathnav("run", scenario, "--out", out).code == 0
    whole = results(out)
    for path in out.glob("episodes/*/result.json"):
        path.unlink()
    held = EventLog(min(out.glob("episodes/*/events.jsonl")))
    giving = threading.Timer(0.3, held.close)
    giving.start()
    assert pathnav("run", scenario, "--out", out, "--workers", 2).code == 0
    giving.join()
    assert results(out) == whole
