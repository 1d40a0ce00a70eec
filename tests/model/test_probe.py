"""The doctor finds out what a server of each kind can do, over real sockets, and says so."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

from pathnav.model import load_profile
from pathnav.model.probe_answers import probe_limit, probe_logprobs, probe_reasoning, probe_seed, probe_system
from pathnav.model.probe_context import probe_context
from pathnav.model.probe_finding import Result
from pathnav.model.probe_pictures import number_picture
from pathnav.model.probe_profile import profile_text
from pathnav.model.probe_tools import probe_tools
from pathnav.model.profile import Profile, shipped_profiles
from support.model_kinds import Kind
from support.probing import examined, finding, probed, results
from support.source import ROOT


def test_a_model_that_can_do_everything_keeps_the_defaults() -> None:
    models = {"data": [{"id": "any", "max_model_len": 131072}]}
    found = examined(Kind(), models)
    assert results(found) == {
        "token_limit": "yes",
        "usage": "yes",
        "system_role": "yes",
        "seed": "yes",
        "reasoning": "no",
        "logprobs": "yes",
        "tools": "yes",
        "parallel_calls": "yes",
        "later_calls": "yes",
        "tool_choice": "yes",
        "text_protocol": "yes",
        "sight": "yes",
        "placement": "yes",
        "images_per_request": "yes",
        "frame": "yes",
        "context": "yes",
        "steadiness": "yes",
    }
    assert found.usable
    assert found.verdict == "it can be run, with its own tool calls"
    assert found.chart.undecided == {}
    assert found.profile.key_fields == {}
    assert found.profile.context_tokens == 131072
    assert found.profile.pixels_per_token == pytest.approx(1000, rel=0.05)
    assert found.chart.line.calls <= 37


def test_the_record_holds_what_was_asked_shown_and_answered() -> None:
    found = examined(Kind())
    document = found.as_dict()
    assert (document["format"], document["subject"], document["seed"]) == ("pathnav-doctor-1", "endpoint", 3)
    sight = next(entry for entry in document["evidence"] if entry["probe"] == "sight")
    first = number_picture(np.random.default_rng(3), 5)
    assert (sight["truth"], sight["pictures"]) == (first.number, [first.sha256])
    assert first.number in sight["text"]
    assert document["calls"] == len(document["evidence"]) + 1  # GET /v1/models has no question


@pytest.mark.parametrize(
    ("tools", "result", "said"),
    [
        ("ignored", Result.NO, "does not call a tool"),
        ("in_text", Result.PARTLY, "writes its call into the text"),
        ("broken", Result.PARTLY, "no JSON object"),
    ],
)
def test_tool_calls_that_cannot_be_used_lead_to_the_text_protocol(tools, result, said) -> None:
    chart = probed(Kind(tools=tools), probe_tools)
    assert finding(chart, "tools").result is result
    assert said in finding(chart, "tools").seen
    assert (chart.acts, chart.profile.tools) == ("text", "text")


def test_what_makes_the_model_call_is_found() -> None:
    for heeds, choice in ((("required",), "required"), ((), "auto"), (("named",), "named")):
        chart = probed(Kind(heeds=heeds, parallel=False), probe_tools)
        assert chart.profile.tool_choice == choice
        assert finding(chart, "parallel_calls").facts == {"calls": 1}


def test_structured_answers_hold_a_model_to_actions_that_it_would_not_write() -> None:
    chart = probed(Kind(tools="ignored", text_protocol=False), probe_tools)
    assert (chart.acts, chart.profile.structured_output) == ("text", "json_schema")
    chart = probed(Kind(tools="ignored", structured=("json_object",)), probe_tools)
    assert chart.profile.structured_output == "json_object"
    chart = probed(Kind(tools="ignored", text_protocol=False, structured=(), refuses=("response_format",)), probe_tools)
    assert (chart.acts, chart.profile.tools) == (None, "native")
    assert "tools" in chart.undecided


@pytest.mark.parametrize(
    ("logprobs", "result", "asked", "alternatives"),
    [(20, Result.YES, True, 20), (5, Result.YES, True, 5), (2, Result.PARTLY, True, 2), (0, Result.NO, False, 0),
     ("none", Result.NO, False, 0), ("refused", Result.NO, False, 0)],
)  # fmt: skip
def test_log_probabilities_are_counted(logprobs, result, asked, alternatives) -> None:
    chart = probed(Kind(logprobs=logprobs), probe_logprobs)
    assert finding(chart, "logprobs").result is result
    assert finding(chart, "logprobs").facts["alternatives"] == alternatives
    assert chart.profile.logprobs is asked


@pytest.mark.parametrize(
    ("kind", "field", "result"),
    [
        (Kind(fields=("max_tokens",)), "max_tokens", Result.YES),
        (Kind(refuses=("max_completion_tokens",)), "max_tokens", Result.YES),
        (Kind(fields=(), refuses=("max_completion_tokens",)), "max_tokens", Result.NO),
        (Kind(refuses=("max_tokens",)), "max_completion_tokens", Result.YES),
    ],
)
def test_the_field_that_limits_answers_is_found_and_used_from_then_on(kind, field, result) -> None:
    chart = probed(kind, probe_limit, probe_seed)
    assert finding(chart, "token_limit").result is result
    assert chart.profile.token_field == field
    assert finding(chart, "seed").result is Result.YES


def test_seed_system_usage_and_reasoning_are_told() -> None:
    kind = Kind(refuses=("seed",), system="refused", usage=False, thinks="thought")
    chart = probed(kind, probe_limit, probe_seed, probe_system, probe_reasoning)
    assert results(chart) == {
        "token_limit": "yes",
        "usage": "no",
        "seed": "no",
        "system_role": "no",
        "reasoning": "yes",
    }
    assert chart.profile.sends_seed is False
    assert chart.profile.reasoning_tags == ("think", "thought")


@pytest.mark.parametrize(
    ("entry", "context", "result"),
    [
        ({"id": "any", "max_model_len": 8192}, 8192, Result.NO),
        ({"id": "any", "context_length": 200_000}, 200_000, Result.YES),
        ({"id": "a/file.gguf", "meta": {"n_ctx": 4096, "n_ctx_train": 8192}}, 4096, Result.NO),
        ({"id": "any", "max_model_len": "long"}, None, Result.UNDECIDED),
    ],
)
def test_an_episode_that_overflows_the_context_is_told_beforehand(entry, context, result) -> None:
    chart = probed(Kind(), probe_context, models={"object": "list", "data": [entry]})
    assert finding(chart, "context").result is result
    assert chart.profile.context_tokens == context
    if context == 8192:
        assert "images_live" in finding(chart, "context").change


@pytest.mark.parametrize("models", [None, {"data": "x"}, {"data": [1, {"id": "b"}, {"id": "c", "max_model_len": 1}]}])
def test_a_server_without_a_usable_list_of_models_has_an_unknown_context(models) -> None:
    assert finding(probed(Kind(), probe_context, models=models), "context").result is Result.UNDECIDED


def test_the_written_profile_loads_and_says_where_it_comes_from(tmp_path) -> None:
    found = examined(Kind(frame="percent", tool_images="refused", user_after_tool="refused", most_images=2))
    path = tmp_path / "p.yaml"
    path.write_text(profile_text(found))
    assert load_profile(str(path)) == found.profile
    head = [line for line in path.read_text().splitlines() if line.startswith("#")]
    assert head[0].startswith("# Written by pathnav") and "2026-11-30" in head[0]
    assert "# model: any" in head
    assert any(line.startswith("# undecided, and left at level0: frame (") for line in head)
    assert (found.profile.placement, found.profile.images_per_request) == ("bridge", 2)


def test_the_page_names_every_check_and_every_field_of_the_document() -> None:
    page = (ROOT / "docs" / "doctor.md").read_text(encoding="utf-8")
    found = examined(Kind(tools="refused"))
    assert {name for name in results(found) if f"| `{name}` |" not in page} == set()
    document = found.as_dict()
    shown = json.loads(re.findall(r"^```json\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)[0])
    assert set(shown) == set(document)
    assert set(shown["findings"][0]) == set(document["findings"][0])
    assert set(shown["evidence"][0]) == set(document["evidence"][0])


def test_the_page_of_profiles_names_every_field_and_its_example_loads(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "profiles.md").read_text(encoding="utf-8")
    assert {
        name for name in Profile.model_fields if name not in ("format", "name") and f"| `{name}` |" not in page
    } == set()
    path = tmp_path / "whole.yaml"
    path.write_text(re.findall(r"^```yaml\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)[0])
    assert load_profile(str(path)).model_fields_set == set(Profile.model_fields)
    assert {name for name in shipped_profiles() if f"| `{name}` |" not in page} == set()
