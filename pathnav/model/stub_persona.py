"""What a persona of the stub is: the pixel reader with one habit of a real server or model."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pathnav.model.stub_answers import Stub
from pathnav.model.stub_rules import check_request

JSON_TYPE = "application/json"


@dataclass(frozen=True, slots=True)
class Served:
    """One HTTP answer.

    Args:
        content: The body.
        status: The HTTP status.
        content_type: Of the body.
        headers: Further headers.
        delay_s: Waited before anything is sent.
        hangs_up: Whether the connection is closed and nothing is sent.
    """

    content: bytes = b""
    status: int = 200
    content_type: str = JSON_TYPE
    headers: Mapping[str, str] = field(default_factory=dict)
    delay_s: float = 0.0
    hangs_up: bool = False

    @classmethod
    def of(cls, answer: Mapping[str, Any]) -> "Served":
        """Return a chat completion as it is sent."""
        return cls(json.dumps(answer).encode())


class Persona:
    """The stub itself, without a quirk; others override `complete` or `serve`. Threads may share one.

    Args:
        seed: Of what a persona draws by chance.
    """

    name = "plain"
    summary = "the stub itself: takes images in tool messages, is strict in all else"

    def __init__(self, seed: int = 0) -> None:
        self.seed = seed
        self.reader = Stub()

    def serve(self, request: object) -> Served:
        """Return the HTTP answer to a request body.

        Raises:
            BadRequest: If it is refused, which the server answers with 400.
        """
        return Served.of(self.complete(request))

    def complete(self, request: object) -> dict[str, Any]:
        """Return the chat-completion body that answers a request body.

        Raises:
            BadRequest: If it is refused.
        """
        return self.reader.complete(request)


def checked(request: object) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return a request body that is legal for the stub, and its messages.

    Raises:
        BadRequest: If it is not.
    """
    body = check_request(request)
    return body, body["messages"]


def turns(messages: Sequence[Mapping[str, Any]]) -> int:
    """Return how often the model has answered; words right after tool messages are taken for a client's bridge."""
    before = [{"role": "system"}, *messages]
    return sum(
        message["role"] == "assistant" and ("tool_calls" in message or earlier["role"] != "tool")
        for earlier, message in zip(before, messages, strict=False)
    )
