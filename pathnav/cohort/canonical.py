"""The one JSON text of a document, so that equal settings have equal hashes wherever they are hashed."""

import json
import math
from collections.abc import Mapping
from typing import Any


def canonical_text(document: Mapping[str, Any]) -> str:
    """Return the one text of a JSON object: sorted keys, no blanks, whole floats as integers.

    Raises:
        TypeError: If something in it has no JSON form.
        ValueError: Likewise, as NaN has none.
    """
    return json.dumps(_plain(document), sort_keys=True, separators=(",", ":"), allow_nan=False)


def _plain(value: Any) -> Any:
    """Return the value with `10.0` as `10`: a YAML file and an option parser write the same number differently."""
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, float) and math.isfinite(value) and value.is_integer():
        return int(value)
    return value
