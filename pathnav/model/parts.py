"""The content parts of a user message, as chat-completions servers take them."""

import base64
from typing import Any

Message = dict[str, Any]  # an OpenAI chat-completions message: role, content, tool_calls, tool_call_id


def text_part(text: str) -> dict[str, Any]:
    """Return a text part."""
    return {"type": "text", "text": text}


def image_part(jpeg: bytes, detail: str = "high") -> dict[str, Any]:
    """Return an image part with the JPEG inlined as a `data:` URL.

    Args:
        jpeg: The file's bytes.
        detail: `ChatSettings.image_detail`.
    """
    url = f"data:image/jpeg;base64,{base64.b64encode(jpeg).decode('ascii')}"
    return {"type": "image_url", "image_url": {"url": url, "detail": detail}}
