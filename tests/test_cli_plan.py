"""`pathnav plan`: what is told before anything is spent, and that nothing is."""

from pathlib import Path

import pytest
import yaml

from support.chat_server import ChatServer, call
from support.commands import Bench, Command

REPORT = {"conclusion": "here", "bbox": [600, 600, 100, 100], "confidence": 0.7}
ENDPOINT = ("--model", "gpt-4.1", "--base-url", "http://127.0.0.1:9/v1")


def explored(bench: Bench) -> Path:
    """Write a scenario of both modes over one slide."""
    document = yaml.safe_load(bench.scenario(slides=1, agents=["vlm", "random"]).read_text())
    document["cohort"]["slides"][0]["tumour_free"] = True
    document["explore"] = {"scorers": ["vlm", "random"], "schedule": {"sweep": [[1, 1, 1], [3, 3, 3]]}, "tile_px": 64}
    path = bench.folder / "both.yaml"
    path.write_text(yaml.safe_dump(document))
    return path


def test_a_plan_asks_nobody_and_writes_nothing(pathnav: Command, bench: Bench) -> None:
    scenario = explored(bench)
    before = bench.files()
    with ChatServer([]) as server:
        endpoint = ("--model", "m", "--base-url", server.base_url)
        assert pathnav("plan", scenario, *endpoint, "--out", "kept").code == 0
        assert server.requests == []
    assert bench.files() == before


def test_a_plan_needs_no_key(pathnav: Command, bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_SUCH_KEY", raising=False)
    scenario = bench.scenario(slides=1, agents=["vlm"])
    assert pathnav("plan", scenario, *ENDPOINT, "--set", "model.api_key_env=NO_SUCH_KEY").code == 0


def test_a_plan_in_json_has_the_keys_of_its_format(pathnav: Command, bench: Bench) -> None:
    found = pathnav.json("plan", explored(bench), *ENDPOINT)
    assert list(found) == [
        *("format", "pathnav", "name", "out", "prices_date", "axes", "combinations", "rows", "planned", "done"),
        *("left", "at_most", "warnings"),
    ]
    assert (found["format"], found["planned"], found["done"], found["left"]) == ("pathnav-plan-1", 8, 0, 8)
    assert found["axes"] == [{"name": "explore.schedule", "values": [[1, 1, 1], [3, 3, 3]], "combines": False}]
    assert found["combinations"] == [{"settings": {}, "results": 8, "shared": 0}]
    assert [(row["mode"], row["name"], row["model"], row["planned"]) for row in found["rows"]] == [
        ("localise", "vlm", "gpt-4.1", 2),
        ("localise", "random", None, 2),
        ("explore", "vlm", "gpt-4.1", 2),
        ("explore", "random", None, 2),
    ]
    assert list(found["at_most"]) == ["rois", "tiles", "calls", "tokens", "cost_usd", "unknown"]
    assert found["at_most"]["cost_usd"] > 0
    assert found["at_most"]["cost_usd"] == pytest.approx(sum(row["cost_usd"] for row in found["rows"]))
    assert found["rows"][0]["conversation"]["longest"] > found["rows"][0]["conversation"]["short"] > 0
    assert found["rows"][1]["conversation"] is None


def test_every_combination_is_told_with_what_it_adds(pathnav: Command, bench: Bench) -> None:
    sets = ("--set", "localise.jitter={sweep: [0, 0.25]}", "--set", "decoding.temperature={sweep: [0, 1]}")
    scenario = bench.scenario(
        slides=1, agents=["vlm", "random"], magnifications=[40], budget={"sweep": ["tight", "base"]}
    )
    found = pathnav.json("plan", scenario, *ENDPOINT, *sets)
    assert [(one["name"], one["combines"]) for one in found["axes"]] == [
        ("decoding.temperature", True),
        ("localise.jitter", True),
        ("localise.budget", False),
    ]
    told = [(one["settings"], one["results"], one["shared"]) for one in found["combinations"]]
    assert told == [
        ({"decoding.temperature": 0, "localise.jitter": 0}, 8, 0),
        ({"decoding.temperature": 0, "localise.jitter": 0.25}, 8, 0),
        ({"decoding.temperature": 1, "localise.jitter": 0}, 4, 4),
        ({"decoding.temperature": 1, "localise.jitter": 0.25}, 4, 4),
    ]
    said = pathnav("plan", scenario, *ENDPOINT, *sets)
    assert "sweep localise.jitter: 0.0, 0.25" in said.out
    assert "sweep localise.budget: [5, 3, 2], [10, 7, 5] (within each combination)" in said.out
    assert "3 of 4: decoding.temperature=1.0, localise.jitter=0.0; 4 more are shared with those above" in said.out


def test_what_is_done_is_not_counted_again(pathnav: Command, bench: Bench) -> None:
    scenario = bench.scenario(slides=1, agents=["vlm", "random"])
    with ChatServer(lambda request: call("finish_and_report", REPORT)) as server:
        endpoint = ("--model", "m", "--base-url", server.base_url, "--out", "kept")
        assert pathnav("run", scenario, *endpoint).code == 0
    found = pathnav.json("plan", scenario, *endpoint)
    assert (found["planned"], found["done"], found["left"]) == (4, 4, 0)
    nothing = {"rois": 0, "tiles": 0, "calls": 0, "tokens": {"input": 0, "output": 0}, "cost_usd": 0.0, "unknown": []}
    assert found["at_most"] == nothing
    more = pathnav.json("plan", scenario, *endpoint, "--set", "localise.budget={sweep: [base, tight]}")
    assert (more["planned"], more["done"]) == (8, 4)


def test_prices_of_ones_own_take_the_place_of_pathnavs(pathnav: Command, bench: Bench) -> None:
    scenario = bench.scenario(slides=1, agents=["vlm"])
    own = bench.folder / "prices.yaml"
    own.write_text("format: pathnav-prices-1\ndate: 2026-09-01\nmodels: {mine: {input: 1, output: 0}}\n")
    mine = ("--model", "mine", *ENDPOINT[2:])
    unknown = pathnav.json("plan", scenario, *mine)
    assert (unknown["at_most"]["cost_usd"], unknown["at_most"]["unknown"]) == (None, ["no price for mine"])
    found = pathnav.json("plan", scenario, *mine, "--prices", "prices.yaml")
    assert found["prices_date"] == "2026-09-01"
    assert found["at_most"]["cost_usd"] == pytest.approx(found["at_most"]["tokens"]["input"] / 1e6)
    assert "cost:    unknown (no price for mine)" in pathnav("plan", scenario, *mine).out


def test_a_conversation_longer_than_the_context_is_warned_of(pathnav: Command, bench: Bench) -> None:
    (bench.folder / "small.yaml").write_text("format: pathnav-profile-1\nname: small\ncontext_tokens: 8192\n")
    scenario = bench.scenario(slides=1, agents=["vlm"], budget=[20, 20, 20])
    said = pathnav("plan", scenario, *ENDPOINT, "--profile", "small.yaml")
    (warning,) = [line for line in said.out.splitlines() if line.startswith("warning: ")]
    assert "the context of gpt-4.1 holds 8,192 tokens" in warning
    assert "it will overflow" in warning
    assert "warning" not in pathnav("plan", scenario, *ENDPOINT).out


def test_two_agents_of_one_name_are_told_apart(pathnav: Command, bench: Bench) -> None:
    scenario = bench.scenario(slides=1, agents=[{"vlm": {"guides": True}}, {"vlm": {"guides": False}}, "random"])
    names = [row["name"] for row in pathnav.json("plan", scenario, *ENDPOINT)["rows"]]
    assert names == ["vlm(guides=True)", "vlm(guides=False)", "random"]


def test_the_text_is_a_table_with_its_sums(pathnav: Command, bench: Bench) -> None:
    lines = pathnav("plan", explored(bench), *ENDPOINT).out.splitlines()
    assert lines[0] == "both: 8 results, 0 done in runs/both"
    assert lines[3].split() == [
        *("mode", "name", "model", "planned", "done", "ROIs", "tiles", "calls"),
        *("tokens", "in", "tokens", "out", "USD"),
    ]
    widths = {len(line) for line in lines[3:8]}
    assert len(widths) == 1
    assert lines[-3].startswith("at most: ")
    assert lines[-2].startswith("cost:    ") and lines[-2].endswith(" USD at the prices of 2026-03-31")
    assert lines[-1].startswith("longest conversation: ")
