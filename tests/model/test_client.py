"""The client against a real server on loopback."""

import json
import subprocess
import sys
import threading
from typing import Any

import pytest

from pathnav.model import ChatClient, ChatSettings, Tokens, image_part, text_part
from support.asking import QUESTION, asking
from support.chat_server import (
    Answer,
    ChatServer,
    Request,
    call,
    calls,
    say,
)

TOOL = {
    "type": "function",
    "function": {"name": "look", "parameters": {"type": "object", "properties": {"x": {"type": "number"}}}},
}


def test_what_is_asked_goes_over_the_wire_exactly_as_it_is() -> None:
    messages: list[dict[str, Any]] = [
        {"role": "system", "content": "Be brief."},
        {
            "role": "user",
            "content": [text_part("Overview: level-0 box [0, 0, 9, 9]"), image_part(b"\xff\xd8\xff", "high")],
        },
        {
            "role": "assistant",
            "content": "two calls",
            "tool_calls": [
                {"id": "b", "type": "function", "function": {"name": "look", "arguments": "{}"}},
                {
                    "id": "a",
                    "type": "function",
                    "function": {"name": "look", "arguments": '{"x":  1.50, "π": "\\u03c0"}'},
                },
            ],
        },
        {"role": "tool", "tool_call_id": "b", "content": "invalid arguments"},
        {"role": "tool", "tool_call_id": "a", "content": '{"rois_left": 3}'},
        {"role": "user", "content": [text_part("naïve — ok"), image_part(b"\xff\xd8\x00")]},
    ]
    with asking([say("ok")], temperature=0.0, top_p=1.0, max_tokens=77, seed=5, api_key="sesame") as (client, server):
        client.ask(messages, [TOOL], required_tool="look")
    body = server.requests[0].body
    assert body.pop("messages") == messages
    assert body == {
        "model": "any",
        "stream": False,
        "temperature": 0.0,
        "top_p": 1.0,
        "max_completion_tokens": 77,
        "seed": 5,
        "tools": [TOOL],
        "tool_choice": {"type": "function", "function": {"name": "look"}},
    }
    assert server.requests[0].path == "/v1/chat/completions"
    assert server.requests[0].headers["authorization"] == "Bearer sesame"
    assert server.requests[0].jpegs == [b"\xff\xd8\xff", b"\xff\xd8\x00"]


def test_no_tools_no_seed_and_no_key_send_none() -> None:
    with asking([say("ok")]) as (client, server):
        client.ask(QUESTION)
    assert not {"tools", "tool_choice", "seed"} & set(server.requests[0].body)
    assert "authorization" not in server.requests[0].headers


def test_organisation_and_key_of_the_environment_do_not_reach_another_host(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID", "OPENAI_ORGANIZATION"):
        monkeypatch.setenv(name, f"planted-{name}")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    with asking([say("ok")]) as (client, server):
        client.ask(QUESTION)
    assert "planted" not in json.dumps(dict(server.requests[0].headers))


def test_a_proxy_of_the_environment_does_not_stand_before_loopback(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.delenv("NO_PROXY", raising=False)
    with asking([say("ok")]) as (client, _):
        assert client.ask(QUESTION).text == "ok"


def test_malformed_calls_stay_in_their_place_with_their_text() -> None:
    answer = calls(
        ("look", '{"x": 1}'),
        ("look", '{"x": '),
        ("look", {"__object__": {"x": [3]}}),
        ("look", ""),
        ids=["a", "a", "c"],
    )
    with asking([answer]) as (client, _):
        reply = client.ask(QUESTION, [TOOL])
    assert [c.raw for c in reply.calls] == ['{"x": 1}', '{"x": ', '{"x": [3]}', ""]
    assert [c.arguments for c in reply.calls] == [{"x": 1}, None, {"x": [3]}, {}]
    assert [c.id for c in reply.calls] == ["a", "call00002", "c", "call00004"]


def test_ids_of_a_reply_differ_from_those_of_the_conversation() -> None:
    answers = [calls(("look", "{}"), ids=["call_0"]), calls(("look", "{}"), ids=["call_0"])]
    with asking(answers) as (client, _):
        first = client.ask(QUESTION, [TOOL]).calls[0]
        history: list[dict[str, Any]] = [
            *QUESTION,
            {"role": "assistant", "content": None, "tool_calls": [first.as_message_part()]},
            {"role": "tool", "tool_call_id": first.id, "content": "{}"},
        ]
        assert client.ask(history, [TOOL]).calls[0].id != first.id


def test_a_reply_tells_text_tokens_reason_seconds_and_bytes() -> None:
    with asking([say("fat", finish_reason="length"), say("fat", usage=None)]) as (client, server):
        known, unknown = client.ask(QUESTION), client.ask(QUESTION)
    assert (known.text, known.tokens, known.finish_reason) == ("fat", Tokens(11, 7), "length")
    assert unknown.tokens is None
    assert 0 < known.seconds < 30
    assert known.bytes_sent == len(server.requests[0].raw)


def test_a_refusal_is_told() -> None:
    with asking([say("", message={"refusal": "I cannot."}), say("", finish_reason="content_filter")]) as (client, _):
        assert client.ask(QUESTION).refused and client.ask(QUESTION).refused


def test_threads_share_one_client_within_its_connection_limit() -> None:
    running, most, lock = 0, 0, threading.Lock()

    def answer(request: Request) -> Answer:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        threading.Event().wait(0.02)
        with lock:
            running -= 1
        return say(request.messages[0]["content"])

    with ChatServer(answer) as server:
        settings = ChatSettings(base_url=server.base_url, model="any")
        with ChatClient(settings, connections=4) as client:
            texts: dict[int, str] = {}

            def ask(number: int) -> None:
                texts[number] = client.ask([{"role": "user", "content": str(number)}]).text

            threads = [threading.Thread(target=ask, args=(number,)) for number in range(24)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
    assert texts == {number: str(number) for number in range(24)}
    assert 2 <= most <= 4


def test_importing_the_room_loads_neither_langchain_nor_httpx() -> None:
    code = "import sys, pathnav.model.client, pathnav.model.stub; print({'langchain_core', 'httpx'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


def test_a_call_that_is_required_and_given_comes_back() -> None:
    with asking([call("look", {"x": 1})]) as (client, server):
        assert client.ask(QUESTION, [TOOL], required_tool="look").calls[0].arguments == {"x": 1}
    assert server.requests[0].tool_names == ["look"]
