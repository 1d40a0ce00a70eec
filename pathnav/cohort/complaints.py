"""Sentences for what pydantic found wrong: where it is, what was expected, what came."""

import difflib
import json
from collections.abc import Iterable, Mapping
from typing import Any, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

Place = tuple[int | str, ...]
"""Keys and indices from the document's root to a value."""

_SHOWN_CHARACTERS = 80
_FIXED_REASONS = {"missing": "missing", "extra_forbidden": "unknown key", "too_short": "must not be empty"}
_EXPECTED = {"model_type": "a mapping of keys to values", "tuple_type": "a list", "string_type": "a text"}


def dotted(place: Iterable[int | str]) -> str:
    """Return a place as users write it, e.g. `cohort.slides.0.path`."""
    return ".".join(str(step) for step in place)


def shown(value: Any) -> str:
    """Return a value as JSON, cut where it is long."""
    text = json.dumps(value, default=str, ensure_ascii=False)
    return text if len(text) <= _SHOWN_CHARACTERS else text[: _SHOWN_CHARACTERS - 3] + "..."


def complaints(error: ValidationError) -> list[ErrorDetails]:
    """Return what pydantic found, without what only follows from it: a list is not too short for its bad items."""
    return [
        detail
        for detail in error.errors()
        if not (detail["type"] == "too_short" and len(detail["input"]) >= detail["ctx"]["min_length"])
    ]


def reason(error: ErrorDetails) -> str:
    """Return what is wrong with the value of one pydantic error, without its place."""
    kind, context = error["type"], error.get("ctx", {})
    if kind in _FIXED_REASONS:
        return _FIXED_REASONS[kind]
    if kind == "value_error":
        return str(context["error"])
    expected = _EXPECTED.get(kind) or error["msg"].removeprefix("Input should be ")
    return f"must be {expected}, got {shown(error['input'])}"


def suggestion(model: type[BaseModel], place: Place) -> str:
    """Return a hint on an unknown key: the nearest key beside it, else one of that name elsewhere, else those known.

    Args:
        model: Model of the whole document.
        place: Where the unknown key is.
    """
    *parents, key = place
    beside = list(_model_at(model, parents).model_fields)
    elsewhere = {name.rpartition(".")[2]: name for name in reversed(_all_keys(model))}
    if key in elsewhere:
        return f"did you mean {elsewhere[key]}?"
    near = difflib.get_close_matches(str(key), beside, n=1, cutoff=0.6)
    if not near:
        near = [elsewhere[name] for name in difflib.get_close_matches(str(key), elsewhere, n=1, cutoff=0.75)]
    return f"did you mean {near[0]}?" if near else f"known keys: {', '.join(beside)}"


def _model_at(model: type[BaseModel], place: Iterable[int | str]) -> type[BaseModel]:
    for step in place:
        if isinstance(step, str) and step in model.model_fields:
            model = _inner_model(model.model_fields[step].annotation) or model
    return model


def _inner_model(annotation: Any) -> type[BaseModel] | None:
    """Return the model inside `Model | None`, `tuple[Model, ...]` and the like."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((found for part in get_args(annotation) if (found := _inner_model(part))), None)


def _all_keys(model: type[BaseModel], prefix: str = "") -> list[str]:
    keys: list[str] = []
    for name, field in model.model_fields.items():
        keys.append(prefix + name)
        inner = _inner_model(field.annotation)
        if inner is not None:
            keys += _all_keys(inner, f"{prefix}{name}.")
    return keys


def value_at(document: Any, place: Iterable[int | str]) -> Any:
    """Return the value at a place of a plain document, None where there is none."""
    for step in place:
        if isinstance(document, Mapping):
            document = document.get(step)
        elif isinstance(document, list) and isinstance(step, int) and step < len(document):
            document = document[step]
        else:
            return None
    return document
