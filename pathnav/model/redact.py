"""Keep an endpoint's key out of a record and off the screen, where a server or an agent repeats it as it is."""

import json
from collections.abc import Mapping
from typing import Any

REPLACEMENT = "[key]"
SHORTEST_SECRET = 6
"""Local servers take any text for a key, such as `x`: replacing that would tear words and hashes apart."""
_known: set[str] = set()


def redacted(value: Any, secret: str | None) -> Any:
    """Return JSON, or a text, with `[key]` wherever a text holds the secret, or the secret as JSON writes it."""
    if secret is None or len(secret) < SHORTEST_SECRET:
        return value
    if isinstance(value, str):
        return value.replace(json.dumps(secret)[1:-1], REPLACEMENT).replace(secret, REPLACEMENT)
    if isinstance(value, Mapping):
        return {redacted(name, secret): redacted(item, secret) for name, item in value.items()}
    return [redacted(item, secret) for item in value] if isinstance(value, list | tuple) else value


def remember(secret: str | None) -> None:
    """Keep a key in mind, so that `masked` knows it."""
    if secret is not None:
        _known.add(secret)


def masked(text: str) -> str:
    """Return a text for the screen with `[key]` for every key that this process was given."""
    for secret in sorted(_known, key=len, reverse=True):
        text = redacted(text, secret)
    return text
