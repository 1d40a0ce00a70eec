"""YAML without its traps: a key that stands twice is an error, not a silent choice."""

from collections.abc import Hashable
from pathlib import Path
from typing import Any

import yaml

from pathnav.cohort.complaints import shown
from pathnav.errors import ConfigError


class _Loader(yaml.SafeLoader):
    """The safe loader, which by itself keeps the last of two equal keys."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen: set[Any] = set()
        for key_node, _ in node.value:
            key = key_node.value
            if key in seen:
                raise yaml.constructor.ConstructorError(None, None, f"key {key!r} stands twice", key_node.start_mark)
            seen.add(key)
        return super().construct_mapping(node, deep)


def read_mapping(path: Path, what: str) -> dict[str, Any]:
    """Return the mapping that a YAML file holds.

    Args:
        path: The file.
        what: What it is, for messages.

    Raises:
        ConfigError: If it cannot be read or holds something else.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{what} file {path} cannot be read: {error}") from error
    document = read_value(text, str(path))
    if not isinstance(document, dict) or not all(isinstance(key, str) for key in document):
        raise ConfigError(f"{path}: a {what} must be a mapping of keys to values, got {shown(document)}")
    return document


def read_value(text: str, source: str) -> Any:
    """Return the value of a YAML text.

    Raises:
        ConfigError: If it is not YAML, with the line.
    """
    try:
        return yaml.load(text, _Loader)
    except yaml.YAMLError as error:
        raise ConfigError(f"{source}: is not YAML: {' '.join(str(error).split())}") from error
