"""What one request asks, beside what is the same in all requests to an endpoint."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Question:
    """One request.

    Args:
        messages: OpenAI chat-completions messages, sent exactly as they are.
        tools: OpenAI function schemas of the tools on offer.
        required_tool: The tool that must be called.
        top_logprobs: How many alternatives of each answer token are asked for; None asks for no log-probabilities.
        response_format: What the answer's text is held to, as the API writes it.
    """

    messages: Sequence[Mapping[str, Any]]
    tools: Sequence[Mapping[str, Any]] = ()
    required_tool: str | None = None
    top_logprobs: int | None = None
    response_format: Mapping[str, Any] | None = None
