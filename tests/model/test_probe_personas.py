"""The doctor before the stub: each persona is found out, and what is written down works."""

from functools import cache

import pytest

from pathnav.model import STUB_MODEL, ChatSettings, StubServer
from pathnav.model.probe import Examination, examine
from pathnav.model.stub_persona import Persona
from pathnav.model.stub_persona_failures import Flaky, Slow
from support.probing import finding, results

ALL_BUT = {"reasoning": "no", "context": "undecided"}  # what is not `yes` with the plain stub


@cache
def found(name: str) -> Examination:
    """Return what the doctor finds about a persona."""
    made: dict[str, Persona | str] = {"flaky": Flaky(stall_s=0.01), "slow": Slow(delay_s=0.05)}
    with StubServer(persona=made.get(name, name)) as server:
        settings = ChatSettings(base_url=server.base_url, model=STUB_MODEL)
        return examine(settings, sleep=lambda seconds: None)


def test_the_plain_stub_sees_acts_and_keeps_the_default_profile() -> None:
    plain = found("plain")
    assert {name: result for name, result in results(plain).items() if result != "yes"} == ALL_BUT
    assert plain.usable and plain.verdict.startswith("it can be run, with its own tool calls")
    assert plain.profile.key_fields == {}
    assert plain.profile.pixels_per_token == pytest.approx(28 * 28, rel=0.03)


@pytest.mark.parametrize(
    ("persona", "probe", "result", "seen"),
    [
        ("strict", "placement", "partly", "tool: refused (answered HTTP 400 Bad Request: 'messages[2]' with role"),
        ("silent-drop", "placement", "partly", "tool: not seen"),
        ("mistral-order", "placement", "partly", "user_after_tools: refused"),
        ("no-logprobs", "logprobs", "no", "'logprobs' and 'top_logprobs' are not supported"),
        ("no-usage", "usage", "no", "answers do not say what they cost"),
        ("flaky", "steadiness", "partly", "requests failed in a way that may pass: it answered HTTP"),
        ("html-error", "steadiness", "partly", "HTTP 502 Bad Gateway"),
        ("truncated-json", "later_calls", "partly", "its arguments were cut off (its tokens were used up)"),
        ("text-only", "tools", "no", "it does not call a tool when told to"),
        ("garrulous", "sight", "no", "What a fascinating section"),
    ],
)
def test_a_persona_is_found_out_by_its_quirk(persona: str, probe: str, result: str, seen: str) -> None:
    one = finding(found(persona), probe)
    assert one.result == result and seen in one.seen
    if persona not in ("text-only", "garrulous"):
        others = {name: result for name, result in results(found(persona)).items() if name != probe}
        assert {name: result for name, result in others.items() if result != "yes"} == ALL_BUT


@pytest.mark.parametrize(
    ("persona", "fields"),
    [
        ("strict", {}),
        ("silent-drop", {}),
        ("mistral-order", {"placement": "bridge"}),
        ("no-logprobs", {"logprobs": False}),
        ("flaky", {}),
        ("text-only", {"tools": "text", "tool_choice": "auto"}),
    ],
)
def test_the_profile_holds_what_the_persona_needs_and_nothing_else(persona: str, fields: dict[str, object]) -> None:
    assert found(persona).usable
    kept = {name: value for name, value in found(persona).profile.key_fields.items() if name != "text_protocol"}
    assert kept == fields


def test_how_long_answers_take_is_told() -> None:
    facts = finding(found("slow"), "steadiness").facts
    assert facts["median_s"] >= 0.05 and facts["failed"] == {}


@pytest.mark.parametrize("seed", range(7))
def test_calls_that_are_cut_off_are_calls_with_every_seed(seed: int) -> None:
    with StubServer(persona="truncated-json", seed=seed) as server:
        settings = ChatSettings(base_url=server.base_url, model=STUB_MODEL)
        one = examine(settings, sleep=lambda seconds: None)
    assert one.usable and one.verdict.startswith("it can be run, with its own tool calls")
    assert one.profile.key_fields == {}
    cut = [finding.probe for finding in one.findings if "cut off (its tokens were used up)" in finding.seen]
    assert cut == (["later_calls"], ["tools", "text_protocol"], [])[seed % 3]
