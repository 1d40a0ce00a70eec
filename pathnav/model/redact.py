"""Keep an endpoint's key out of a record and off the screen, also where a server or an agent repeats it.

A key is found as it is, behind JSON escapes (`\\u0073`, `\\/`, of texts within texts too), percent-encoded, these
mixed, and within base64, wherever in the encoded text it begins.
"""

import base64
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

REPLACEMENT = "[key]"
SHORTEST_SECRET = 6
"""Local servers take any text for a key, such as `x`: replacing that would tear words and hashes apart."""
_URL_SAFE = {"+": "-", "/": "_"}
_BACKSLASHES = r"\\{1,8}"  # each text within a text doubles them; without a limit a row of them would take for ever
_ESCAPE = re.compile(r'\\{1,8}(?:u([0-9a-fA-F]{4})|(?=[/"\\]))|%(?:25){0,4}([0-9a-fA-F]{2})')
_SHORT = 4_000  # characters; below, all forms are searched for at once
_known: set[str] = set()


def redacted(value: Any, secret: str | None) -> Any:
    """Return JSON, or a text, with `[key]` wherever a text holds the secret.

    Args:
        value: JSON types, tuples among them.
        secret: The key; None, or one of fewer than 6 characters, which is none, leaves all as it is.
    """
    return value if secret is None or len(secret) < SHORTEST_SECRET else _without(value, secret)


def remember(secret: str | None) -> None:
    """Keep a key in mind, so that `masked` knows it."""
    if secret is not None and len(secret) >= SHORTEST_SECRET:
        _known.add(secret)


def masked(text: str) -> str:
    """Return a text for the screen with `[key]` for every key that this process was given."""
    for secret in sorted(_known, key=len, reverse=True):
        text = _without(text, secret)
    return text


def _without(value: Any, secret: str) -> Any:
    if isinstance(value, str):
        return _pattern(secret).sub(REPLACEMENT, value) if _may_hold(value, secret) else value
    if isinstance(value, Mapping):
        return {_without(name, secret): _without(item, secret) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_without(item, secret) for item in value]
    return value


def _may_hold(text: str, secret: str) -> bool:
    """Return whether it is worth a search of all forms, which takes a second for a million characters."""
    if len(text) < len(secret):
        return False
    literals = _literals(secret)
    if any(literal in text for literal in literals):
        return True
    if "\\" not in text and "%" not in text:
        return False
    if len(text) <= _SHORT or "\\" in secret or "%" in secret or not secret.isascii():
        return True
    plain = _ESCAPE.sub(lambda found: chr(int(found[1] or found[2], 16)) if found[1] or found[2] else "", text)
    return any(literal in plain for literal in literals)


@lru_cache(maxsize=64)
def _literals(secret: str) -> tuple[str, ...]:
    """Return the forms without any escape."""
    encoded = [_core(secret, before) for before in range(3)]
    return (secret, *encoded, *(one.translate(str.maketrans("+/", "-_")) for one in encoded))


@lru_cache(maxsize=64)
def _pattern(secret: str) -> re.Pattern[str]:
    """Return what finds a secret in all its forms."""
    plain = "".join(_character(character) for character in secret)
    return re.compile("|".join((plain, *(_in_base64(secret, before) for before in range(3)))))


def _character(character: str) -> str:
    """Return the forms of one character."""
    units = character.encode("utf-16-be", "surrogatepass").hex()
    escaped = "".join(f"{_BACKSLASHES}u{units[at : at + 4]}" for at in range(0, len(units), 4))
    percent = "".join(f"%(?:25){{0,4}}{byte:02x}" for byte in character.encode("utf-8", "surrogatepass"))
    plain = rf"\\{{0,8}}{re.escape(character)}" if character in '/"\\' else re.escape(character)
    return f"(?:{plain}|(?i:{escaped}|{percent}))"


def _in_base64(secret: str, before: int) -> str:
    """Return the forms of a secret in base64 where so many bytes of its first group of three stand before it.

    A sign that holds bits of the secret and of a neighbour goes with it.
    """
    sign = "[A-Za-z0-9+/_-]"
    forms = (f"(?:{_character(one)}|{_character(_URL_SAFE.get(one, one))})" for one in _core(secret, before))
    is_shared = 8 * (before + len(secret.encode("utf-8", "surrogatepass"))) % 6 != 0
    return (f"{sign}?" if before else "") + "".join(forms) + (f"{sign}?" if is_shared else "")


def _core(secret: str, before: int) -> str:
    """Return the signs of base64 that hold bits of the secret alone."""
    content = bytes(before) + secret.encode("utf-8", "surrogatepass")
    return base64.b64encode(content).decode()[-(-8 * before // 6) : 8 * len(content) // 6]
