"""What a chat endpoint answered, read from the response body itself.

LangChain's `AIMessage` moves malformed tool calls behind the valid ones, re-serialises arguments and fails on servers
that send arguments as an object. So replies are read from the body the server sent, in its order and with its text.
"""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pathnav.model.reasoning import answer_start, split_reasoning

FIRST_TOKENS = 16  # a few blanks, quotes and marks may stand before the word
_REASONING = ("reasoning_content", "reasoning")  # vLLM, SGLang, llama.cpp; OpenRouter, Ollama
_ROUNDING = 1e-3  # a logarithm this far above 0 is a rounded 0, more is no probability
_MOST_TOKENS = 10**12  # of one call; more is no count
_LEAST = -1e6  # servers send -9999 or -inf for "never"; a whole number may be too large for a float


@dataclass(frozen=True, slots=True)
class Tokens:
    """The tokens one call cost, as the server counts them."""

    input: int
    output: int


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One tool call.

    Args:
        id: Unique within the conversation, also where the server repeats or omits ids.
        name: The tool's name as sent; empty where there was none.
        arguments: The parsed arguments; `{}` where the server sent none, None where `raw` is not a JSON object.
        raw: The argument text as sent; the JSON text of it where a server sent an object.
    """

    id: str
    name: str
    arguments: dict[str, Any] | None
    raw: str

    @property
    def resent(self) -> str:
        """The argument text for the history: `raw` where it is a JSON object, else `{}`; any server takes it."""
        return self.raw if self.arguments is not None and self.raw.strip() else "{}"

    def as_message_part(self) -> dict[str, Any]:
        """Return the call as an entry of an assistant message's `tool_calls`."""
        return {"id": self.id, "type": "function", "function": {"name": self.name, "arguments": self.resent}}


@dataclass(frozen=True, slots=True)
class AnswerToken:
    """One token of an answer, with what could have stood in its place.

    Args:
        text: The token as sent, byte-pair marks and all.
        logprob: Natural logarithm of its probability, from -1e6 to 0.
        alternatives: The likeliest tokens of that place with their logarithms, as sent: the token itself may be among
            them.
    """

    text: str
    logprob: float
    alternatives: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True, slots=True)
class Reply:
    """One answer.

    Args:
        text: The text without what the model said to itself, else the refusal's text; empty where there was neither.
        calls: The tool calls in the order sent, malformed ones at their own place.
        finish_reason: The server's word for why it stopped; None where it gave none.
        refused: Whether a content filter or the model's refusal field stopped the answer.
        tokens: None where the server gave no usage; one of 0 prompt tokens is none.
        seconds: From the question to the answer, retries and waits included.
        retries: How many requests failed before this answer.
        bytes_sent: Length of the request bodies, all tries.
        logprobs: The first tokens of the answer, those of a reasoning left out, with their log-probabilities, at most
            `FIRST_TOKENS`; empty where they were not asked for or the server gave none.
        reasoning: What the model said to itself, from the server's own field or from tags in the text; None where
            there was nothing.
    """

    text: str
    calls: tuple[ToolCall, ...]
    finish_reason: str | None
    refused: bool
    tokens: Tokens | None
    seconds: float = 0.0
    retries: int = 0
    bytes_sent: int = 0
    logprobs: tuple[AnswerToken, ...] = ()
    reasoning: str | None = None


def read_reply(
    choice: Mapping[str, Any], usage: object, taken: Collection[str] = (), tags: Sequence[str] = ()
) -> Reply:
    """Return the reply in one choice of a chat completion; never fails, whatever a server sent.

    Args:
        choice: `choices[0]` of the body.
        usage: `usage` of the body, or None.
        taken: Call ids that the conversation already uses.
        tags: Names of tags around what a model says to itself.
    """
    message = choice.get("message")
    message = message if isinstance(message, Mapping) else {}
    content, refusal = message.get("content"), message.get("refusal")
    reason = choice.get("finish_reason")
    text, inline = split_reasoning(_text(content), tags)
    own = next((clean(said) for name in _REASONING if isinstance(said := message.get(name), str) and said), None)
    return Reply(
        text=text or _text(refusal),
        calls=_calls(message.get("tool_calls"), set(taken)),
        finish_reason=clean(reason) if isinstance(reason, str) else None,
        refused=reason == "content_filter" or bool(refusal) or _has_refusal_part(content),
        tokens=_tokens(usage),
        logprobs=_first_tokens(choice.get("logprobs"), tags),
        reasoning="\n\n".join(filter(None, (own, inline))) or None,
    )


def clean(text: str) -> str:
    """Return the text with lone surrogates replaced, so that it can be sent and stored as UTF-8."""
    return text.encode("utf-8", "replace").decode("utf-8")


def parse_arguments(raw: str) -> dict[str, Any] | None:
    """Return the JSON object in an argument text, `{}` for blank text, None for anything else."""
    if not raw.strip():
        return {}
    try:
        parsed = json.loads(raw, parse_constant=_refuse_constant)
        json.dumps(parsed, ensure_ascii=False).encode("utf-8")  # refuses lone surrogates behind \u escapes
    except (ValueError, RecursionError):  # malformed, numbers of 4,300 digits, nesting without end
        return None
    return parsed if isinstance(parsed, dict) else None


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _text(content: object) -> str:
    """Return the text of a content field: a string, or a list of parts (Mistral)."""
    if isinstance(content, str):
        return clean(content)
    parts = content if isinstance(content, list) else []
    texts = [part.get("text") for part in parts if isinstance(part, Mapping) and part.get("type") == "text"]
    return clean("".join(text for text in texts if isinstance(text, str)))


def _has_refusal_part(content: object) -> bool:
    parts = content if isinstance(content, list) else []
    return any(isinstance(part, Mapping) and part.get("type") == "refusal" for part in parts)


def _tokens(usage: object) -> Tokens | None:
    if not isinstance(usage, Mapping):
        return None
    counts = [usage.get("prompt_tokens"), usage.get("completion_tokens")]
    whole = [count for count in counts if type(count) is int and 0 <= count <= _MOST_TOKENS]
    return Tokens(*whole) if len(whole) == 2 and whole[0] > 0 else None  # each request has tokens: 0 is a blank form


def _first_tokens(logprobs: object, tags: Sequence[str]) -> tuple[AnswerToken, ...]:
    """Return the tokens up to the first that cannot be read: those behind it would be taken for earlier ones."""
    content = logprobs.get("content") if isinstance(logprobs, Mapping) else None
    entries = content if isinstance(content, list) else []
    start = answer_start([token[0] if (token := _chance(entry)) else "" for entry in entries], tags) if tags else 0
    found = []
    for entry in entries[start : start + FIRST_TOKENS]:
        token = _chance(entry)
        if token is None:
            break
        others = entry.get("top_logprobs")
        chances = [_chance(other) for other in others] if isinstance(others, list) else []
        found.append(AnswerToken(*token, tuple(chance for chance in chances if chance is not None)))
    return tuple(found)


def _chance(entry: object) -> tuple[str, float] | None:
    """Return a token and the logarithm of its probability; None where an entry names none."""
    text, logprob = (entry.get("token"), entry.get("logprob")) if isinstance(entry, Mapping) else (None, None)
    if not isinstance(text, str) or not isinstance(logprob, int | float) or isinstance(logprob, bool):
        return None
    if not logprob <= _ROUNDING:  # NaN is not either
        return None
    return clean(text), min(0.0, float(max(logprob, _LEAST)))


def _calls(sent: object, taken: set[str]) -> tuple[ToolCall, ...]:
    entries = sent if isinstance(sent, list) else []
    calls = []
    for entry in entries:
        call = _call(entry, taken)
        taken.add(call.id)
        calls.append(call)
    return tuple(calls)


def _call(entry: object, taken: set[str]) -> ToolCall:
    fields = entry if isinstance(entry, Mapping) else {}
    function = fields.get("function")
    function = function if isinstance(function, Mapping) else {}
    name, given_id = function.get("name"), fields.get("id")
    arguments = function.get("arguments") or ""
    raw = clean(arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False))
    call_id = clean(given_id) if isinstance(given_id, str) else ""
    return ToolCall(
        id=call_id if call_id and call_id not in taken else free_id(taken),
        name=clean(name) if isinstance(name, str) else "",
        arguments=parse_arguments(raw),
        raw=raw,
    )


def free_id(taken: set[str]) -> str:
    """Return an unused id of nine letters and digits, the only form that Mistral's templates accept."""
    number = len(taken) + 1
    while (name := f"call{number:05d}") in taken:
        number += 1
    return name
