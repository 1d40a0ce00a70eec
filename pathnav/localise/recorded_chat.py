"""A chat endpoint whose every request and reply is taken down, whoever asks."""

import base64
import binascii
import io
import time
from collections.abc import Mapping, Sequence
from typing import Any

from pathnav.localise.recorder import Recorder
from pathnav.model import ChatClient, ChatSettings, Reply


class RecordedChat:
    """What an agent is given as `environment.chat`; its calls are in the record and in the ledger.

    Args:
        client: The endpoint.
        recorder: Where requests and replies go.
    """

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
        number, self._asked = self._asked, self._asked + 1
        images = [data for message in messages for data in _inlined(message)]
        self._recorder.event(
            f"request:chat:{number}",
            "request",
            messages_added=[self._by_name(message) for message in messages],
            tools=[tool["function"]["name"] for tool in tools],
            required_tool=required_tool,
        )
        started = time.monotonic()
        reply = self.client.ask(messages, tools, required_tool)
        fields = reply_fields(reply, images, time.monotonic() - started)
        self._recorder.event(f"reply:chat:{number}", "reply", **fields)
        return reply

    def _by_name(self, message: Mapping[str, Any]) -> dict[str, Any]:
        """Return the message with kept images in place of inlined ones."""
        content = message.get("content")
        if not isinstance(content, list):
            return dict(message)
        parts = [{"image": self._recorder.image(data)} if (data := _image_of(part)) else part for part in content]
        return {**message, "content": parts}


def reply_fields(reply: Reply, images: Sequence[bytes], seconds: float) -> dict[str, Any]:
    """Return what the record keeps of a reply.

    Args:
        reply: The reply.
        images: The encoded images of its request.
        seconds: From question to answer.
    """
    return {
        "text": reply.text,
        "reasoning": reply.reasoning,
        "calls": [{"id": call.id, "name": call.name, "arguments": call.raw} for call in reply.calls],
        "finish_reason": reply.finish_reason,
        "refused": reply.refused,
        "tokens": {"input": reply.tokens.input, "output": reply.tokens.output} if reply.tokens else None,
        "retries": reply.retries,
        "seconds": round(seconds, 3),
        "images_sent": len(images),
        "image_bytes_sent": sum(len(image) for image in images),
        "pixels_sent": sum(_pixels(image) for image in images),
    }


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
