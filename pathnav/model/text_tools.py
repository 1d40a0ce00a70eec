"""Tool calling for models that have none: the tools in the prompt, one JSON action in the answer.

Callers write and read the same conversation as with native tool calling; `ChatClient` translates on the way, so that
any agent works with any model. The texts are the files in `prompts/`.
"""

import hashlib
import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from importlib.resources import files
from typing import Any

from pathnav.model.json_action import parse_actions
from pathnav.model.parts import Message, text_part
from pathnav.model.profile import Structured
from pathnav.model.reply import Reply, ToolCall, free_id

_NAMES = ("text_tools", "legal_form", "unreadable")
_SILENCE = "(no answer)"  # some servers refuse an assistant message without text

Schema = Mapping[str, Any]


@cache
def _text(name: str) -> str:
    return files("pathnav.model").joinpath("prompts", f"{name}.txt").read_text(encoding="utf-8").strip()


@cache
def protocol_hash() -> str:
    """Return the SHA-256 over the texts of the protocol; part of the key where it is used."""
    return hashlib.sha256("\0".join(_text(name) for name in _NAMES).encode()).hexdigest()


def text_messages(messages: Sequence[Mapping[str, Any]], tools: Sequence[Schema]) -> list[Message]:
    """Return a conversation with tool calls as one without: system, user and assistant messages in turn.

    Args:
        messages: OpenAI chat-completions messages.
        tools: Function schemas of the tools on offer now.
    """
    names = [tool["function"]["name"] for tool in tools]
    sent: list[Message] = []
    called: dict[str, str] = {}
    for message in messages:
        role = message["role"]
        if role == "assistant":
            called = {call["id"]: call["function"]["name"] for call in message.get("tool_calls") or ()}
            sent.append({"role": "assistant", "content": _plain(message.get("content")) or _actions(message)})
        elif role == "tool":
            _add(sent, _result(message, called.get(message["tool_call_id"], ""), sent, names))
        elif role == "user":
            reminds = bool(sent and sent[-1]["role"] == "assistant" and not called and names)
            _add(sent, [*_parts(message.get("content")), *([text_part(_legal_form(names))] if reminds else [])])
        else:
            sent.append(dict(message))
    return _told(sent, tools) if tools else sent


def needy(tools: Iterable[Schema]) -> frozenset[str]:
    """Return the names of the tools that cannot be called without arguments."""
    functions = [tool["function"] for tool in tools]
    return frozenset(one["name"] for one in functions if one.get("parameters", {}).get("required"))


def with_actions(reply: Reply, tools: Sequence[Schema], taken: Collection[str]) -> Reply:
    """Return the reply with the actions in its text as calls; one that tries to be and cannot be read has no name.

    Args:
        reply: The reply as it came; calls that the server found itself stay.
        tools: Function schemas of the tools that were on offer.
        taken: Call ids that the conversation already uses.
    """
    if reply.calls:
        return reply
    parsed = parse_actions(reply.text, [tool["function"]["name"] for tool in tools], needy(tools))
    ids, calls = set(taken), []
    found: list[tuple[str, dict[str, Any] | None, str]] = [
        (action.name, action.arguments, action.raw) for action in parsed.actions
    ]
    for name, arguments, raw in found or ([("", None, reply.text)] if parsed.fault else []):
        call = ToolCall(free_id(ids), name, arguments, raw)
        ids.add(call.id)
        calls.append(call)
    return replace(reply, calls=tuple(calls))


def response_format(structured: Structured, tools: Sequence[Schema]) -> dict[str, Any] | None:
    """Return what holds an answer to an action, as the API writes it; None where nothing does."""
    if structured is Structured.NONE or not tools:
        return None
    if structured is Structured.JSON_OBJECT:
        return {"type": "json_object"}
    actions = [_action_schema(tool["function"]) for tool in tools]
    schema = actions[0] if len(actions) == 1 else {"anyOf": actions}
    return {"type": "json_schema", "json_schema": {"name": "action", "schema": schema}}


def _action_schema(function: Schema) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {"tool": {"const": function["name"]}, "arguments": dict(function["parameters"])},
        "required": ["tool", "arguments"],
    }


def _told(sent: list[Message], tools: Sequence[Schema]) -> list[Message]:
    """Return the messages with the tools behind the system's text, or in a system message of its own."""
    told = _text("text_tools").format(tools="\n".join(map(_described, tools)))
    if sent and sent[0]["role"] == "system":
        first = {"role": "system", "content": f"{_plain(sent[0].get('content'))}\n\n{told}"}
        return [first, *sent[1:]]
    return [{"role": "system", "content": told}, *sent]


def _described(tool: Schema) -> str:
    function = tool["function"]
    lines = [f"- {function['name']}: {function['description']}"]
    for name, field in function["parameters"].get("properties", {}).items():
        lines.append(f"    {name} ({_type(field)}): {field.get('description', '')}".rstrip(": "))
    return "\n".join(lines)


def _type(field: Schema) -> str:
    """Return a schema's type in a word or two."""
    if "anyOf" in field:
        return " or ".join(_type(option) for option in field["anyOf"])
    kind = str(field.get("type", "any"))
    return f"list of {_type(field['items'])}s" if kind == "array" and "items" in field else kind


def _result(message: Mapping[str, Any], name: str, sent: Sequence[Message], names: Sequence[str]) -> list[Message]:
    """Return the parts that tell what a call came to; of one that could not be read, why and the legal form."""
    if name:
        first, *rest = _parts(message.get("content")) or [text_part("")]
        text = f"Result of {name} ({message['tool_call_id']}): "
        return [text_part(text + first["text"]), *rest] if first["type"] == "text" else [text_part(text), first, *rest]
    tried = next((str(one["content"]) for one in reversed(sent) if one["role"] == "assistant"), "")
    fault = parse_actions(tried, names).fault or "it names no tool"
    return [text_part(f"{_text('unreadable').format(fault=fault)} {_legal_form(names)}")]


def _legal_form(names: Iterable[str]) -> str:
    return _text("legal_form").format(names=", ".join(names))


def _actions(message: Mapping[str, Any]) -> str:
    """Return the calls of a message without text as the model would have written them."""
    functions = [call["function"] for call in message.get("tool_calls") or ()]
    written = [f'{{"tool": {json.dumps(one["name"])}, "arguments": {one["arguments"]}}}' for one in functions]
    return "\n".join(written) or _SILENCE


def _parts(content: object) -> list[Message]:
    """Return a content as parts."""
    if isinstance(content, str):
        return [text_part(content)] if content else []
    return [dict(part) for part in content] if isinstance(content, list) else []


def _plain(content: object) -> str:
    return "\n".join(part["text"] for part in _parts(content) if part["type"] == "text")


def _add(sent: list[Message], parts: list[Message]) -> None:
    """Add parts to the user message that stands last, or as one of their own."""
    if sent and sent[-1]["role"] == "user":
        sent[-1] = {"role": "user", "content": [*sent[-1]["content"], *parts]}
    else:
        sent.append({"role": "user", "content": parts})
