"""What a strict chat-completions server refuses; the stub applies all of it to every request.

Servers differ in what they let pass. The stub refuses what any of the strict ones refuses, so that a history that
runs through it is valid everywhere: OpenAI on unanswered or orphaned calls, vLLM on argument text that is no object.
"""

import base64
import binascii
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

_ROLES = ("system", "developer", "user", "assistant", "tool")
_TOOL_CHOICES = ("none", "auto", "required")


class BadRequest(Exception):
    """Raised when a request breaks a rule; the server answers 400 with the message."""


def check_request(body: object) -> dict[str, Any]:
    """Return the request body if it is legal.

    Raises:
        BadRequest: With what is wrong and where.
    """
    if not isinstance(body, dict):
        raise BadRequest("the request body must be a JSON object")
    if not isinstance(body.get("model"), str):
        raise BadRequest("'model' must be a string")
    if body.get("stream"):
        raise BadRequest("'stream' is not supported by this server")
    if body.get("n") not in (None, 1):
        raise BadRequest("'n' must be 1")
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages:
        raise BadRequest("'messages' must be a list of at least one message")
    _check_logprobs(body.get("logprobs"), body.get("top_logprobs"))
    _check_tools(body.get("tools"), body.get("tool_choice"))
    _check_order(messages)
    return body


def decode_image(url: str) -> bytes:
    """Return the bytes of an inlined image.

    Raises:
        BadRequest: If it is not a base64 `data:image/...` URL; this server fetches nothing.
    """
    if not url.startswith("data:image/"):
        raise BadRequest("an image must be a 'data:image/...;base64,' URL; this server fetches nothing")
    head, _, encoded = url.partition(",")
    if not head.endswith(";base64") or not encoded:
        raise BadRequest("an image's 'data:' URL must hold base64 text")
    try:
        return base64.b64decode(encoded, validate=True)
    except binascii.Error as error:
        raise BadRequest(f"an image's base64 text is broken: {error}") from error


def content_parts(message: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return a message's content as parts; a plain string is one text part."""
    content = message.get("content")
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return content if isinstance(content, list) else []


def _check_logprobs(logprobs: object, top: object) -> None:
    if logprobs is not None and not isinstance(logprobs, bool):
        raise BadRequest("'logprobs' must be true or false")
    if top is None:
        return
    if logprobs is not True:
        raise BadRequest("'top_logprobs' is only allowed when 'logprobs' is true")
    if type(top) is not int or not 0 <= top <= 20:
        raise BadRequest(f"'top_logprobs' must be a whole number from 0 to 20, got {top!r}")


def _check_tools(tools: object, choice: object) -> None:
    if tools is not None and not isinstance(tools, list):
        raise BadRequest("'tools' must be a list")
    names = [_tool_name(tool, f"tools[{index}]") for index, tool in enumerate(tools or [])]
    if len(set(names)) != len(names):
        raise BadRequest("'tools' names one function twice")
    if choice is None:
        return
    if not names:
        raise BadRequest("'tool_choice' is only allowed when 'tools' are given")
    if isinstance(choice, str):
        if choice not in _TOOL_CHOICES:
            raise BadRequest(f"'tool_choice' must be one of {', '.join(_TOOL_CHOICES)}, or name a function")
    elif _tool_name(choice, "tool_choice") not in names:
        raise BadRequest("'tool_choice' names a function that is not in 'tools'")


def _tool_name(tool: object, place: str) -> str:
    function = tool.get("function") if isinstance(tool, dict) and tool.get("type") == "function" else None
    name = function.get("name") if isinstance(function, dict) else None
    if not isinstance(name, str) or not name:
        raise BadRequest(f"'{place}' must be {{'type': 'function', 'function': {{'name': ...}}}}")
    return name


def _check_order(messages: Sequence[object]) -> None:
    """Check each message, and that every call is answered right after it, once, by its own id."""
    seen: set[str] = set()
    open_calls: list[str] = []
    for index, message in enumerate(messages):
        place = f"messages[{index}]"
        if not isinstance(message, dict) or message.get("role") not in _ROLES:
            raise BadRequest(f"'{place}' must be an object with a role of {', '.join(_ROLES)}")
        if message["role"] == "tool":
            _answer_call(message, place, open_calls)
        else:
            _check_answered(open_calls)
        _check_content(message, place)
        if message["role"] == "assistant":
            open_calls = list(_checked_calls(message, place, seen))
        elif message.get("tool_calls"):
            raise BadRequest(f"'{place}.tool_calls' is only allowed in an assistant message")
    _check_answered(open_calls)


def _answer_call(message: Mapping[str, Any], place: str, open_calls: list[str]) -> None:
    call_id = message.get("tool_call_id")
    if call_id not in open_calls:
        raise BadRequest(
            f"'{place}' with role 'tool' must answer a call of the assistant message right before it; "
            f"the id {call_id!r} is none of its unanswered calls"
        )
    open_calls.remove(str(call_id))


def _check_answered(open_calls: Sequence[str]) -> None:
    if open_calls:
        raise BadRequest(
            "an assistant message with 'tool_calls' must be followed by tool messages that answer each "
            f"'tool_call_id'; unanswered: {', '.join(open_calls)}"
        )


def _checked_calls(message: Mapping[str, Any], place: str, seen: set[str]) -> Iterator[str]:
    calls = message.get("tool_calls")
    if calls is None:
        if not content_parts(message):
            raise BadRequest(f"'{place}' must have content or tool_calls")
        return
    if not isinstance(calls, list) or not calls:
        raise BadRequest(f"'{place}.tool_calls' must be a list of at least one call")
    for index, call in enumerate(calls):
        where = f"{place}.tool_calls[{index}]"
        _tool_name(call, where)
        call_id = call.get("id")
        if not isinstance(call_id, str) or not call_id or call_id in seen:
            raise BadRequest(f"'{where}.id' must be a string that no other call has, got {call_id!r}")
        seen.add(call_id)
        _check_arguments(call["function"].get("arguments"), where)
        yield call_id


def _check_arguments(arguments: object, place: str) -> None:
    try:
        parsed = json.loads(arguments, parse_constant=_refuse_constant) if isinstance(arguments, str) else None
    except ValueError:
        parsed = None
    if not isinstance(parsed, dict):
        raise BadRequest(f"'{place}.function.arguments' must be the text of a JSON object, got {arguments!r:.80}")


def _refuse_constant(name: str) -> None:
    raise ValueError(name)


def _check_content(message: Mapping[str, Any], place: str) -> None:
    content = message.get("content")
    if (content is None and message["role"] == "assistant") or isinstance(content, str):
        return
    if not isinstance(content, list) or not content:
        raise BadRequest(f"'{place}.content' must be a string or a list of parts")
    _check_parts(content, place, images=message["role"] in ("user", "tool"))


def _check_parts(parts: Iterable[object], place: str, images: bool) -> None:
    for index, part in enumerate(parts):
        where = f"{place}.content[{index}]"
        kind = part.get("type") if isinstance(part, dict) else None
        if isinstance(part, dict) and kind == "text" and isinstance(part.get("text"), str):
            continue
        image = part.get("image_url") if isinstance(part, dict) and kind == "image_url" else None
        if not isinstance(image, dict) or not isinstance(image.get("url"), str):
            raise BadRequest(f"'{where}' must be a text part, or an image_url part with a url")
        if not images:
            raise BadRequest(f"'{where}': images are only allowed in user and tool messages")
