"""Chat endpoints: the client, what it answers and costs, and an offline server that stands in for a model.

with ChatClient(ChatSettings(base_url="http://127.0.0.1:8000", model="qwen2.5-vl")) as chat:
    reply = chat.ask([{"role": "user", "content": [text_part("What is this?"), image_part(jpeg)]}])
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathnav.model.backoff import Backoff
    from pathnav.model.client import ChatClient
    from pathnav.model.parts import Message, image_part, text_part
    from pathnav.model.profile import Profile, load_profile
    from pathnav.model.reply import Reply, Tokens, ToolCall
    from pathnav.model.settings import ChatSettings, refuse_tracing
    from pathnav.model.stub import STUB_MODEL, StubServer, serve
    from pathnav.model.usage import Usage

__all__ = [
    "STUB_MODEL",
    "Backoff",
    "ChatClient",
    "ChatSettings",
    "Message",
    "Profile",
    "Reply",
    "StubServer",
    "Tokens",
    "ToolCall",
    "Usage",
    "image_part",
    "load_profile",
    "refuse_tracing",
    "serve",
    "text_part",
]

_HOMES = {
    "Backoff": "backoff",
    "ChatClient": "client",
    "ChatSettings": "settings",
    "Message": "parts",
    "Profile": "profile",
    "Reply": "reply",
    "STUB_MODEL": "stub",
    "StubServer": "stub",
    "Tokens": "reply",
    "ToolCall": "reply",
    "Usage": "usage",
    "image_part": "parts",
    "load_profile": "profile",
    "refuse_tracing": "settings",
    "serve": "stub",
    "text_part": "parts",
}


def __getattr__(name: str) -> Any:
    """Import an exported name when it is first used: numpy and the stub's Pillow take 0.3 s together."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = found
    return found
