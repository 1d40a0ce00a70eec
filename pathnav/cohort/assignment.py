"""`--set KEY=VALUE`: one value put into a plain document."""

from typing import Any

from pathnav.cohort.complaints import Place, dotted, shown
from pathnav.cohort.yaml_file import read_value
from pathnav.errors import ConfigError


def parse_assignment(text: str) -> tuple[Place, Any]:
    """Return the place and the value of `KEY=VALUE`: a dotted key, list items by number, and a YAML value.

    Raises:
        ConfigError: If it is not of that form.
    """
    key, equals, value = text.partition("=")
    steps = key.strip().split(".")
    if not equals or not all(steps):
        raise ConfigError(f"--set takes KEY=VALUE such as localise.budget=[5,3,2], got {text!r}")
    return tuple(int(step) if step.isdigit() else step for step in steps), read_value(value, f"--set {key}")


def assign(document: dict[str, Any], place: Place, value: Any) -> None:
    """Put a value into a document; mappings on the way that are missing are made.

    Raises:
        ConfigError: If something on the way can hold no key, or a list has no such item.
    """
    holder: Any = document
    for depth, step in enumerate(place):
        if isinstance(holder, list) and isinstance(step, int) and step < len(holder):
            pass
        elif not isinstance(holder, dict):
            where = dotted(place[:depth])
            raise ConfigError(f"--set {dotted(place)}: {where} is {shown(holder)} and has no {step!r} to be set")
        elif holder.get(step) is None:
            holder[step] = {}
        if depth == len(place) - 1:
            holder[step] = value
        else:
            holder = holder[step]
