"""The conversation as plain JSON, and as the chat-completions messages that a server accepts.

A message of the state is one of
`{"role": "system", "text"}`, `{"role": "user", "parts": [{"text"} | {"image": SHA256}]}`,
`{"role": "assistant", "text", "calls": [{"id", "name", "arguments": JSON text}]}` and
`{"role": "tool", "call_id", "name", "text", "image": {"caption", "sha256"} | None}`.
Images are names, so that checkpoints and events stay small.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Any

from pathnav.model.parts import image_part, text_part

Message = dict[str, Any]
LoadImage = Callable[[str], bytes]

_BRIDGE = "I will look at what the tools returned."


class Placement(StrEnum):
    """Where the images of tool replies go.

    `user_after_tools`: all replies as text, then one user message with the images; most servers take it.
    `bridge`: the same with an assistant sentence between, for templates that refuse a user turn right after tools.
    `tool`: inside the tool message; only where it is known that the model sees them there.
    """

    USER_AFTER_TOOLS = "user_after_tools"
    BRIDGE = "bridge"
    TOOL = "tool"


def chat_messages(
    history: Sequence[Message], load_image: LoadImage, placement: Placement, image_detail: str
) -> list[Message]:
    """Return the messages to send, images inlined as data URLs.

    Roles alternate as strict templates want: the replies to one turn's calls follow it in order, and what pathnav has
    to say after them joins their images in one user message.
    """
    sent: list[Message] = []
    for message in history:
        for converted in _converted(message, load_image, placement, image_detail):
            _append(sent, converted, placement)
    return sent


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
            {
                "id": call["id"],
                "type": "function",
                "function": {"name": call["name"], "arguments": call["arguments"]},
            }
            for call in message["calls"]
        ]
    return sent


def _part(part: Mapping[str, Any], load_image: LoadImage, detail: str) -> Message:
    return image_part(load_image(part["image"]), detail) if "image" in part else text_part(part["text"])


def _image_parts(image: Mapping[str, str], load_image: LoadImage, detail: str) -> list[Message]:
    return [text_part(image["caption"]), image_part(load_image(image["sha256"]), detail)]


def image_names(history: Iterable[Message]) -> list[str]:
    """Return the names of all images of a conversation, in order, repeats included."""
    names: list[str] = []
    for message in history:
        if message["role"] == "user":
            names += [part["image"] for part in message["parts"] if "image" in part]
        elif message["role"] == "tool" and message["image"]:
            names.append(message["image"]["sha256"])
    return names
