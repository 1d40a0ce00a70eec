"""One episode's exchange with a chat endpoint, recorded, and never asked twice for a reply that is on record."""

import hashlib
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pathnav.errors import RecordError
from pathnav.localise.history import Message, chat_messages, image_names, live
from pathnav.localise.recorded_chat import reply_fields
from pathnav.localise.recorder import Event, Recorder
from pathnav.model import ChatClient, ChatSettings, Reply, Tokens, ToolCall
from pathnav.model.reply import parse_arguments


@dataclass(frozen=True, slots=True)
class Conversation:
    """Ask a chat endpoint and take down each request and reply.

    Args:
        chat: The endpoint.
        recorder: Where requests and replies go, and where images come from.
    """

    chat: ChatClient
    recorder: Recorder

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
            RecordError: If the turn is on record for another request.
        """
        profile = self.chat.settings.profile
        digest = _digest(history, schemas, required_tool, profile.key_fields)
        known = self._recall(f"reply:{turn}", digest)
        if known is not None:
            return reply_of(known)
        self._recall(f"request:{turn}", digest)
        detail = self.chat.settings.image_detail
        messages = chat_messages(history, self.recorder.load_image, profile, detail)
        self._record_request(turn, history, schemas, required_tool, digest)
        started = time.monotonic()
        reply = self.chat.ask(messages, schemas, required_tool)
        images = [self.recorder.load_image(name) for name in image_names(live(history, profile.most_images))]
        fields = reply_fields(reply, images, time.monotonic() - started)
        self.recorder.event(f"reply:{turn}", "reply", request_sha256=digest, **fields)
        return reply

    def _recall(self, event_id: str, digest: str) -> Event | None:
        """Return an event on record.

        Raises:
            RecordError: If it belongs to another request.
        """
        known = self.recorder.recall(event_id)
        if known is not None and known["request_sha256"] != digest:
            raise RecordError(
                f"{event_id} of this episode is on record for another request, as after an update of a library; "
                "remove the episode's folder to run it anew"
            )
        return known

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
            tool_schemas=None if turn else list(schemas),
            decoding=None if turn else _decoding(self.chat.settings),
            required_tool=required_tool,
            profile=None if turn else self.chat.settings.profile.model_dump(mode="json"),
        )


def _decoding(settings: ChatSettings) -> dict[str, Any]:
    """Return what is sent beside the messages; it is the same in every request of an episode."""
    return {"model": settings.model, **settings.decoding}


def _digest(*request: Any) -> str:
    return hashlib.sha256(json.dumps(request, sort_keys=True).encode()).hexdigest()


def reply_of(event: Event) -> Reply:
    """Return the reply of an event on record."""
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
        reasoning=event.get("reasoning"),
    )
