"""The stub refuses every history that some strict server refuses."""

import copy
from typing import Any

import pytest

from pathnav.model.stub_rules import BadRequest, check_request

IMAGE = {"type": "image_url", "image_url": {"url": "data:image/jpeg;base64,AAAA"}}
TOOL = {"type": "function", "function": {"name": "look", "parameters": {}}}


def made(call_id: str, arguments: Any = "{}", name: str = "look") -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def assistant(*calls: dict[str, Any]) -> dict[str, Any]:
    return {"role": "assistant", "content": None, "tool_calls": list(calls)}


def answer(call_id: str, content: Any = "{}") -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": content}


USER = {"role": "user", "content": [{"type": "text", "text": "look"}, IMAGE]}


def request(*messages: Any, **fields: Any) -> dict[str, Any]:
    return {"model": "stub-pixel-reader", "messages": list(messages), **fields}


@pytest.mark.parametrize(
    "legal",
    [
        request(USER),
        request({"role": "system", "content": "s"}, USER, assistant(made("a")), answer("a"), USER),
        request(USER, assistant(made("a"), made("b")), answer("b"), answer("a")),
        request(USER, assistant(made("a")), answer("a", [{"type": "text", "text": "t"}, IMAGE])),
        request(USER, assistant(made("a")), answer("a"), {"role": "assistant", "content": "bridge"}, USER),
        request(USER, tools=[TOOL], tool_choice={"type": "function", "function": {"name": "look"}}),
        request(USER, tools=[TOOL], tool_choice="required", temperature=0, max_completion_tokens=5, stream=False),
    ],
)
def test_legal_histories_pass(legal: dict[str, Any]) -> None:
    before = copy.deepcopy(legal)
    assert check_request(legal) == before


@pytest.mark.parametrize(
    ("illegal", "reason"),
    [
        ([], "must be a JSON object"),
        ({"messages": [USER]}, "'model'"),
        (request(), "'messages'"),
        (request(USER, stream=True), "'stream'"),
        (request(USER, n=2), "'n'"),
        (request("hello"), "role"),
        (request({"role": "pathologist", "content": "x"}), "role"),
        (request({"role": "user", "content": []}), "content"),
        (request({"role": "user", "content": None}), "content"),
        (request({"role": "user", "content": [{"type": "audio"}]}), "text part"),
        (request({"role": "user", "content": [{"type": "image_url", "image_url": "x"}]}), "image_url"),
        (request({"role": "system", "content": [IMAGE]}), "images are only allowed"),
        (request(USER, answer("a")), "must answer a call"),
        (request(USER, assistant(made("a")), answer("b")), "must answer a call"),
        (request(USER, assistant(made("a")), answer("a"), answer("a")), "must answer a call"),
        (request(USER, assistant(made("a")), answer("a"), USER, answer("a")), "must answer a call"),
        (request(USER, assistant(made("a"))), "unanswered: a"),
        (request(USER, assistant(made("a"), made("b")), answer("a"), USER), "unanswered: b"),
        (request(USER, assistant(made("a"), made("a"))), "no other call has"),
        (request(USER, assistant(made("a")), answer("a"), assistant(made("a"))), "no other call has"),
        (request(USER, assistant(made(""))), "no other call has"),
        (request(USER, assistant(made("a", '{"x": '))), "JSON object"),
        (request(USER, assistant(made("a", "[1]"))), "JSON object"),
        (request(USER, assistant(made("a", ""))), "JSON object"),
        (request(USER, assistant(made("a", '{"x": NaN}'))), "JSON object"),
        (request(USER, assistant(made("a", {"x": 1}))), "JSON object"),
        (request(USER, assistant()), "at least one call"),
        (request(USER, {"role": "assistant", "content": None}), "content or tool_calls"),
        (request({**USER, "tool_calls": [made("a")]}), "only allowed in an assistant message"),
        (request(USER, tools=[TOOL, TOOL]), "twice"),
        (request(USER, tools=[{"name": "look"}]), "tools\\[0\\]"),
        (request(USER, tool_choice="auto"), "only allowed when"),
        (request(USER, tools=[TOOL], tool_choice="must"), "tool_choice"),
        (request(USER, tools=[TOOL], tool_choice={"type": "function", "function": {"name": "x"}}), "not in 'tools'"),
    ],
)
def test_illegal_requests_are_refused_with_the_reason(illegal: Any, reason: str) -> None:
    with pytest.raises(BadRequest, match=reason):
        check_request(illegal)
