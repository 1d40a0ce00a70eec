"""The text protocol over the wire: no tool field, no tool role, and the same calls in the end."""

from typing import Any

from pathnav.model.parts import image_part, text_part
from pathnav.model.profile import Profile, ToolCalling
from support.asking import asking
from support.chat_server import say

LOOK = {
    "type": "function",
    "function": {
        "name": "look",
        "description": "Look at a box.",
        "parameters": {
            "type": "object",
            "properties": {
                "x": {"type": "number", "description": "left edge"},
                "bbox": {"type": "array", "items": {"type": "number"}, "description": "the box"},
                "sure": {"anyOf": [{"type": "number"}, {"type": "null"}], "description": "0 to 1"},
            },
        },
    },
}
TEXT = Profile(tools=ToolCalling.TEXT)


def calls(*named: tuple[str, str, str]) -> list[dict[str, Any]]:
    return [{"id": i, "type": "function", "function": {"name": n, "arguments": a}} for i, n, a in named]


HISTORY: list[dict[str, Any]] = [
    {"role": "system", "content": "You examine a slide."},
    {"role": "user", "content": [text_part("Find it."), image_part(b"\xff\xd8\x01")]},
    {
        "role": "assistant",
        "content": 'I look. {"tool": "look", "arguments": {"x": 1}}',
        "tool_calls": calls(("c1", "look", '{"x": 1}')),
    },
    {"role": "tool", "tool_call_id": "c1", "content": '{"rois_left": 2}'},
    {"role": "user", "content": [text_part("Image of look c1"), image_part(b"\xff\xd8\x02")]},
]


def test_tools_are_described_and_results_come_as_user_turns() -> None:
    with asking([say("ok")], profile=TEXT) as (client, server):
        client.ask(HISTORY, [LOOK])
    body, request = server.requests[0].body, server.requests[0]
    assert not {"tools", "tool_choice"} & set(body)
    assert [message["role"] for message in request.messages] == ["system", "user", "assistant", "user"]
    assert all("tool_calls" not in message for message in request.messages)
    system = request.messages[0]["content"]
    assert system.startswith("You examine a slide.") and "- look: Look at a box." in system
    assert "bbox (list of numbers): the box" in system and "sure (number or null): 0 to 1" in system
    assert request.messages[2]["content"] == HISTORY[2]["content"]
    assert 'Result of look (c1): {"rois_left": 2}' in request.text
    assert request.jpegs == [b"\xff\xd8\x01", b"\xff\xd8\x02"]


def test_actions_in_the_text_become_calls_with_ids_of_their_own() -> None:
    with asking([say('So:\n```json\n{"tool": "look", "arguments": {"x": 5}}\n```')], profile=TEXT) as (client, _):
        reply = client.ask(HISTORY, [LOOK])
    (call,) = reply.calls
    assert (call.name, call.arguments) == ("look", {"x": 5}) and call.id not in ("", "c1")
    assert reply.text.startswith("So:")


def test_an_action_that_cannot_be_read_is_answered_with_the_legal_form() -> None:
    broken = '{"tool": "look", "arguments": {"x": '
    with asking([say(broken), say("ok")], profile=TEXT) as (client, server):
        reply = client.ask(HISTORY[:2], [LOOK])
        (call,) = reply.calls
        assert (call.name, call.arguments) == ("", None)
        turn = {"role": "assistant", "content": reply.text, "tool_calls": [call.as_message_part()]}
        result = {"role": "tool", "tool_call_id": call.id, "content": '{"error": "there is no tool"}'}
        client.ask([*HISTORY[:2], turn, result], [LOOK])
    told = server.requests[1].messages[-1]["content"][0]["text"]
    assert "could not be read" in told and '{"tool": "NAME", "arguments": {...}}' in told and "look" in told


def test_prose_without_an_action_is_no_call_and_the_reminder_shows_the_legal_form() -> None:
    with asking([say("I see fat at 100, 200."), say("ok")], profile=TEXT) as (client, server):
        reply = client.ask(HISTORY[:2], [LOOK])
        assert reply.calls == ()
        turn = {"role": "assistant", "content": reply.text}
        client.ask([*HISTORY[:2], turn, {"role": "user", "content": "Your answer had no tool call."}], [LOOK])
    texts = [part["text"] for part in server.requests[1].messages[-1]["content"]]
    assert texts[0] == "Your answer had no tool call." and '{"tool": "NAME"' in texts[1]


def test_calls_that_a_server_finds_itself_stay() -> None:
    answer = say(None, tool_calls=tuple(calls(("s1", "look", '{"x": 2}'))))  # type: ignore[arg-type]
    with asking([answer], profile=TEXT) as (client, _):
        assert [call.id for call in client.ask(HISTORY, [LOOK]).calls] == ["s1"]


def test_a_conversation_without_tools_is_sent_as_it_is() -> None:
    with asking([say('{"tool": "look", "arguments": {}}')], profile=TEXT) as (client, server):
        assert client.ask(HISTORY[:2]).calls == ()
    assert server.requests[0].messages == HISTORY[:2]


def test_a_tool_that_is_declined_in_words_costs_no_call() -> None:
    needy = {"type": "function", "function": {**LOOK["function"], "parameters": {"type": "object", "required": ["x"]}}}
    declined = 'I will not use {"tool": "look"} again.'
    with asking([say(declined), say(declined)], profile=TEXT) as (client, _):
        assert client.ask(HISTORY, [needy]).calls == ()
        assert [call.name for call in client.ask(HISTORY, [LOOK]).calls] == ["look"]
