"""Keep an endpoint's key out of a record, also where a server or an agent repeats it."""

from collections.abc import Mapping
from typing import Any

REPLACEMENT = "[key]"
SHORTEST_SECRET = 6
"""Local servers take any text for a key, such as `x`: replacing that would tear words and hashes apart."""


def redacted(value: Any, secret: str | None) -> Any:
    """Return JSON, or a text, with `[key]` wherever a text holds the secret.

    Args:
        value: JSON types, tuples among them.
        secret: The key; None, or one of fewer than 6 characters, which is none, leaves all as it is.
    """
    if secret is None or len(secret) < SHORTEST_SECRET:
        return value
    if isinstance(value, str):
        return value.replace(secret, REPLACEMENT)
    if isinstance(value, Mapping):
        return {redacted(name, secret): redacted(item, secret) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [redacted(item, secret) for item in value]
    return value
