"""Settings that users write: YAML read strictly, faults told in sentences with file, line and key, one text to hash.

What is wrong with a text raises a ConfigError. A document is kept as its node tree until it is checked, since every
node knows the file and line, or the option, that it comes from, also where a tree was put together from several.
"""

import difflib
import json
import math
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, TypeVar, get_args

import yaml
from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationError
from pydantic_core import ErrorDetails

from pathnav.errors import ConfigError

Place = tuple[int | str, ...]
"""Keys and indices from a document's root to a value."""
Model = TypeVar("Model", bound=BaseModel)

_SHOWN_CHARACTERS = 80
_REASONS = {"missing": "missing", "extra_forbidden": "unknown key", "too_short": "must not be empty"}
_EXPECTED = {  # pydantic speaks of tuples and of "valid integers"
    **dict.fromkeys(("model_type", "dict_type"), "a mapping of keys to values"),
    **dict.fromkeys(("tuple_type", "list_type"), "a list"),
    **dict.fromkeys(("int_type", "int_parsing", "int_from_float"), "a whole number"),
    **dict.fromkeys(("float_type", "float_parsing"), "a number"),
    **dict.fromkeys(("bool_type", "bool_parsing"), "true or false"),
    "string_type": "a text",
}


class Frozen(BaseModel):
    """A value object: unknown keys are errors, nothing changes after it is made."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", strict=True, allow_inf_nan=False, arbitrary_types_allowed=True
    )


def _text(value: Any) -> Any:
    if isinstance(value, str) and not value.strip():
        raise ValueError("must not be empty")
    return value


Text = Annotated[str, BeforeValidator(_text)]
"""A text that says something."""


def is_number(value: Any) -> bool:
    """Return whether a value is a JSON number: `true` and `"3"` are not."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def dotted(place: Iterable[int | str]) -> str:
    """Return a place as users write it, e.g. `cohort.slides.0.path`."""
    return ".".join(str(step) for step in place)


def shown(value: Any) -> str:
    """Return a value as JSON, cut where it is long."""
    text = json.dumps(value, default=str, ensure_ascii=False)
    return text if len(text) <= _SHOWN_CHARACTERS else text[: _SHOWN_CHARACTERS - 3] + "..."


def value_at(document: Any, place: Place) -> Any:
    """Return the value at a place of a plain document, which is there."""
    for step in place:
        document = document[step]
    return document


def plain(value: Any) -> Any:
    """Return the value with `10.0` as `10`: a YAML file and an option parser write the same number differently."""
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, float) and math.isfinite(value) and value.is_integer():
        return int(value)
    return value


def canonical_text(document: Mapping[str, Any]) -> str:
    """Return the one text of a JSON object, so that equal settings have equal hashes: sorted keys, no blanks."""
    return json.dumps(plain(document), sort_keys=True, separators=(",", ":"), allow_nan=False)


class _Loader(yaml.SafeLoader):
    """The safe loader, which by itself keeps the last of two equal keys."""

    def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:
        node: yaml.MappingNode = super().compose_mapping_node(anchor)
        seen: set[str] = set()
        for key, _ in node.value:
            if str(key.value) in seen:
                raise yaml.composer.ComposerError(None, None, f"key {key.value!r} stands twice", key.start_mark)
            seen.add(str(key.value))
        self.flatten_mapping(node)  # `<<` is no key: what it merges in stands before the mapping's own
        node.value = list({str(key.value): (key, value) for key, value in node.value}.values())
        return node


def compose(text: str, source: str) -> yaml.Node:
    """Return the node tree of a YAML text; every node knows its source and line."""
    try:
        loader = _Loader(text)
        loader.name = source
        node = loader.get_single_node() or yaml.ScalarNode("tag:yaml.org,2002:null", "", loader.get_mark())
        _refuse_loops(node, (), set())
        return node
    except yaml.YAMLError as error:
        raise ConfigError(f"{source}: is not YAML: {' '.join(str(error).split())}") from error


def _refuse_loops(node: yaml.Node, above: tuple[int, ...], sound: set[int]) -> None:
    """Refuse an alias that stands within what it names; `sound` are the nodes that are known to hold none."""
    if id(node) in above:
        raise yaml.composer.ComposerError(None, None, "a value that holds itself", node.start_mark)
    if isinstance(node, yaml.CollectionNode) and id(node) not in sound:
        for item in node.value:
            for inner in item if isinstance(item, tuple) else (item,):
                _refuse_loops(inner, (*above, id(node)), sound)
        sound.add(id(node))


def compose_mapping(text: str, source: str, what: str, expected_format: str | None = None) -> yaml.MappingNode:
    """Return the node tree of a YAML text that holds a mapping, of a format if one is expected."""
    node = compose(text, source)
    document = construct(node)
    if expected_format is not None and (not isinstance(document, dict) or document.get("format") != expected_format):
        raise ConfigError(f"{source}: expected a mapping whose first line is `format: {expected_format}`")
    if not isinstance(node, yaml.MappingNode):
        raise ConfigError(f"{source}: a {what} must be a mapping of keys to values, got {shown(document)}")
    if (wrong := next((key for key in document if not isinstance(key, str)), None)) is not None:
        raise ConfigError(told(node, (str(wrong),), "unknown key: those of a " + what + " are texts"))
    return node


def construct(node: yaml.Node) -> Any:
    """Return the plain value of a node tree."""
    try:
        return yaml.SafeLoader("").construct_document(node)
    except (yaml.YAMLError, ValueError) as error:  # ValueError: the 31st of February
        raise ConfigError(f"{node.start_mark.name}: is not YAML: {' '.join(str(error).split())}") from error


def child(node: yaml.Node, step: int | str) -> yaml.Node | None:
    """Return the node at a key of a mapping or an index of a list, None where there is none."""
    if isinstance(node, yaml.MappingNode):
        return next((value for key, value in node.value if key.value == str(step)), None)
    is_item = isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value)
    return node.value[step] if is_item else None


def put(node: yaml.Node, place: Place, value: yaml.Node) -> None:
    """Put a node into a tree; mappings on the way that are missing are made."""
    mark = value.start_mark
    for depth, step in enumerate(place):
        found, is_last = child(node, step), depth == len(place) - 1
        if found is None and not isinstance(node, yaml.MappingNode):
            where = f"{dotted(place[:depth])} is {shown(construct(node))} and has no {step!r} to be set"
            raise ConfigError(f"{mark.name}: {where}")
        if is_last or found is None or found.tag == "tag:yaml.org,2002:null":
            found = value if is_last else yaml.MappingNode("tag:yaml.org,2002:map", [], mark, mark)
            _replace(node, step, found)
        node = found


def _replace(node: yaml.Node, step: int | str, value: yaml.Node) -> None:
    """Put a node at a key of a mapping, in the place of the one that is there, or at an index of a list that is."""
    if isinstance(node, yaml.SequenceNode):
        node.value[int(step)] = value
        return
    mark = value.start_mark
    key = yaml.ScalarNode("tag:yaml.org,2002:str", str(step), mark, mark)
    index = next((index for index, pair in enumerate(node.value) if pair[0].value == key.value), len(node.value))
    node.value[index : index + 1] = [(key, value)]


def told(root: yaml.Node, place: Place, text: str) -> str:
    """Return a sentence on the value at a place, with the file and line, or the option, that it comes from."""
    node, mark = root, root.start_mark
    for step in place:
        found = child(node, step)
        if found is None:
            break
        keys = node.value if isinstance(node, yaml.MappingNode) else ()
        mark = next((key.start_mark for key, value in keys if key.value == str(step)), found.start_mark)
        node = found
    line = f", line {mark.line + 1}" if Path(mark.name).is_file() else ""
    key = dotted(place) if mark.name != f"--set {dotted(place)}" else ""
    return ": ".join(part for part in (f"{mark.name}{line}", key, text) if part)


def validated(model: type[Model], root: yaml.Node) -> Model:
    """Return the model of a node tree."""
    try:
        return model.model_validate(construct(root))
    except ValidationError as error:
        raise ConfigError("\n".join(told(root, *fault) for fault in faults(error, model))) from error


def faults(error: ValidationError, model: type[BaseModel]) -> Iterator[tuple[Place, str]]:
    """Yield what pydantic found wrong with a document: the place, what was expected, what came."""
    for detail in error.errors(include_url=False):
        if detail["type"] == "too_short" and len(detail["input"]) >= detail["ctx"]["min_length"]:
            continue  # a list is not too short for its bad items
        place = tuple(step for step in detail["loc"] if step != "[key]")
        hint = _hint(str(place[-1]), model) if detail["type"] == "extra_forbidden" else ""
        yield place, reason(detail) + hint


def reason(detail: ErrorDetails) -> str:
    """Return what is wrong with the value of one pydantic error, without its place."""
    if detail["type"] == "value_error":
        return str(detail["ctx"]["error"])
    return _REASONS.get(detail["type"]) or f"must be {expected(detail)}, got {shown(detail['input'])}"


def expected(detail: ErrorDetails) -> str:
    """Return what pydantic expected, in words."""
    return _EXPECTED.get(detail["type"]) or detail["msg"].removeprefix("Input should be ")


def _hint(key: str, model: type[BaseModel]) -> str:
    known = {name.rpartition(".")[2]: name for name in reversed(_keys(model))}
    near = difflib.get_close_matches(key, known, n=1)
    return f" (did you mean {known[near[0]]}?)" if near else ""


def _keys(annotation: Any, prefix: str = "") -> list[str]:
    """Return the dotted keys of a model, or of those inside `Model | None`, `tuple[Model, ...]` and the like."""
    if not (isinstance(annotation, type) and issubclass(annotation, BaseModel)):
        return [key for part in get_args(annotation) for key in _keys(part, prefix)]
    return [
        key
        for name, field in annotation.model_fields.items()
        for key in (prefix + name, *_keys(field.annotation, f"{prefix}{name}."))
    ]
