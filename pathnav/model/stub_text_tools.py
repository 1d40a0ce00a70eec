"""Tools in words, as the stub reads and writes them: offered in the prompt, called by a JSON action in the text.

The stub has its own reader, so that it does not share the mistakes of the client's.
"""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from pathnav.model.stub_rules import content_parts

_FORM = '{"tool": "NAME", "arguments": {...}}'
_BEFORE_TOOLS = "The tools, with their arguments:"
_TOOL = re.compile(r"^- ([\w.-]+): ", re.MULTILINE)
_ARGUMENT = re.compile(r"^ {4}(\w+) \(([^)]*)\)", re.MULTILINE)
_ACTION = re.compile(r'\{"tool": "')
_PLAIN_TYPES = ("number", "integer", "boolean", "null", "string", "object")


def described_tools(body: Mapping[str, Any]) -> dict[str, dict[str, Any]] | None:
    """Return the functions that a legal request offers in words, by name; None where it does not offer them so."""
    if body.get("tools"):
        return None
    for message in body["messages"]:
        if message["role"] == "assistant":
            return None
        for part in content_parts(message):
            text = part.get("text") or ""
            if _FORM in text and _BEFORE_TOOLS in text:
                return dict(_described(text.partition(_BEFORE_TOOLS)[2]))
    return None


def action(name: str, arguments: Mapping[str, Any]) -> str:
    """Return a call as the text protocol writes it."""
    return json.dumps({"tool": name, "arguments": dict(arguments)})


def actions(text: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the calls in a text that the stub wrote earlier; what was cut off is none."""
    decoder = json.JSONDecoder()
    for found in _ACTION.finditer(text):
        try:
            written, _ = decoder.raw_decode(text, found.start())
        except ValueError:
            continue
        arguments = written.get("arguments")
        if isinstance(arguments, dict):
            yield written["tool"], arguments


def is_result(text: str) -> bool:
    """Return whether a user's text tells what a call came to."""
    return text.startswith("Result of ")


def _described(text: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each tool of a description with what it says of its arguments."""
    starts = [*_TOOL.finditer(text)]
    for tool, following in zip(starts, [*starts[1:], None], strict=True):
        told = text[tool.end() : following.start() if following else len(text)]
        fields = {name: _schema(kind) for name, kind in _ARGUMENT.findall(told)}
        schema = {"type": "object", "properties": fields, "required": list(fields)}
        yield tool.group(1), {"name": tool.group(1), "parameters": schema}


def _schema(words: str) -> dict[str, Any]:
    """Return the schema of a type in words: `number`, `number or null`, `list of numbers`."""
    first = words.partition(" or ")[0]
    if first.startswith("list"):
        return {"type": "array"}
    return {"type": first if first in _PLAIN_TYPES else "string"}
