"""The one text of a setting, so that equal settings make equal keys."""

import hashlib
from collections.abc import Mapping
from typing import Any

from pathnav.errors import ConfigError
from pathnav.settings import canonical_text

KEY_DIGITS = 20
"""Hexadecimal digits of a key: 80 bits, so that among a million episodes two meet with probability 4e-13."""


def canonical_json(document: Mapping[str, Any]) -> str:
    """Return the one text of a JSON object: sorted keys, no blanks, whole floats as integers.

    Raises:
        ConfigError: If something in it has no JSON form.
    """
    try:
        return canonical_text(document)
    except (TypeError, ValueError) as error:
        raise ConfigError(f"a setting cannot be written as JSON: {error}") from error


def hashed(document: Mapping[str, Any]) -> str:
    """Return the key of a JSON object: the first 20 hexadecimal digits of its text's SHA-256.

    Raises:
        ConfigError: If something in it has no JSON form.
    """
    return hashlib.sha256(canonical_json(document).encode()).hexdigest()[:KEY_DIGITS]
