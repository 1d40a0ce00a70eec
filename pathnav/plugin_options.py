"""Whether the options that a plug-in is given are of the types that its class declares.

Options come from YAML, where `5`, `yes` and `2026-01-01` are no text. Only what a declaration says plainly is held
against a value: a type that is not known here fits anything.
"""

import inspect
import json
import os
import types
from collections.abc import Mapping, Sequence
from numbers import Integral, Real
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

_NAMES = {str: "a text", int: "a whole number", float: "a number", bool: "true or false"}
_LISTS = (Sequence, list, tuple)
_MAPPINGS = (Mapping, dict)


def type_fault(cls: type, given: Mapping[str, Any]) -> str | None:
    """Return what is wrong with the type of an option, None where nothing is.

    Args:
        cls: The plug-in's class; the annotations of its constructor say what it takes.
        given: The options.
    """
    try:
        declared = get_type_hints(inspect.getattr_static(cls, "__init__"))
    except (AttributeError, NameError, TypeError):  # names that only a type checker imports
        return None
    for name, value in given.items():
        if name in declared and not _fits(value, declared[name]):
            return f"option {name} must be {_told(declared[name])}, got {_shown(value)}{_advice(value, declared[name])}"
    return None


def _fits(value: Any, declared: Any) -> bool:
    origin = get_origin(declared)
    if origin in (Union, types.UnionType):
        return any(_fits(value, one) for one in get_args(declared))
    if origin is Literal:
        return value in get_args(declared)
    kind = origin or declared
    if kind in _LISTS:
        return _fits_list(value, get_args(declared))
    if kind in _MAPPINGS:
        return isinstance(value, Mapping)
    return _fits_plain(value, kind)


def _fits_plain(value: Any, kind: Any) -> bool:
    if kind is str or (isinstance(kind, type) and issubclass(kind, os.PathLike)):
        return isinstance(value, str | os.PathLike)
    if kind is bool:
        return isinstance(value, bool)
    if isinstance(value, bool) and kind in (int, float):
        return False
    if kind is int:  # a whole float is that number in a record's keys, too
        return isinstance(value, Integral) or (isinstance(value, float) and value.is_integer())
    if kind is float:
        return isinstance(value, Real)
    return value is None if kind is type(None) else True


def _fits_list(value: Any, items: Sequence[Any]) -> bool:
    if isinstance(value, str) or not isinstance(value, Sequence):
        return False
    same = [one for one in items if one is not Ellipsis]
    return len(same) != 1 or all(_fits(item, same[0]) for item in value)


def _told(declared: Any) -> str:
    """Return what is expected, in words."""
    origin = get_origin(declared)
    if origin in (Union, types.UnionType):
        words = [_told(one) for one in get_args(declared) if one is not type(None)]
        return " or ".join(dict.fromkeys(words))
    if origin is Literal:
        return " or ".join(map(_shown, get_args(declared)))
    kind = origin or declared
    if kind in _LISTS:
        of_texts = str in get_args(declared)
        return "a list of texts" if of_texts else "a list"
    if kind in _MAPPINGS:
        return "a mapping of keys to values"
    if isinstance(kind, type) and issubclass(kind, os.PathLike):
        return _NAMES[str]
    return _NAMES.get(kind, getattr(kind, "__name__", str(kind)))


def _shown(value: Any) -> str:
    return json.dumps(value, default=str, ensure_ascii=False)[:80]


def _advice(value: Any, declared: Any) -> str:
    """Return how to write a text that YAML takes for something else."""
    is_scalar = value is not None and not isinstance(value, str | Mapping | Sequence)
    return "; a text that looks like a number or a word of YAML stands in quotes" * (is_scalar and _fits("", declared))
