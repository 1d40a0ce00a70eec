"""One episode's exchange with a chat endpoint, recorded, and never asked twice for a reply that is on record."""

import hashlib
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pathnav.localise.history import Message, Placement, chat_messages, image_names
from pathnav.localise.recorder import Event, Recorder
from pathnav.model import ChatClient, Reply, Tokens, ToolCall
from pathnav.model.reply import parse_arguments


@dataclass(frozen=True, slots=True)
class Conversation:
    """Ask a chat endpoint and take down each request and reply.

    Args:
        chat: The endpoint.
        recorder: Where requests and replies go, and where images come from.
        placement: Where images of tool replies go.
    """

    chat: ChatClient
    recorder: Recorder
    placement: Placement

    def ask(
        self, turn: int, history: Sequence[Message], schemas: Sequence[dict[str, Any]], required_tool: str | None = None
    ) -> Reply:
        """Return the reply to a conversation.

        Args:
            turn: Number of the request within the episode, from 0; names its events.
            history: The whole conversation so far, see `pathnav.localise.history`.
            schemas: Function schemas of the tools on offer.
            required_tool: The tool that must be called.

        Raises:
            ContextOverflow: If the conversation is longer than the model takes.
            ModelError: If the endpoint fails for good.
        """
        digest = _digest(history, schemas, required_tool, self.placement)
        known = self.recorder.recall(f"reply:{turn}")
        if known is not None and known["request_sha256"] == digest:
            return _reply_of(known)
        detail = self.chat.settings.image_detail
        messages = chat_messages(history, self.recorder.load_image, self.placement, detail)
        self._record_request(turn, history, schemas, required_tool, digest)
        started = time.monotonic()
        reply = self.chat.ask(messages, schemas, required_tool)
        self._record_reply(turn, reply, history, digest, time.monotonic() - started)
        return reply

    def _record_request(
        self,
        turn: int,
        history: Sequence[Message],
        schemas: Sequence[dict[str, Any]],
        required_tool: str | None,
        digest: str,
    ) -> None:
        """Take down what is new since the last request: the requests of an episode build on each other."""
        before = self.recorder.recall(f"request:{turn - 1}") if turn else None
        start = before["messages_total"] if before else 0
        self.recorder.event(
            f"request:{turn}",
            "request",
            request_sha256=digest,
            messages_before=start,
            messages_added=list(history[start:]),
            messages_total=len(history),
            tools=[schema["function"]["name"] for schema in schemas],
            required_tool=required_tool,
            placement=str(self.placement),
        )

    def _record_reply(self, turn: int, reply: Reply, history: Sequence[Message], digest: str, seconds: float) -> None:
        images = [self.recorder.load_image(name) for name in image_names(history)]
        self.recorder.event(
            f"reply:{turn}",
            "reply",
            request_sha256=digest,
            text=reply.text,
            calls=[{"id": c.id, "name": c.name, "arguments": c.raw} for c in reply.calls],
            finish_reason=reply.finish_reason,
            refused=reply.refused,
            tokens={"input": reply.tokens.input, "output": reply.tokens.output} if reply.tokens else None,
            retries=reply.retries,
            seconds=round(seconds, 3),
            images_sent=len(images),
            image_bytes_sent=sum(len(image) for image in images),
            pixels_sent=sum(_pixels(image) for image in images),
        )


def _pixels(jpeg: bytes) -> int:
    """Return the pixels of an encoded image, from its header alone."""
    import io

    from PIL import Image

    with Image.open(io.BytesIO(jpeg)) as image:
        return image.size[0] * image.size[1]


def _digest(*request: Any) -> str:
    return hashlib.sha256(json.dumps(request, sort_keys=True).encode()).hexdigest()


def _reply_of(event: Event) -> Reply:
    tokens = event["tokens"]
    calls = (ToolCall(c["id"], c["name"], parse_arguments(c["arguments"]), c["arguments"]) for c in event["calls"])
    return Reply(
        text=event["text"],
        calls=tuple(calls),
        finish_reason=event["finish_reason"],
        refused=event["refused"],
        tokens=Tokens(tokens["input"], tokens["output"]) if tokens else None,
        seconds=event["seconds"],
        retries=event["retries"],
    )
