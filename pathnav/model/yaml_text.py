"""YAML text of a settings file, read strictly: a key that stands twice is an error, not a silent choice."""

from collections.abc import Hashable
from typing import Any

import yaml

from pathnav.errors import ConfigError


class _Loader(yaml.SafeLoader):
    """The safe loader, which by itself keeps the last of two equal keys."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        keys = [key.value for key, _ in node.value]
        for key, _ in node.value:
            if keys.count(key.value) > 1:
                raise yaml.constructor.ConstructorError(None, None, f"key {key.value!r} stands twice", key.start_mark)
        return super().construct_mapping(node, deep)


def mapping_of(text: str, source: str, expected_format: str) -> dict[str, Any]:
    """Return the mapping that a YAML text holds.

    Args:
        text: The text.
        source: Where it comes from, for messages.
        expected_format: What its key `format` must say.

    Raises:
        ConfigError: If it is no YAML, no mapping, or of another format.
    """
    try:
        document = yaml.load(text, _Loader)
    except yaml.YAMLError as error:
        raise ConfigError(f"{source}: is not YAML: {' '.join(str(error).split())}") from error
    if not isinstance(document, dict) or document.get("format") != expected_format:
        raise ConfigError(f"{source}: expected a mapping whose first line is `format: {expected_format}`")
    return document
