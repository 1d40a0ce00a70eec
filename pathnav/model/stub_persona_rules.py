"""Personas that are strict, deaf or sparing where other servers are not: they decide about the request alone."""

import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from pathnav.model.stub_persona import Persona, checked
from pathnav.model.stub_rules import BadRequest, content_parts

_MISTRAL_ID = re.compile(r"[A-Za-z0-9]{9}")
_IMAGES_BELONG = "images are only allowed in user messages on this server"


class Strict(Persona):
    """Refuses images in tool messages, and every order of roles but the plainest."""

    name = "strict"
    summary = "400 on images in tool messages, on orphan call ids, and where roles do not alternate"

    def complete(self, request: object) -> dict[str, Any]:
        """Answer what the strictest servers take."""
        _, messages = checked(request)
        for index, message in enumerate(messages):
            if message["role"] == "tool" and _has_image(message):
                raise BadRequest(f"'messages[{index}]' with role 'tool' holds an image; {_IMAGES_BELONG}")
        _check_roles([message["role"] for message in messages])
        return self.reader.complete(request)


class SilentDrop(Persona):
    """Drops images in tool messages, as most chat templates do, and says nothing."""

    name = "silent-drop"
    summary = "images in tool messages are dropped without a word"

    def complete(self, request: object) -> dict[str, Any]:
        """Answer as if images in tool messages had not been sent."""
        body, messages = checked(request)
        return self.reader.complete({**body, "messages": [_without_images(message) for message in messages]})


class MistralOrder(Persona):
    """Refuses a user turn right after tool replies, and call ids of any other form than its own."""

    name = "mistral-order"
    summary = "400 on a user message right after tool messages; call ids are 9 letters or digits"

    def complete(self, request: object) -> dict[str, Any]:
        """Answer what Mistral's chat templates take."""
        _, messages = checked(request)
        for message in messages:
            for call in message.get("tool_calls") or []:
                if not _MISTRAL_ID.fullmatch(call["id"]):
                    raise BadRequest(f"a call's id must be a-z, A-Z, 0-9 with a length of 9, got {call['id']!r}")
        for before, after in pairwise(messages):
            if (before["role"], after["role"]) == ("tool", "user"):
                raise BadRequest("expected the role 'assistant' after the role 'tool', got 'user'")
        return self.reader.complete(request)


class NoLogprobs(Persona):
    """Refuses to be asked for log-probabilities."""

    name = "no-logprobs"
    summary = "400 on a request for log-probabilities"

    def complete(self, request: object) -> dict[str, Any]:
        """Answer what asks for none."""
        body, _ = checked(request)
        if body.get("logprobs"):
            raise BadRequest("'logprobs' and 'top_logprobs' are not supported by this server")
        return self.reader.complete(request)


class NoUsage(Persona):
    """Does not tell what an answer cost."""

    name = "no-usage"
    summary = "answers without the usage field"

    def complete(self, request: object) -> dict[str, Any]:
        """Answer without usage."""
        answer = self.reader.complete(request)
        return {name: value for name, value in answer.items() if name != "usage"}


def _check_roles(roles: Sequence[str]) -> None:
    """Refuse what is not: system or nothing, then user and assistant in turn, with tools behind an assistant."""
    spoken = roles[1:] if roles[0] in ("system", "developer") else roles
    for role in ("system", "developer"):
        if role in spoken:
            raise BadRequest(f"the role {role!r} is only allowed in the first message")
    if not spoken or spoken[0] != "user":
        raise BadRequest("a conversation must begin with the role 'user', after a system message at most")
    for before, after in pairwise(spoken):
        if before == after != "tool":
            raise BadRequest(f"the roles 'user' and 'assistant' must alternate, got {after!r} twice in a row")
    if spoken[-1] == "assistant":
        raise BadRequest("a conversation must end with the role 'user' or 'tool', got 'assistant'")


def _has_image(message: Mapping[str, Any]) -> bool:
    return any(part["type"] == "image_url" for part in content_parts(message))


def _without_images(message: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a message; of a tool's message the texts alone."""
    if message["role"] != "tool" or not _has_image(message):
        return message
    texts = [part for part in content_parts(message) if part["type"] == "text"]
    return {**message, "content": texts or ""}
