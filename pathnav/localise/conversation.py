"""What an agent asks a chat endpoint: every request and reply is on record, and no reply on record is asked for again.

A message of the vlm agent's history is plain JSON, one of
`{"role": "system", "text"}`, `{"role": "user", "parts": [{"text"} | {"image": SHA256}]}`,
`{"role": "assistant", "text", "calls": [{"id", "name", "arguments": JSON text}]}` and
`{"role": "tool", "call_id", "name", "text", "image": {"caption", "sha256"} | None}`.
Images are names, so that events stay small; `chat_messages` makes of it what a server accepts.
"""

import base64
import binascii
import hashlib
import io
import json
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol

from pathnav.errors import RecordError
from pathnav.model import ChatClient, ChatSettings, Reply, Tokens, ToolCall
from pathnav.model.parts import image_part, text_part
from pathnav.model.profile import Placement, Profile
from pathnav.model.reply import parse_arguments

Event = dict[str, Any]
Message = dict[str, Any]
LoadImage = Callable[[str], bytes]

_BRIDGE = "I will look at what the tools returned."
_GONE = "(This image is no longer shown.)"


class Recorder(Protocol):
    """Take down events and images; each id is written once, so that repeated work leaves no second trace."""

    def event(self, id: str, kind: str, **fields: Any) -> None:
        """Append an event; an id that is already there is left as it is."""

    def recall(self, id: str) -> Event | None:
        """Return the event of an id, or None."""

    def image(self, jpeg: bytes) -> str:
        """Keep an encoded image and return its name, the SHA-256 of its bytes in hex."""

    def load_image(self, sha256: str) -> bytes:
        """Return the bytes of a kept image."""


class MemoryRecorder:
    """A recorder that keeps all in memory: for an environment driven by hand, and for tests."""

    def __init__(self) -> None:
        self.events: dict[str, Event] = {}
        self.images: dict[str, bytes] = {}

    def event(self, id: str, kind: str, **fields: Any) -> None:
        """Keep an event under its id, once."""
        self.events.setdefault(id, {"id": id, "kind": kind, **fields})

    def recall(self, id: str) -> Event | None:
        """Return the event of an id, or None."""
        return self.events.get(id)

    def image(self, jpeg: bytes) -> str:
        """Keep an image under its SHA-256."""
        sha256 = hashlib.sha256(jpeg).hexdigest()
        self.images[sha256] = jpeg
        return sha256

    def load_image(self, sha256: str) -> bytes:
        """Return the bytes of a kept image."""
        return self.images[sha256]


class RecordedChat:
    """What an agent is given as `environment.chat`; its calls are in the record and in the ledger."""

    def __init__(self, client: ChatClient, recorder: Recorder) -> None:
        self.client = client
        self._recorder = recorder
        self._asked = 0

    @property
    def settings(self) -> ChatSettings:
        """The endpoint and the decoding."""
        return self.client.settings

    def ask(
        self,
        messages: Sequence[Mapping[str, Any]],
        tools: Sequence[Mapping[str, Any]] = (),
        required_tool: str | None = None,
    ) -> Reply:
        """Return the endpoint's answer to a conversation; arguments and errors are those of `ChatClient.ask`."""
        name, self._asked = f"chat:{self._asked}", self._asked + 1
        self._recorder.event(
            f"request:{name}",
            "request",
            messages_added=[self._by_name(message) for message in messages],
            tools=[tool["function"]["name"] for tool in tools],
            required_tool=required_tool,
        )
        return self._exchange(name, messages, tools, required_tool)

    def take_turn(
        self, turn: int, history: Sequence[Message], schemas: Sequence[dict[str, Any]], required_tool: str | None = None
    ) -> Reply:
        """Return the reply to the whole history of the vlm agent, from the record where it is there.

        `turn` is the number of the request within the episode, from 0, and names its events.

        Raises:
            ContextOverflow: If the conversation is longer than the model takes.
            ModelError: If the endpoint fails for good.
            RecordError: If the turn is on record for another request.
        """
        profile = self.settings.profile
        request = (history, schemas, required_tool, profile.key_fields)
        digest = hashlib.sha256(json.dumps(request, sort_keys=True).encode()).hexdigest()
        known = self._recall(f"reply:{turn}", digest)
        if known is not None:
            return reply_of(known)
        self._recall(f"request:{turn}", digest)
        messages = chat_messages(history, self._recorder.load_image, profile, self.settings.image_detail)
        # Only what is new since the last request: the requests of an episode build on each other.
        before = self._recorder.recall(f"request:{turn - 1}") if turn else None
        start = before["messages_total"] if before else 0
        self._recorder.event(
            f"request:{turn}",
            "request",
            request_sha256=digest,
            messages_before=start,
            messages_added=list(history[start:]),
            messages_total=len(history),
            tools=[schema["function"]["name"] for schema in schemas],
            tool_schemas=None if turn else list(schemas),
            decoding=None if turn else {"model": self.settings.model, **self.settings.decoding},
            required_tool=required_tool,
            profile=None if turn else profile.model_dump(mode="json"),
        )
        return self._exchange(str(turn), messages, schemas, required_tool, request_sha256=digest)

    def _exchange(
        self,
        name: str,
        messages: Sequence[Mapping[str, Any]],
        tools: Sequence[Mapping[str, Any]],
        required_tool: str | None,
        **fields: str,
    ) -> Reply:
        """Ask, and take down the reply."""
        started = time.monotonic()
        reply = self.client.ask(messages, tools, required_tool)
        seconds = round(time.monotonic() - started, 3)
        images = [image for message in messages for image in _inlined(message)]
        told = _reply_fields(reply, images, seconds)
        self._recorder.event(f"reply:{name}", "reply", **fields, **told)
        return reply

    def _recall(self, event_id: str, digest: str) -> Event | None:
        """Return an event on record.

        Raises:
            RecordError: If it belongs to another request.
        """
        known = self._recorder.recall(event_id)
        if known is not None and known["request_sha256"] != digest:
            raise RecordError(
                f"{event_id} of this episode is on record for another request, as after an update of a library; "
                "remove the episode's folder to run it anew"
            )
        return known

    def _by_name(self, message: Mapping[str, Any]) -> dict[str, Any]:
        """Return the message with kept images in place of inlined ones."""
        content = message.get("content")
        if not isinstance(content, list):
            return dict(message)
        parts = [{"image": self._recorder.image(data)} if (data := _image_of(part)) else part for part in content]
        return {**message, "content": parts}


def _reply_fields(reply: Reply, images: Sequence[bytes], seconds: float) -> dict[str, Any]:
    """Return what the record keeps of a reply to a request with these encoded images."""
    return {
        "text": reply.text,
        "reasoning": reply.reasoning,
        "calls": [{"id": call.id, "name": call.name, "arguments": call.raw} for call in reply.calls],
        "finish_reason": reply.finish_reason,
        "refused": reply.refused,
        "tokens": {"input": reply.tokens.input, "output": reply.tokens.output} if reply.tokens else None,
        "retries": reply.retries,
        "seconds": seconds,
        "images_sent": len(images),
        "image_bytes_sent": sum(len(image) for image in images),
        "pixels_sent": sum(_pixels(image) for image in images),
    }


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


def _inlined(message: Mapping[str, Any]) -> list[bytes]:
    content = message.get("content")
    parts = content if isinstance(content, list) else []
    return [data for part in parts if (data := _image_of(part))]


def _image_of(part: Any) -> bytes | None:
    """Return the bytes of an inlined image, None for any other part."""
    try:
        return base64.b64decode(part["image_url"]["url"].partition(";base64,")[2], validate=True) or None
    except (KeyError, TypeError, AttributeError, binascii.Error):
        return None


def _pixels(image: bytes) -> int:
    """Return the pixels of an encoded image, from its header alone; 0 for what Pillow does not know."""
    from PIL import Image, UnidentifiedImageError

    try:
        with Image.open(io.BytesIO(image)) as opened:
            return opened.size[0] * opened.size[1]
    except UnidentifiedImageError:
        return 0


def chat_messages(
    history: Sequence[Message], load_image: LoadImage, profile: Profile, image_detail: str
) -> list[Message]:
    """Return the messages to send, images inlined as data URLs.

    Roles alternate as strict templates want: the replies to one turn's calls follow it in order, and what pathnav has
    to say after them joins their images in one user message.
    """
    sent: list[Message] = []
    for message in _live(history, profile.most_images):
        for converted in _converted(message, load_image, profile.placement, image_detail):
            _append(sent, converted, profile.placement)
    return sent


def _live(history: Sequence[Message], most: int | None) -> list[Message]:
    """Return the history with at most so many images, None for all: the first, which is the overview, and the newest.

    Where an image was, its caption says that it is no longer shown. With room for one image alone it is the newest.
    """
    total = sum(_images_in(message) for message in history)
    if most is None or total <= most:
        return list(history)
    kept = {total - 1} if most == 1 else {0, *range(total - most + 1, total)}
    numbers = iter(range(total))
    return [_with_images(message, numbers, kept) for message in history]


def _images_in(message: Message) -> int:
    """Return how many images a message of a history has."""
    if message["role"] == "user":
        return sum("image" in part for part in message["parts"])
    return int(message["role"] == "tool" and message["image"] is not None)


def _with_images(message: Message, numbers: Iterator[int], kept: Collection[int]) -> Message:
    """Return a message without the images that are not kept; takes one number for each image it has."""
    if message["role"] == "user":
        parts = [
            {"text": _GONE} if "image" in part and next(numbers) not in kept else part for part in message["parts"]
        ]
        return {**message, "parts": parts}
    if message["role"] == "tool" and message["image"] and next(numbers) not in kept:
        return {**message, "image": {**message["image"], "sha256": None}}
    return message


def _converted(message: Message, load_image: LoadImage, placement: Placement, detail: str) -> Iterable[Message]:
    role = message["role"]
    if role == "system":
        yield {"role": "system", "content": message["text"]}
    elif role == "user":
        yield {"role": "user", "content": [_part(part, load_image, detail) for part in message["parts"]]}
    elif role == "assistant":
        yield _assistant(message)
    else:
        image = message["image"]
        parts = _image_parts(image, load_image, detail) if image else []
        if parts and placement is Placement.TOOL:
            text = text_part(message["text"])
            yield {"role": "tool", "tool_call_id": message["call_id"], "content": [text, *parts]}
            return
        yield {"role": "tool", "tool_call_id": message["call_id"], "content": message["text"]}
        if parts:
            yield {"role": "user", "content": parts}


def _append(sent: list[Message], message: Message, placement: Placement) -> None:
    """Add a message; a tool reply goes before the user message that its turn already has, user messages join."""
    if message["role"] == "tool" and sent and sent[-1]["role"] == "user":
        behind = [sent.pop()]
        if placement is Placement.BRIDGE:
            behind.insert(0, sent.pop())
        sent.extend([message, *behind])
    elif message["role"] == "user" and sent and sent[-1]["role"] == "user":
        sent[-1] = {"role": "user", "content": [*sent[-1]["content"], *message["content"]]}
    elif message["role"] == "user" and sent and sent[-1]["role"] == "tool" and placement is Placement.BRIDGE:
        sent.extend([{"role": "assistant", "content": _BRIDGE}, message])
    else:
        sent.append(message)


def _assistant(message: Message) -> Message:
    sent: Message = {"role": "assistant", "content": message["text"]}
    if message["calls"]:
        sent["tool_calls"] = [
            {"id": call["id"], "type": "function", "function": {name: call[name] for name in ("name", "arguments")}}
            for call in message["calls"]
        ]
    return sent


def _part(part: Mapping[str, Any], load_image: LoadImage, detail: str) -> Message:
    return image_part(load_image(part["image"]), detail) if "image" in part else text_part(part["text"])


def _image_parts(image: Mapping[str, str | None], load_image: LoadImage, detail: str) -> list[Message]:
    if image["sha256"] is None:
        return [text_part(f"{image['caption']} {_GONE}")]
    return [text_part(str(image["caption"])), image_part(load_image(image["sha256"]), detail)]
