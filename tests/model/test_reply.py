"""Replies are read from whatever a server sends."""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from pathnav.model import Tokens, ToolCall
from pathnav.model.reply import parse_arguments, read_reply

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=12,
)


def choice(*tool_calls: Any, **message: Any) -> dict[str, Any]:
    return {"message": {"role": "assistant", "content": None, "tool_calls": list(tool_calls), **message}}


def sent(name: Any, arguments: Any, call_id: Any = None) -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def test_calls_keep_the_order_and_the_text_in_which_they_were_sent() -> None:
    raws = ['{"x": 1', '{"y":  2}', "[3]", "NaN", '{"z": 4}']
    reply = read_reply(choice(*(sent(f"tool{i}", raw, f"id{i}") for i, raw in enumerate(raws))), None)
    assert [call.raw for call in reply.calls] == raws
    assert [call.name for call in reply.calls] == ["tool0", "tool1", "tool2", "tool3", "tool4"]
    assert [call.arguments for call in reply.calls] == [None, {"y": 2}, None, None, {"z": 4}]


def test_arguments_sent_as_an_object_are_taken() -> None:
    (call,) = read_reply(choice(sent("look", {"x": 1, "reason": "naïve"}, "a")), None).calls
    assert call == ToolCall("a", "look", {"x": 1, "reason": "naïve"}, '{"x": 1, "reason": "naïve"}')


def test_absent_arguments_of_a_tool_without_any_are_an_empty_object() -> None:
    absent: tuple[Any, ...] = ("", "  ", None, {})
    for nothing in absent:
        (call,) = read_reply(choice(sent("get_image_info", nothing, "a")), None).calls
        assert call.arguments == {} and call.resent == "{}"


def test_missing_and_repeated_call_ids_become_unique_also_against_earlier_turns() -> None:
    calls = [sent("a", "{}", "call_0"), sent("b", "{}", "call_0"), sent("c", "{}"), sent("d", "{}", 7)]
    ids = [call.id for call in read_reply(choice(*calls), None, taken={"call_0", "call00002"}).calls]
    assert len(set(ids)) == 4 and not set(ids) & {"call_0", "call00002"}
    assert all(len(name) == 9 and name.isalnum() for name in ids), "Mistral's templates take no other form"


def test_an_id_that_is_unique_is_kept() -> None:
    assert read_reply(choice(sent("a", "{}", "toolu_abc")), None).calls[0].id == "toolu_abc"


def test_text_in_parts_is_joined() -> None:
    parts = [{"type": "text", "text": "Fat"}, {"type": "reference"}, {"type": "text", "text": " here."}]
    assert read_reply(choice(content=parts), None).text == "Fat here."


def test_a_refusal_is_seen_in_each_of_its_three_forms() -> None:
    assert read_reply({**choice(), "finish_reason": "content_filter"}, None).refused
    refused = read_reply(choice(refusal="I cannot."), None)
    assert refused.refused and refused.text == "I cannot."
    assert read_reply(choice(content=[{"type": "refusal", "refusal": "I cannot."}]), None).refused
    assert not read_reply({**choice(refusal=None), "finish_reason": "stop"}, None).refused


def test_tokens_are_unknown_unless_both_counts_are_whole_numbers() -> None:
    assert read_reply(choice(), {"prompt_tokens": 3, "completion_tokens": 0}).tokens == Tokens(3, 0)
    for usage in (None, {}, {"prompt_tokens": 3}, {"prompt_tokens": 3, "completion_tokens": None}, "many"):
        assert read_reply(choice(), usage).tokens is None


def test_a_usage_of_no_prompt_tokens_is_none() -> None:
    for prompt in (0, -1, True, 10**30, 1.5):
        assert read_reply(choice(), {"prompt_tokens": prompt, "completion_tokens": 0}).tokens is None


def test_lone_surrogates_do_not_survive_and_never_stop_a_reply() -> None:
    reply = read_reply(choice(sent("a\ud800", '{"x": "\ud800"}', "i\ud800"), content="t\udfff"), None)
    reply.text.encode()
    reply.calls[0].resent.encode()
    (reply.calls[0].name + reply.calls[0].id).encode()


@given(JSON, JSON)
def test_no_body_whatever_stops_a_reply(anything: Any, usage: Any) -> None:
    for message in (anything, {"content": anything, "tool_calls": anything}, {"tool_calls": [anything, anything]}):
        reply = read_reply({"message": message, "finish_reason": anything}, usage)
        assert len({call.id for call in reply.calls}) == len(reply.calls)


@given(st.text() | JSON.map(json.dumps))
def test_resent_arguments_are_always_the_text_of_a_json_object(raw: str) -> None:
    (call,) = read_reply(choice(sent("a", raw)), None).calls
    assert isinstance(json.loads(call.resent, parse_constant=float.fromhex), dict)
    assert call.raw == raw
    call.resent.encode()


def test_hostile_numbers_and_nesting_are_malformed_not_fatal() -> None:
    for raw in ("[" * 100_000, '{"x": ' + "9" * 5000 + "}", '{"x": NaN}', '{"x": "\\ud800"}'):
        assert parse_arguments(raw) is None
