"""What `stub-pixel-reader` answers: a request body in, a response body out, no network.

It is no model and says so. It measures haematoxylin density in the images it is sent and navigates with the tools it
is offered, in the API's field or in words, answers Yes or No about one image, and the questions of `pathnav doctor`, so
that everything runs through the real client without a network.
It keeps no state between requests: what it does follows from the conversation alone, and the same conversation gets
the same answer. As a server it is strict, see `pathnav.model.stub_rules`.

Usage is counted in units of its own: a token is 4 characters of text or 28 x 28 px of an image. A limit of new tokens
cuts words, not calls.
"""

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pathnav import __version__
from pathnav.geometry import Box
from pathnav.model.stub_conversation import Task, read_task
from pathnav.model.stub_policy import Step, decide
from pathnav.model.stub_questions import Call, plain_answer
from pathnav.model.stub_rules import check_request, content_parts
from pathnav.model.stub_text_tools import action, described_tools
from pathnav.model.stub_vision import Eyes
from pathnav.model.stub_yes_no import Verdict, verdict_on

STUB_MODEL = "stub-pixel-reader"
_WHO = (
    f"This is {STUB_MODEL}, pathnav's offline test server. It is not a model: it measures haematoxylin density in "
    "images, reads the plain pictures of pathnav doctor, and can only act on pathnav's localisation task or answer Yes "
    "or No about an image."
)
_CHARACTERS = 4  # of a token
_LOOK, _REPORT, _FACTS = "extract_roi", "finish_and_report", "get_image_info"


@dataclass(frozen=True, slots=True)
class Spoken:
    """What an answer says.

    Args:
        text: The words.
        calls: The tools that it calls, in order.
        logprobs: Log-probabilities of the text in OpenAI's form, where they were asked for and there are any.
    """

    text: str
    calls: tuple[Call, ...] = ()
    logprobs: dict[str, Any] | None = None


class Stub:
    """Answers chat-completion requests; threads may share it."""

    def __init__(self) -> None:
        self._eyes = Eyes()

    def complete(self, request: object) -> dict[str, Any]:
        """Return the chat-completion body that answers a request body.

        Raises:
            BadRequest: If the request is not legal.
        """
        body = check_request(request)
        task = self.read(body)
        return completion(body, task, self.answer(body, task))

    def read(self, body: Mapping[str, Any]) -> Task:
        """Return what the conversation of a legal request says."""
        return read_task(body["messages"], self._eyes)

    def answer(self, body: Mapping[str, Any], task: Task) -> Spoken:
        """Return what there is to say to a legal request whose conversation has been read."""
        tools = offered(body)
        told = plain_answer(body, task, tools) if task.region is None else None
        if told is not None:
            return Spoken(*told)
        verdict = None if tools else verdict_on(body, task.images)
        if verdict is not None:
            return Spoken(verdict.text, logprobs=_logprobs(body, verdict))
        text, call = _answer(task, tools, body.get("tool_choice"))
        return Spoken(text, () if call is None else (call,))


def completion(body: Mapping[str, Any], task: Task, spoken: Spoken) -> dict[str, Any]:
    """Return the chat-completion body of an answer.

    Calls go into the API's own field, or into the text where the conversation describes the tools in words.
    """
    in_text = described_tools(body) is not None
    written = [action(name, arguments) for name, arguments in spoken.calls] if in_text else []
    message: dict[str, Any] = {"role": "assistant", "content": "\n".join([spoken.text, *written]), "refusal": None}
    if spoken.calls and not in_text:
        numbered = enumerate(spoken.calls, task.calls + 1)
        message["tool_calls"] = [_tool_call(number, *call) for number, call in numbered]
    reason = "tool_calls" if "tool_calls" in message else "stop"
    most = body.get("max_completion_tokens", body.get("max_tokens"))
    if reason == "stop" and type(most) is int and 0 < most < math.ceil(len(message["content"]) / _CHARACTERS):
        message["content"], reason = message["content"][: most * _CHARACTERS], "length"
    choice = {
        "index": 0,
        "message": message,
        "finish_reason": reason,
        "logprobs": spoken.logprobs,
    }
    return {
        "id": f"chatcmpl-{hashlib.sha256(json.dumps(message).encode()).hexdigest()[:24]}",
        "object": "chat.completion",
        "created": 0,  # a clock would make two answers to one request differ
        "model": STUB_MODEL,
        "system_fingerprint": f"pathnav-{__version__}",
        "choices": [choice],
        "usage": _usage(body["messages"], message, task),
    }


def offered(body: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the functions that may be called, by name, whether the API's field or the text offers them."""
    described = described_tools(body)
    if described is not None:
        return described
    choice = body.get("tool_choice")
    functions = {tool["function"]["name"]: tool["function"] for tool in body.get("tools") or []}
    if choice == "none":
        return {}
    if isinstance(choice, dict):
        return {name: function for name, function in functions.items() if name == choice["function"]["name"]}
    return functions


def _tool_call(number: int, name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    function = {"name": name, "arguments": json.dumps(arguments)}
    return {"id": f"call{number:05d}", "type": "function", "function": function}


def _logprobs(body: Mapping[str, Any], verdict: Verdict) -> dict[str, Any] | None:
    return verdict.logprobs(body.get("top_logprobs") or 0) if body.get("logprobs") else None


def _answer(task: Task, offered: Mapping[str, dict[str, Any]], choice: object) -> tuple[str, Call | None]:
    """Return the text and the call of an answer."""
    if task.region is None:
        return _without_task(task, offered, choice)
    step = decide(task, task.region, may_look=_LOOK in offered)
    text = _remark(step)
    if not step.report:
        return text, (_LOOK, _look_arguments(step))
    if _REPORT in offered:
        return text, (_REPORT, _report_arguments(step))
    if offered and _must_call(choice):
        return text, _example_call(offered)
    return f"{text} I would report the box {_whole(step.box).as_list()}.", None


def _without_task(task: Task, offered: Mapping[str, dict[str, Any]], choice: object) -> tuple[str, Call | None]:
    """Return an answer to a conversation that holds no task of pathnav's."""
    seen = "; ".join(f"image {number}: {sight.density:.3f}" for number, sight in enumerate(task.images, 1))
    text = _WHO + (f" Mean haematoxylin density: {seen}." if seen else "")
    if _FACTS in offered and not task.calls:
        return text, (_FACTS, {})
    wanted = _must_call(choice) or _REPORT in offered
    return text, _example_call(offered) if offered and wanted else None


def _must_call(choice: object) -> bool:
    return choice == "required" or isinstance(choice, dict)


def _remark(step: Step) -> str:
    best = f" Best so far {step.best.box.as_list()} at {step.best.worth:.4f}." if step.best else ""
    return f"{STUB_MODEL}: {step.remark}.{best}"


def _look_arguments(step: Step) -> dict[str, Any]:
    x, y, width, height = step.box.as_list()
    return {"x": x, "y": y, "w": width, "h": height, "reason": step.remark}


def _report_arguments(step: Step) -> dict[str, Any]:
    return {"conclusion": step.remark, "bbox": _whole(step.box).as_list(), "confidence": step.confidence}


def _whole(box: Box) -> Box:
    """Return the box in whole pixels, at least one each way."""
    return Box(round(box.x), round(box.y), max(1, round(box.width)), max(1, round(box.height)))


def _example_call(offered: Mapping[str, dict[str, Any]]) -> Call:
    """Return a call of the last function offered, with the least that its schema asks for."""
    name = next(reversed(list(offered)))
    schema = offered[name].get("parameters")
    return name, _example(schema if isinstance(schema, dict) else {"type": "object"})


def _example(schema: Mapping[str, Any]) -> Any:
    """Return the plainest value that a JSON schema allows, as far as `type`, `enum` and `required` tell."""
    if schema.get("enum"):
        return schema["enum"][0]
    if schema.get("anyOf"):
        return _example(schema["anyOf"][0])
    kind = schema.get("type", "object")
    if kind == "object":
        fields = schema.get("properties") or {}
        return {name: _example(fields.get(name) or {"type": "string"}) for name in schema.get("required") or []}
    if kind == "array":
        return [_example(schema.get("items") or {"type": "string"})] * int(schema.get("minItems") or 0)
    plain: dict[Any, Any] = {"number": 1, "integer": 1, "boolean": False, "null": None}
    return plain.get(kind, "none")


def _usage(messages: Sequence[Mapping[str, Any]], answer: Mapping[str, Any], task: Task) -> dict[str, int]:
    parts = [part for message in messages for part in content_parts(message)]
    text = sum(len(part["text"]) for part in parts if part["type"] == "text")
    calls = sum(len(call["function"]["arguments"]) for m in messages for call in m.get("tool_calls") or [])
    blocks = sum(math.ceil(s.width_px / 28) * math.ceil(s.height_px / 28) for s in task.images)
    sent = math.ceil((text + calls) / _CHARACTERS) + blocks
    made = len(answer["content"]) + sum(len(c["function"]["arguments"]) for c in answer.get("tool_calls", []))
    received = math.ceil(made / _CHARACTERS)
    return {"prompt_tokens": sent, "completion_tokens": received, "total_tokens": sent + received}
