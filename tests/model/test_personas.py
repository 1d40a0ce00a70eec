"""What each persona of the stub does with one request."""

import json
import re
import threading
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pathnav.errors import ConfigError
from pathnav.model import STUB_MODEL, ChatClient, ChatSettings, StubServer, image_part, text_part
from pathnav.model.json_action import parse_actions
from pathnav.model.stub_persona import Persona, Served
from pathnav.model.stub_persona_failures import Flaky, HtmlError, Slow
from pathnav.model.stub_persona_habits import Garrulous, Overbudget, TextOnly, TruncatedJson
from pathnav.model.stub_persona_rules import MistralOrder, NoLogprobs, SilentDrop, Strict
from pathnav.model.stub_personas import PERSONAS, persona_named
from pathnav.model.stub_rules import BadRequest
from pathnav.model.text_tools import text_messages
from pathnav.slide.pixels import encode_jpeg
from support.commands import Command
from support.painted_slide import TOOLS

DARK = image_part(encode_jpeg(np.full((128, 128, 3), (90, 60, 140), np.uint8), 90))
REGION = "Search region (level-0 px): [0, 0, 4096, 4096]"
BRIEF = f"Finding: tumour\n{REGION}\nTarget size (level-0 px): 512 x 512\nROI budget: 5"
CAPTION = "Overview: 128 x 128 px at 2x, level-0 box [0, 0, 4096, 4096]"
USER = {"role": "user", "content": [text_part(BRIEF), text_part(CAPTION), DARK]}
SYSTEM = {"role": "system", "content": "You look with tools."}
FAILED = "failed"


def call(call_id: str = "call00001") -> dict[str, Any]:
    arguments = json.dumps({"x": 0, "y": 0, "w": 1024, "h": 1024})
    function = {"name": "extract_roi", "arguments": arguments}
    return {
        "role": "assistant",
        "content": "",
        "tool_calls": [{"id": call_id, "type": "function", "function": function}],
    }


def result(call_id: str = "call00001", *more: Any) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": [text_part('{"rois_left": 4}'), *more]}


def request(*messages: Any, **fields: Any) -> dict[str, Any]:
    return {"model": STUB_MODEL, "messages": list(messages), **({"tools": TOOLS} | fields)}


def message(answer: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = answer["choices"][0]["message"]
    return found


def kind(served: Served) -> str:
    """Return what a client makes of an answer."""
    fine = served.status == 200 and not served.hangs_up and served.content.startswith(b'{"id": "chatcmpl')
    return "answered" if fine else FAILED


def test_every_persona_has_a_line_of_its_own_in_the_list_and_in_the_docs(pathnav: Command) -> None:
    said = pathnav("stub", "--list-personas")
    assert said.code == 0
    assert [line.split()[0] for line in said.out.splitlines()] == list(PERSONAS)
    assert len({persona.summary for persona in PERSONAS.values()}) == len(PERSONAS)
    page = (Path(__file__).parents[2] / "docs" / "personas.md").read_text(encoding="utf-8")
    first = page[page.index("| Persona |") :].partition("\n\n")[0]
    assert re.findall(r"^\| `([\w-]+)` \|", first, re.MULTILINE) == list(PERSONAS)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--persona", "flakey"), "no persona 'flakey' (did you mean flaky?); there are plain, strict,"),
        (("--persona", "nope"), "no persona 'nope'; there are plain, strict,"),
        (("--delay-s", "1"), "--delay-s belongs to --persona slow"),
        (("--persona", "slow", "--delay-s", "-1"), "at least 0, got -1"),
        (("--persona", "slow", "--delay-s", "nan"), "at least 0, got nan"),
    ],
)
def test_what_no_persona_can_do_is_refused(pathnav: Command, options: tuple[str, ...], said: str) -> None:
    refused = pathnav("stub", "--port", "0", *options)
    assert refused.code == 2 and said in refused.err


@pytest.mark.parametrize(
    ("messages", "said"),
    [
        ([USER, call(), result("call00001", DARK)], "holds an image"),
        ([USER, call(), result("other")], "must answer a call"),
        ([USER, USER], "'user' twice in a row"),
        ([USER, call(), result(), USER, USER], "'user' twice in a row"),
        ([USER, {"role": "assistant", "content": "a"}, {"role": "assistant", "content": "b"}], "'assistant' twice"),
        ([{"role": "assistant", "content": "a"}, USER], "must begin with the role 'user'"),
        ([SYSTEM], "must begin with the role 'user'"),
        ([SYSTEM, SYSTEM, USER], "'system' is only allowed in the first"),
        ([USER, {"role": "developer", "content": "a"}], "'developer' is only allowed in the first"),
        ([USER, {"role": "assistant", "content": "a"}], "must end with"),
    ],
)
def test_the_strict_one_refuses_what_any_strict_server_refuses(messages: list[Any], said: str) -> None:
    with pytest.raises(BadRequest, match=said):
        Strict().complete(request(*messages))


@pytest.mark.parametrize(
    "messages",
    [
        [USER],
        [SYSTEM, USER, call(), result(), USER],
        [USER, call(), result()],
        [USER, call(), result(), {"role": "assistant", "content": "bridge"}, USER],
    ],
)
def test_the_strict_one_answers_all_else_as_the_stub_does(messages: list[Any]) -> None:
    assert Strict().complete(request(*messages)) == Persona().complete(request(*messages))


def test_a_dropped_image_leaves_the_answer_of_one_that_was_never_sent() -> None:
    captioned = text_part("extract_roi: 128 x 128 px at 2x, level-0 box [0, 0, 1024, 1024]")
    sent = request(USER, call(), result("call00001", captioned, DARK))
    without = request(USER, call(), result("call00001", captioned))
    assert SilentDrop().complete(sent) == Persona().complete(without)
    assert Persona().complete(sent) != Persona().complete(without)


def test_mistrals_order_wants_an_assistant_between_and_ids_of_nine() -> None:
    persona, bridge = MistralOrder(), {"role": "assistant", "content": "bridge"}
    assert persona.complete(request(USER, call(), result(), bridge, USER))
    with pytest.raises(BadRequest, match="after the role 'tool', got 'user'"):
        persona.complete(request(USER, call(), result(), USER))
    with pytest.raises(BadRequest, match="length of 9, got 'call_1'"):
        persona.complete(request(USER, call("call_1"), result("call_1")))


def test_refused_logprobs_are_asked_for_no_more() -> None:
    asked = [{"role": "user", "content": [text_part("Yes or No?"), DARK]}]
    with pytest.raises(BadRequest, match="logprobs"):
        NoLogprobs().complete({"model": STUB_MODEL, "messages": asked, "logprobs": True})
    with StubServer(persona="no-logprobs") as server, ChatClient(ChatSettings(server.base_url, STUB_MODEL)) as chat:
        reply = chat.ask(asked, top_logprobs=5)
    assert reply.text.startswith("Yes") and reply.logprobs == () and reply.retries == 1  # the refused one


def test_without_usage_tokens_are_unknown() -> None:
    with StubServer(persona="no-usage") as server, ChatClient(ChatSettings(server.base_url, STUB_MODEL)) as chat:
        assert chat.ask([USER]).tokens is None


@given(seed=st.integers(0, 2**32), texts=st.lists(st.sampled_from("abcdef"), max_size=30))
def test_no_request_fails_more_than_twice_and_the_same_ones_fail_alike(seed: int, texts: list[str]) -> None:
    one, other = Flaky(seed), Flaky(seed)
    came: dict[str, list[Served]] = {}
    for text in texts:
        asked = request({"role": "user", "content": text}, tools=None)
        served = one.serve(asked)
        assert served == other.serve(asked)
        came.setdefault(text, []).append(served)
    for answers in came.values():
        kinds = [kind(served) for served in answers]
        assert kinds == sorted(kinds, reverse=True) and kinds.count(FAILED) <= 2
        assert all(float(served.headers["Retry-After"]) <= 0.02 for served in answers[1 : kinds.count(FAILED)])


def test_every_kind_of_failure_comes_with_some_seed() -> None:
    served = [Flaky(seed).serve(request(USER)) for seed in range(100)]
    seen = {(one.status, one.hangs_up, one.delay_s > 0, bool(one.content)) for one in served if kind(one) == FAILED}
    loud = {(status, False, False, True) for status in (429, 500, 503)}
    assert seen == {*loud, (200, False, False, False), (200, True, False, False), (200, True, True, False)}
    assert {one.headers["Retry-After"] for one in served if one.status == 429} == {"0", "0.02"}


def test_a_client_gets_through_to_a_flaky_server_whatever_the_seed() -> None:
    retries, waits = [], []
    for seed in range(12):
        with StubServer(persona=Flaky(seed, stall_s=0.02)) as server:
            settings = ChatSettings(server.base_url, STUB_MODEL)
            with ChatClient(settings, sleep=waits.append, rng=np.random.default_rng(0)) as chat:
                reply = chat.ask([USER], TOOLS)
        assert reply.calls[0].name == "extract_roi"
        retries.append(reply.retries)
    assert set(retries) == {0, 1, 2} and len(waits) == sum(retries)


def test_the_slow_one_answers_late() -> None:
    with StubServer(persona=Slow(delay_s=0.2)) as server, ChatClient(ChatSettings(server.base_url, STUB_MODEL)) as chat:
        assert chat.ask([USER]).seconds >= 0.2


def test_an_answer_that_waits_does_not_hold_up_a_server_that_closes() -> None:
    came = threading.Event()

    class Noting(Slow):
        def serve(self, asked: object) -> Served:
            came.set()
            return super().serve(asked)

    server = StubServer(persona=Noting(delay_s=3600))
    server.start()
    with ThreadPoolExecutor() as pool, ChatClient(ChatSettings(server.base_url, STUB_MODEL)) as chat:
        answer = pool.submit(chat.ask, [USER])
        assert came.wait(60)
        server.close()
        assert answer.result(60).text


def test_web_pages_come_once_and_with_200_only_in_the_middle_of_a_conversation() -> None:
    first, later = request(USER), request(USER, call(), result())
    statuses: dict[int, set[int]] = {0: set(), 1: set()}
    for seed in range(40):
        persona = HtmlError(seed)
        for turn, asked in enumerate((first, later)):
            served, again = persona.serve(asked), persona.serve(asked)
            assert kind(again) == "answered"
            if kind(served) == FAILED:
                assert b"<html" in served.content and served.content_type.startswith("text/html")
                statuses[turn].add(served.status)
    assert statuses == {0: {502}, 1: {200, 502}}


@pytest.mark.parametrize("seed", range(4))
def test_a_third_of_the_calls_end_in_their_middle_and_never_two_in_a_row(seed: int) -> None:
    cut, messages = [], [USER]
    for turn in range(6):
        choice = TruncatedJson(seed).complete(request(*messages))["choices"][0]
        cut.append(choice["finish_reason"] == "length")
        arguments = choice["message"]["tool_calls"][0]["function"]["arguments"]
        assert arguments.endswith("}") is not cut[-1]
        messages += [call(f"call{turn:05d}"), result(f"call{turn:05d}")]
    assert sum(cut) == 2 and not any(one and next_one for one, next_one in pairwise(cut))


def in_words(*messages: Any) -> dict[str, Any]:
    """Return a request in which the tools are told in the prompt."""
    described = [{**tool, "function": {**tool["function"], "description": "A tool."}} for tool in TOOLS]
    return request(*text_messages(messages, described), tools=None)


def test_a_model_without_tool_calling_acts_only_where_it_is_told_how() -> None:
    ignorant = TextOnly().complete(request(USER))
    assert "tool_calls" not in message(ignorant)
    assert parse_actions(message(ignorant)["content"], ["extract_roi"]).actions == ()
    told = message(TextOnly().complete(in_words(USER)))
    (action,) = parse_actions(told["content"], ["extract_roi"]).actions
    assert action.name == "extract_roi" and "```json\n" in told["content"] and "tool_calls" not in told


def test_prose_holds_no_call_and_no_verdict() -> None:
    for asked in (request(USER), in_words(USER), request({"role": "user", "content": [text_part("Yes or No?"), DARK]})):
        said = message(Garrulous().complete(asked))
        assert "tool_calls" not in said
        assert not re.search(r'\b(yes|no)\b|\d|[{"]', said["content"], re.IGNORECASE)


def test_the_greedy_one_looks_three_times_a_turn_until_the_last() -> None:
    looks = message(Overbudget().complete(request(USER)))["tool_calls"]
    assert [one["function"]["name"] for one in looks] == ["extract_roi"] * 3
    assert len({one["function"]["arguments"] for one in looks}) == len({one["id"] for one in looks}) == 3
    for demand, name in (
        ("Call finish_and_report now.", "extract_roi"),
        ("This is the last turn.", "finish_and_report"),
    ):
        forced = request(USER, call(), result(), {"role": "user", "content": demand}, tools=TOOLS[2:])
        assert message(Overbudget().complete(forced))["tool_calls"][0]["function"]["name"] == name


def test_a_persona_may_be_named_or_made() -> None:
    assert isinstance(persona_named("flaky", 7), Flaky) and persona_named("flaky", 7).seed == 7
    with pytest.raises(ConfigError, match="no persona"):
        StubServer(persona="pathologist")
