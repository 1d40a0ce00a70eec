"""Chat endpoints: the client, what it answers and costs, and an offline server that stands in for a model.

with ChatClient(ChatSettings(base_url="http://127.0.0.1:8000", model="qwen2.5-vl")) as chat:
    reply = chat.ask([{"role": "user", "content": [text_part("What is this?"), image_part(jpeg)]}])
"""

from typing import TYPE_CHECKING

from pathnav._lazy import on_first_use

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

__getattr__ = on_first_use(  # numpy and the stub's Pillow take 0.3 s together
    __name__,
    backoff="Backoff",
    client="ChatClient",
    parts="Message image_part text_part",
    profile="Profile load_profile",
    reply="Reply Tokens ToolCall",
    settings="ChatSettings refuse_tracing",
    stub="STUB_MODEL StubServer serve",
    usage="Usage",
)
