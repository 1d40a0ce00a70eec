"""The conversation as plain JSON, and as the chat-completions messages that a server accepts.

A message of the state is one of
`{"role": "system", "text"}`, `{"role": "user", "parts": [{"text"} | {"image": SHA256}]}`,
`{"role": "assistant", "text", "calls": [{"id", "name", "arguments": JSON text}]}` and
`{"role": "tool", "call_id", "name", "text", "image": {"caption", "sha256"} | None}`.
Images are names, so that checkpoints and events stay small.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from pathnav.model.parts import image_part, text_part
from pathnav.model.profile import Placement, Profile

Message = dict[str, Any]
LoadImage = Callable[[str], bytes]

_BRIDGE = "I will look at what the tools returned."
_GONE = "(This image is no longer shown.)"


def chat_messages(
    history: Sequence[Message], load_image: LoadImage, profile: Profile, image_detail: str
) -> list[Message]:
    """Return the messages to send, images inlined as data URLs.

    Roles alternate as strict templates want: the replies to one turn's calls follow it in order, and what pathnav has
    to say after them joins their images in one user message.
    """
    sent: list[Message] = []
    for message in live(history, profile.most_images):
        for converted in _converted(message, load_image, profile.placement, image_detail):
            _append(sent, converted, profile.placement)
    return sent


def live(history: Sequence[Message], most: int | None) -> list[Message]:
    """Return the conversation with at most so many images: the first, which is the overview, and the newest ones.

    Where an image was, its caption says that it is no longer shown. With room for one image alone it is the newest.

    Args:
        history: The conversation.
        most: Images that may stay, None for all.
    """
    total = len(image_names(history))
    if most is None or total <= most:
        return list(history)
    kept = {total - 1} if most == 1 else {0, *range(total - most + 1, total)}
    numbers = iter(range(total))
    return [_with_images(message, numbers, kept) for message in history]


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


def _image_parts(image: Mapping[str, str | None], load_image: LoadImage, detail: str) -> list[Message]:
    if image["sha256"] is None:
        return [text_part(f"{image['caption']} {_GONE}")]
    return [text_part(str(image["caption"])), image_part(load_image(image["sha256"]), detail)]


def image_names(history: Iterable[Message]) -> list[str]:
    """Return the names of all images of a conversation, in order, repeats included."""
    names: list[str] = []
    for message in history:
        if message["role"] == "user":
            names += [part["image"] for part in message["parts"] if "image" in part]
        elif message["role"] == "tool" and message["image"] and message["image"]["sha256"]:
            names.append(message["image"]["sha256"])
    return names
