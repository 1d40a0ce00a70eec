"""Which strings of a run are names of places, files, people and machines, and how a text is freed of them."""

import contextlib
import getpass
import json
import platform
import re
import socket
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import PurePosixPath, PureWindowsPath
from typing import Any
from urllib.parse import urlsplit

from pathnav.localise.outcome import Outcome
from pathnav.records import JsonObject

_WORD = re.compile(r"\w+")
RUN_NAME = "anonymised run"
_SHORTEST = 3
"""A slide `a.svs` must not tear all words apart: shorter names go with their path or ending alone."""

_OUR_WORDS = frozenset(
    (
        *("root", "user", "home", "localhost", "none", "null", "true", "false", "slide", "tree", "text", "image"),
        *(
            "start",
            "query",
            "view",
            "request",
            "reply",
            "tool",
            "report",
            "error",
            "outcome",
            "openai",
            *map(str, Outcome),
        ),
    )
)
"""Words that records are made of and that tell nobody's name."""

_FILES = (
    *("svs", "tif", "tiff", "ndpi", "mrxs", "scn", "svslide", "vms", "vmu", "bif", "czi", "dcm", "isyntax", "zarr"),
    *("json", "jsonl", "geojson", "xml", "yaml", "yml", "csv", "tsv", "txt", "md", "py", "sqlite", "log"),
    *("png", "jpg", "jpeg", "gguf", "safetensors", "pth", "zip", "gz"),
)
_SLIDES = tuple(f".{ending}" for ending in _FILES[:14])
_PART = r"[^\s\"'<>|*?,;()\[\]{}/]"
_END = r"(?<![.:])"  # of a sentence, or before an explanation
_SHAPES = (
    (re.compile(r"(?<![\w.])[A-Za-z][A-Za-z0-9+.-]*://[^\s\"'<>,;()\[\]{}]+" + _END), "[url]"),
    (re.compile(rf"(?<!\w)(?:[A-Za-z]:[\\/]|\\\\)(?:{_PART}|/)+{_END}"), "[path]"),
    (re.compile(rf"(?<![\w.\]])(?:~\w*|\.{{1,2}})?/(?:{_PART}+/)+(?:{_PART}+{_END})?"), "[path]"),
    (re.compile(rf"(?<![\w.~@%+/-])(?:[\w.~@%+-]+/)*[\w.@%+-]*\w\.(?:{'|'.join(_FILES)})(?!\w)", re.I), "[file]"),
    (re.compile(r"(?<![\w.])\d{1,3}(?:\.\d{1,3}){3}(?::\d+)?(?!\w|\.\d)"), "[host]"),
    (re.compile(r"(?<![\w.])[\w.+-]+@[\w-]+(?:\.[\w-]+)+"), "[address]"),
)


@dataclass(frozen=True)
class Names:
    """The names of a run.

    Args:
        known: Each with what stands in its place; replaced wherever they stand, the longest first.
    """

    known: Mapping[str, str]

    @cached_property
    def _by_word(self) -> dict[str, list[str]]:
        """The names by their first word: a cohort has thousands, and of a text's words few begin one."""
        found: dict[str, list[str]] = {}
        for name in self.known:
            for word in _WORD.findall(name)[:1]:
                found.setdefault(word, []).append(name)
        return found

    def text(self, text: str) -> str:
        """Return a text without names."""
        begun = {name for word in set(_WORD.findall(text)) for name in self._by_word.get(word, ())}
        if begun:
            longest_first = sorted(begun, key=lambda name: (-len(name), name))
            pattern = "|".join(map(_alone, longest_first))
            text = re.sub(pattern, lambda found: self.known[found.group()], text)
        for shape, replacement in _SHAPES:
            text = shape.sub(replacement, text)
        return text

    def json(self, value: Any) -> Any:
        """Return JSON whose texts are without names; of names of fields only those that are paths are changed."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Mapping):
            return {self.text(name) if _is_path(name) else name: self.json(item) for name, item in value.items()}
        return [self.json(item) for item in value] if isinstance(value, list) else value

    def line(self, event: Mapping[str, Any]) -> str:
        """Return an event as a line of a log, without names; of a traceback, which quotes code, the last line."""
        plain = dict(event)
        if isinstance(plain.get("traceback"), str):
            plain["traceback"] = (plain["traceback"].strip().splitlines() or [""])[-1]
        return json.dumps(self.json(plain), ensure_ascii=False, allow_nan=False) + "\n"


def _alone(name: str) -> str:
    """Match a name that is no part of a longer word."""
    before, after = (r"\b" if _WORD.match(end) else "" for end in (name[0], name[-1]))
    return f"{before}{re.escape(name)}{after}"


def names_of(description: Mapping[str, Any], results: Iterable[Mapping[str, Any]]) -> Names:
    """Return the names of a run: those that its records tell, and those of this computer and its user.

    Args:
        description: `run.json`.
        results: All results.
    """
    documents = (description, *results)
    slides = dict(found for document in documents for found in _slides(document))
    paths = {text for document in documents for text in _texts(document) if _is_path(text)}
    known = {name: _kind(path) for path in paths for name in _parts(path)}
    known |= dict.fromkeys(_people(paths), "[name]") | dict.fromkeys(_hosts(paths, description), "[host]")
    by_name = {_last(path): fingerprint for path, fingerprint in slides.items()}
    slides |= {path: by_name[_last(path)] for path in paths if _last(path) in by_name}
    for path, fingerprint in slides.items():
        known |= dict.fromkeys(_parts(path), fingerprint)
    ours = _OUR_WORDS | {str(document.get(field)) for document in documents for field in ("agent", "scorer", "model")}
    known |= {json.dumps(name)[1:-1]: other for name, other in known.items()}  # as in the text of a call's arguments
    return Names({name: other for name, other in known.items() if name and name not in ours})


def _slides(document: Any) -> Iterator[tuple[str, str]]:
    """Yield every slide of a document with its fingerprint: `{path, fingerprint}` or `{slide, fingerprint}`."""
    if isinstance(document, Mapping):
        fingerprint = document.get("fingerprint")
        names = (document.get("path"), document.get("slide"))
        if isinstance(fingerprint, str):
            yield from ((name, fingerprint) for name in names if isinstance(name, str) and name)
        for value in document.values():
            yield from _slides(value)
    elif isinstance(document, list):
        for value in document:
            yield from _slides(value)


def _texts(value: Any) -> Iterator[str]:
    """Yield every text of a document."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping | list):
        for item in (*value, *value.values()) if isinstance(value, Mapping) else value:
            yield from _texts(item)


def _is_path(text: str) -> bool:
    """Return whether a whole text is a path, a file's name or a URL, blanks in it allowed."""
    name = text.rpartition(":")[0] if re.search(r"\.py:\w+$", text) else text
    if "\n" in text or len(text) > 4096:
        return False
    starts = re.match(r"(?:~|\.{0,2}/|[A-Za-z]:[\\/]|\\\\|[a-z][a-z0-9+.-]*://)", name)
    return bool(starts) or bool(re.fullmatch(rf".*\.(?:{'|'.join(_FILES)})", name, re.IGNORECASE))


def _parts(path: str) -> Iterator[str]:
    """Yield a path, its last part, and that without its ending, where these are long enough to be names."""
    path = re.sub(r"(\.py):\w+$", r"\1", path)
    yield path
    if "://" in path and not path.lower().endswith(_SLIDES):
        return
    name = _last(path)
    stem = "" if name.endswith(".py") else name.partition(".")[0]
    yield from (part for part in dict.fromkeys((name, stem)) if len(part) > _SHORTEST)


def _kind(path: str) -> str:
    return "[url]" if "://" in path else "[file]" if "." in _last(path) else "[path]"


def _last(path: str) -> str:
    return (PureWindowsPath(path) if "\\" in path else PurePosixPath(path)).name


def _people(paths: Iterable[str]) -> set[str]:
    """Return names of users: whoever runs this, and whose folders the paths lie in."""
    with_home = (re.match(r"(?:.*?[\\/])?(?:home|users?)[\\/]([^\\/]+)", path, re.IGNORECASE) for path in paths)
    found = {match.group(1) for match in with_home if match}
    with contextlib.suppress(OSError, KeyError):  # a container's user may have no name
        found.add(getpass.getuser())
    return {name for name in found if len(name) >= _SHORTEST}


def _hosts(paths: Iterable[str], description: Mapping[str, Any]) -> set[str]:
    """Return names of machines: of this one, of the endpoints, and of those that pixels might have been sent to."""
    model = (description.get("scenario") or {}).get("model")
    allowed = model.get("allow_hosts") if isinstance(model, Mapping) else None
    found = {socket.gethostname(), platform.node(), *(allowed or ())}
    for path in paths:
        if "://" in path:
            found.add(urlsplit(path).hostname or "")
    return {part for name in found for part in (name, name.partition(".")[0]) if len(part) > _SHORTEST}


def described(description: JsonObject, names: Names) -> JsonObject:
    """Return `run.json` without names, without what the run was called, and with no more of the machine than its kind.

    Args:
        description: `run.json`.
        names: The run's names.
    """
    plain: JsonObject = names.json(description)
    if "name" in plain:
        plain["name"] = RUN_NAME
    scenario, machine = plain.get("scenario"), plain.get("machine")
    if isinstance(scenario, dict) and "name" in scenario:
        scenario["name"] = RUN_NAME
    if isinstance(scenario, dict) and isinstance(scenario.get("model"), dict):
        scenario["model"] |= {name: None for name in ("api_key_env", "api_key_file") if name in scenario["model"]}
    if isinstance(machine, dict):
        machine["system"] = re.split(r"[-_ ]", str(machine.get("system", "")))[0]
    plain |= {name: description[name] for name in ("versions",) if name in description}  # 4.0.1.2 is no address
    plain |= {"earlier": [described(one, names) for one in description["earlier"]]} if "earlier" in description else {}
    return plain
