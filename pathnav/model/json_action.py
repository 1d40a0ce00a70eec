"""Find the actions in the answer of a model that has no native tool calling; pure text work, no network.

Such a model is told to answer with one JSON object `{"tool": NAME, "arguments": {...}}` after any reasoning. What it
writes around the object is ignored: prose, fences, wrappers such as `<tool_call>`. What it writes instead of strict
JSON is read by `json_repair`, our own, as the library `json-repair` makes up values for text that was cut off.
"""

import json
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from pathnav.model.json_repair import ObjectReader, Unreadable

_TOOL_KEYS = ("tool", "tool_name")  # mean a tool whatever the name
_NAME_KEYS = ("name", "function", "action")  # mean one where the tool is on offer or arguments stand beside them
_ARGUMENT_KEYS = ("arguments", "args", "parameters", "input", "action_input", "tool_input")
_CALL_KEYS = ("tool_call", "function_call", "function", "action", "tool")  # hold an action as an object
_CALLS_KEYS = ("tool_calls", "function_calls", "actions")  # hold a list of them
_KEYS_OF_ACTIONS = {*_TOOL_KEYS, *_NAME_KEYS, *_ARGUMENT_KEYS, *_CALL_KEYS, *_CALLS_KEYS}
_PLACEHOLDERS = {"", "name", "tool", "tool_name", "tool name", "function_name", "function name"}  # of quoted examples
_MOST_WRAPPERS = 3

_OPENING = re.compile(r"""\{(?=\s*["'“”„‟‘’‚‛A-Za-z_/#])|(?<=[>\]\s])\{(?=\s*\})""")  # {} counts behind a tag
_NAMED_BEFORE = re.compile(r"(?:<function=([^<>\s]{1,100})>|\[TOOL_CALLS\]\s*([\w.-]{1,100})\s*\[ARGS\])\s*\Z")
_WINDOW = 150  # characters before an object in which its name may stand
_BRACE = re.compile(r"[{}]")
_WRAPPER = re.compile(r"<\|?tool_call\|?>|\[TOOL_CALLS\]|<function=|<\|python_tag\|>")

_LEADS_IN = re.compile(
    r"(?:^|[:>\])}=→]|```\w*|^\s*(?:[-*•]|\d+[.)]))[\s`'\"“(*]*\Z"
)  # what stands before an action on its line
_WORDS_BEHIND = re.compile(r"[\s`'\"”)*]*[,;]?[^\S\n]*\w")
_LINE = 300  # characters of a line that are looked at

_FREE_RETRIES = 100_000  # characters of broken objects that may be read twice, beside half of the text's length
_RETRY = 50  # characters whose reading takes as long as starting once more

_SHOWN = 40  # characters of a name that a fault quotes
_NO_TOOL = 'a JSON object names no tool under the key "tool"'


@dataclass(frozen=True, slots=True)
class Action:
    """One action.

    Args:
        name: The tool's name as written, on offer or not.
        arguments: The arguments as written, unchecked.
        raw: `arguments` as JSON text: no NaN, no infinite number, no lone surrogate.
    """

    name: str
    arguments: dict[str, Any]
    raw: str


@dataclass(frozen=True, slots=True)
class Parsed:
    """What an answer holds.

    Args:
        actions: In the order in which they stand. The same name and `raw` twice in a row, a draft and its repetition,
            are one action; with another action between them they are two.
        fault: One clause on what was wrong with text that tries to be an action and cannot be read as one; None where
            nothing tried, and where there are actions.
    """

    actions: tuple[Action, ...]
    fault: str | None


def parse_actions(text: str, names: Collection[str], needy: Collection[str] = ()) -> Parsed:
    """Return the actions in a text; never fails, in a time proportional to the text's length.

    Nothing is made up: names and arguments stand in one object, or, for Llama and Mistral, the name in the tag before
    it. An object that tries to be an action and is broken is passed over with all that stands within it. A needy tool
    that is named without arguments in the middle of a sentence is talked about, not called.

    Args:
        text: The answer.
        names: The tools on offer.
        needy: Those of them that cannot be called without arguments.
    """
    search = _Search(text, frozenset(names), frozenset(needy))
    while search.step():
        pass
    if search.actions:
        return Parsed(tuple(search.actions), None)
    wrapped = "a tool call without a JSON object" if _WRAPPER.search(text) else None
    return Parsed((), search.fault or search.lesser_fault or wrapped)


class _Search:
    """A walk through the objects of a text.

    Attributes:
        fault: Of the last object that tried to be an action and is none.
        lesser_fault: Of the last object that may have tried: it has keys, and no tool.
    """

    def __init__(self, text: str, names: frozenset[str], needy: frozenset[str]) -> None:
        self.actions: list[Action] = []
        self.fault: str | None = None
        self.lesser_fault: str | None = None
        self._text, self._names, self._needy = text, names, needy
        self._at = 0
        self._retries_left = _FREE_RETRIES + len(text) // 2

    def step(self) -> bool:
        """Read the next object; return False where there is none or too much was broken."""
        opening = _OPENING.search(self._text, self._at)
        if not opening:
            return False
        if self._retries_left < 0:
            self._note("too much of the text is broken JSON", tries=False)
            return False
        start = opening.start()
        reader = ObjectReader(self._text, start)
        named = _name_before(self._text, start)
        try:
            fields = reader.read()
        except Unreadable as broken:
            self._pass_over(reader, start, named is not None, str(broken))
        else:
            self._at = reader.at
            if not self._is_mention(fields, start):
                self._take(fields, named)
        return True

    def _is_mention(self, fields: Mapping[str, Any], start: int) -> bool:
        """Return whether an object, the one just read, names a needy tool and nothing else within a sentence."""
        ((key, value),) = fields.items() if len(fields) == 1 else ((None, None),)
        if key not in (*_TOOL_KEYS, *_NAME_KEYS) or not (isinstance(value, str) and value in self._needy):
            return False
        before = self._text[max(0, start - _LINE) : start].rpartition("\n")[2]
        return not _LEADS_IN.search(before) or bool(_WORDS_BEHIND.match(self._text, self._at))

    def _take(self, fields: dict[str, Any], named: str | None) -> None:
        parsed = _read(fields, self._names)
        if named is not None and {action.name for action in parsed.actions} != {named}:
            parsed = _with_arguments(named, fields, self._names)
        if parsed.fault:
            self._note(parsed.fault, tries=parsed.fault != _NO_TOOL)
        for action in parsed.actions:
            last = self.actions[-1] if self.actions else None
            if last is None or (action.name, action.raw) != (last.name, last.raw):
                self.actions.append(action)

    def _pass_over(self, reader: ObjectReader, start: int, tagged: bool, why: str) -> None:
        tries = tagged or any(key in self._names or key in _KEYS_OF_ACTIONS for key in reader.keys)
        if tries or reader.keys:
            self._note(f"the JSON object cannot be read: {why}", tries)
        self._retries_left -= reader.at - start + _RETRY
        self._at = self._behind(reader) if tries else start + 1

    def _note(self, fault: str, tries: bool) -> None:
        if tries:
            self.fault = fault
        else:
            self.lesser_fault = fault

    def _behind(self, reader: ObjectReader) -> int:
        """Return the index behind a broken object: of the brace that closes it, else the place where it broke."""
        still_open = reader.open_braces
        for brace in _BRACE.finditer(self._text, reader.at):
            still_open += 1 if brace.group() == "{" else -1
            if still_open == 0:
                self._retries_left -= brace.end() - reader.at
                return brace.end()
        self._retries_left -= len(self._text) - reader.at
        return reader.at


def _name_before(text: str, start: int) -> str | None:
    """Return the name in the tag before an object: `<function=NAME>{` (Llama), `[TOOL_CALLS]NAME[ARGS]{` (Mistral)."""
    before = text[max(0, start - _WINDOW) : start].rstrip()
    named = _NAMED_BEFORE.search(before) if before.endswith((">", "]")) else None
    return (named.group(1) or named.group(2)) if named else None


def _read(fields: Mapping[str, Any], names: frozenset[str], wrappers: int = 0) -> Parsed:
    """Return the actions that one object is."""
    key = _name_key(fields, names)
    if key is not None:
        given = [fields[alias] for alias in _ARGUMENT_KEYS if alias in fields]
        beside = {other: value for other, value in fields.items() if other != key}
        return _with_arguments(fields[key], given[0] if given else beside, names)
    if wrappers < _MOST_WRAPPERS and (calls := _wrapped(fields)):
        return _joined(_read(call, names, wrappers + 1) for call in calls)
    if known := [name for name in fields if name in names]:
        return _joined(_with_arguments(name, fields[name], names) for name in known)
    return Parsed((), _NO_TOOL if fields else None)


def _name_key(fields: Mapping[str, Any], names: frozenset[str]) -> str | None:
    """Return the key under which an object names its tool; None where it names none."""
    for key in _TOOL_KEYS:
        if isinstance(fields.get(key), str):
            return key
    possible = [key for key in _NAME_KEYS if isinstance(fields.get(key), str)]
    known = [key for key in possible if fields[key] in names]
    has_arguments = any(alias in fields for alias in _ARGUMENT_KEYS)
    return next(iter([*known, *(possible if has_arguments else ())]), None)


def _wrapped(fields: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the objects that an object such as `{"function": {...}}` or `{"tool_calls": [{...}]}` wraps."""
    for key in _CALL_KEYS:
        inner = fields.get(key)
        if isinstance(inner, dict):
            beside = {alias: fields[alias] for alias in _ARGUMENT_KEYS if alias in fields}
            return [inner if any(alias in inner for alias in _ARGUMENT_KEYS) else inner | beside]
    lists = [fields[key] for key in _CALLS_KEYS if isinstance(fields.get(key), list)]
    return [call for call in lists[0] if isinstance(call, dict)] if lists else []


def _with_arguments(name: str, arguments: object, names: frozenset[str]) -> Parsed:
    """Return the action of a name and its arguments: an object, the text of one, or nothing."""
    if name not in names and (name.startswith("<") or name.strip(" .…<>[]{}").lower() in _PLACEHOLDERS):
        return Parsed((), f"{name[:_SHOWN]!r} is a placeholder, not a tool's name")
    read = _object_in(arguments) if isinstance(arguments, str) else arguments
    read = {} if read is None else read
    if not isinstance(read, dict):
        return Parsed((), f"the arguments of {name[:_SHOWN]!r} are not a JSON object")
    if read.get("type") == "object" and isinstance(read.get("properties"), dict):
        return Parsed((), f"the description of {name[:_SHOWN]!r} is no call of it")
    return Parsed((Action(name, read, json.dumps(read, ensure_ascii=False)),), None)


def _object_in(text: str) -> object:
    """Return the object in an argument text, None for blank text, the text itself for anything else."""
    stripped = text.strip()
    if not stripped.startswith("{"):
        return text if stripped else None
    reader = ObjectReader(stripped, 0)
    try:
        arguments = reader.read()
    except Unreadable:
        return text
    return text if stripped[reader.at :].strip() else arguments


def _joined(parts: Iterable[Parsed]) -> Parsed:
    read = list(parts)
    actions = [action for part in read for action in part.actions]
    return Parsed(tuple(actions), next((part.fault for part in read if part.fault), None))
