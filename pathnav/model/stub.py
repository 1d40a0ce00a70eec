"""`stub-pixel-reader`: a chat-completions server on loopback that navigates by haematoxylin density, and is no model.

What it answers is decided in `stub_answers`, with `stub_rules` (what a strict server refuses), `stub_conversation`
(what the messages say), `stub_vision` (what an image shows), `stub_windows`, `stub_appetite` and `stub_policy` (where
to look and what to report); `stub_text_tools` reads and writes tools in words; `stub_server` speaks HTTP.
`stub_personas` names the quirks of real servers and models that it can play.
"""

from pathnav.model.stub_answers import STUB_MODEL
from pathnav.model.stub_server import StubServer, serve

__all__ = ["STUB_MODEL", "StubServer", "serve"]
