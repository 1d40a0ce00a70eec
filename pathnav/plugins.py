"""The one way in for agents, scorers and tools: a name, or `file.py:Class`, or `package.module:Class`.

Names are entry points of the groups `pathnav.agents`, `pathnav.scorers` and `pathnav.tools`; pathnav's own
baselines and tools come in by the same door as a stranger's package.
"""

import difflib
import hashlib
import importlib
import inspect
import json
import operator
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import ModuleType
from typing import Any, get_type_hints

from pathnav.errors import PathnavError, PluginError


class Kind(StrEnum):
    """What a plug-in is."""

    AGENT = "agent"
    SCORER = "scorer"
    TOOL = "tool"


@dataclass(frozen=True, slots=True)
class Plugin:
    """A loaded plug-in class.

    Args:
        name: The short name that records carry.
        kind: What it is.
        cls: The class.
        origin: Where it came from: `package version`, or the file's path.
        digest: SHA-256 of the file for `file.py:Class`, else None; part of an episode's key.
    """

    name: str
    kind: Kind
    cls: type
    origin: str
    digest: str | None = None

    @property
    def label(self) -> str:
        """What messages call it: the kind, the name and, of a user's file, where it lies."""
        return f"{self.kind} {self.name!r}" + (f" ({self.origin})" if self.digest is not None else "")

    def create(self, options: Mapping[str, Any] | None = None) -> Any:
        """Return an instance made with the given options as keyword arguments.

        Raises:
            PluginError: If the class does not take these options or their types, or fails while it is made.
            PathnavError: If the class itself refuses an option in a sentence of its own.
        """
        given = dict(options or {})
        if fault := _option_fault(self.cls, given):
            raise PluginError(f"{self.kind} {self.name!r}{fault}")
        try:
            return self.cls(**given)
        except PathnavError:
            raise
        except Exception as error:
            how = f" with the options {given}" if given else ""
            sentence = f"{self.label} cannot be made{how}: {type(error).__name__}: {error}"
            raise PluginError(sentence, remedy=f"mend the {self.kind} or its options") from error


def _option_fault(cls: type, given: Mapping[str, Any]) -> str | None:
    """Return what is wrong with the names or types of options, held against the constructor; None where nothing is."""
    try:
        parameters = inspect.signature(cls).parameters.values()
    except (TypeError, ValueError):  # classes of C code may have none; making one tells what it takes
        return None
    known = {one.name: one for one in parameters if one.kind in (one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY)}
    has = f"it has: {', '.join(known)}" if known else "it has none"
    unknown = sorted(set(given) - set(known))
    if unknown and not any(one.kind is one.VAR_KEYWORD for one in parameters):
        return f" has no option {' and no option '.join(map(repr, unknown))}; {has}"
    if missing := [name for name, one in known.items() if one.default is one.empty and name not in given]:
        return f" cannot do without option {' and '.join(map(repr, missing))}; {has}"
    try:
        declared = get_type_hints(inspect.getattr_static(cls, "__init__"))
    except (AttributeError, NameError, TypeError):  # names that only a type checker imports
        return None
    wrong = (_type_fault(name, value, declared[name]) for name, value in given.items() if name in declared)
    return next(filter(None, wrong), None)


def _type_fault(name: str, value: Any, declared: Any) -> str | None:
    """Return what is wrong with the type of an option, None where nothing is or the type is none that pydantic knows.

    Options come from YAML, so that they are held against a type as JSON is: a list is a tuple, a text is a path, but
    `5` is no text and `true` no number.
    """
    from pydantic import PydanticUserError, TypeAdapter, ValidationError

    from pathnav.settings import dotted, expected, plain, shown

    def as_json(given: Any) -> Any:
        return os.fspath(given) if isinstance(given, os.PathLike) else operator.index(given)

    try:
        adapter = TypeAdapter[Any](declared)
        try:
            adapter.validate_json(json.dumps(plain(value), default=as_json), strict=True)
        except TypeError:  # an object that only a program can hand over
            adapter.validate_python(value, strict=True)
    except PydanticUserError:
        return None
    except ValidationError as error:
        details = error.errors(include_url=False)
        wanted = " or ".join(dict.fromkeys(expected(detail) for detail in details))
        item, came = [step for step in details[0]["loc"] if isinstance(step, int)], details[0]["input"]
        fault = f": option {dotted([name, *item])} must be {wanted}, got {shown(came)}"
        is_quotable = "a text" in wanted and not isinstance(came, str | Mapping | list | None)
        return fault + "; a text that looks like a number or a word of YAML stands in quotes" * is_quotable
    return None


def names(kind: Kind) -> list[str]:
    """Return the names of all installed plug-ins of a kind, sorted."""
    return sorted({point.name for point in _points(kind)})


def load(kind: Kind, spec: str) -> Plugin:
    """Return the plug-in that a specification names.

    Args:
        kind: What is looked for.
        spec: An installed name, `path/to/file.py:Class`, or `package.module:Class`.

    Raises:
        PluginError: If there is none, with the nearest names; or if loading it fails, with the reason.
    """
    found = [point for point in _points(kind) if point.name == spec]
    if found:
        return _from_entry_point(kind, found[0])
    if ":" in spec:
        return _from_reference(kind, spec)
    raise PluginError(f"there is no {kind} named {spec!r}; {_suggestion(kind, spec)}")


def _points(kind: Kind) -> tuple[EntryPoint, ...]:
    """Return the entry points of a kind; looking through all installed packages takes 5 to 9 ms."""
    return _points_on(kind, tuple(sys.path))


@cache
def _points_on(kind: Kind, path: tuple[str, ...]) -> tuple[EntryPoint, ...]:
    """Return the entry points of a kind on a search path, which is what `entry_points` goes through."""
    return tuple(entry_points(group=f"pathnav.{kind}s"))


def _suggestion(kind: Kind, spec: str) -> str:
    known = names(kind)
    near = difflib.get_close_matches(spec, known, n=3, cutoff=0.5)
    if near:
        return f"did you mean {' or '.join(near)}? (installed: {', '.join(known)})"
    return f"installed: {', '.join(known) or 'none'}; a class of your own is given as file.py:Class"


def _from_entry_point(kind: Kind, point: EntryPoint) -> Plugin:
    try:
        cls = point.load()
    except (ImportError, AttributeError) as error:
        raise PluginError(f"{kind} {point.name!r} ({point.value}) cannot be loaded: {error}") from error
    dist = point.dist
    return Plugin(point.name, kind, cls, f"{dist.name} {dist.version}" if dist else point.value)


def _from_reference(kind: Kind, spec: str) -> Plugin:
    place, _, class_name = spec.rpartition(":")
    path = Path(place)
    if path.suffix == ".py":
        source = _source(kind, path)
        module, origin, digest = _module_from_source(kind, path, source), str(path), hashlib.sha256(source).hexdigest()
    else:
        module, origin, digest = _module_by_name(kind, place, spec), place, None
    cls = getattr(module, class_name, None)
    if not isinstance(cls, type):
        classes = [n for n, v in vars(module).items() if isinstance(v, type) and v.__module__ == module.__name__]
        raise PluginError(f"{place} has no class {class_name!r}; it has {', '.join(classes) or 'no class'}")
    name = getattr(cls, "name", class_name)
    return Plugin(name if isinstance(name, str) else class_name, kind, cls, origin, digest)


def _source(kind: Kind, path: Path) -> bytes:
    if not path.is_file():
        raise PluginError(f"{kind} file {path} does not exist; expected path/to/file.py:Class")
    return path.read_bytes()


def _module_by_name(kind: Kind, place: str, spec: str) -> ModuleType:
    try:
        return importlib.import_module(place)
    except ImportError as error:
        raise PluginError(f"{kind} {spec!r} cannot be loaded: {error}") from error


def _module_from_source(kind: Kind, path: Path, source: bytes) -> ModuleType:
    """Return the module of a file's bytes: the very bytes of the digest, never bytecode left by an earlier version.

    Python takes bytecode for fresh when size and whole second agree: an edited file was run as it was before.
    """
    name = f"pathnav_user_{path.stem}_{hashlib.sha256(str(path.resolve()).encode()).hexdigest()[:8]}"
    module = ModuleType(name)
    module.__file__ = str(path)
    sys.modules[name] = module
    try:
        exec(compile(source, str(path), "exec"), vars(module))
    except Exception as error:
        del sys.modules[name]
        raise PluginError(f"{kind} file {path} fails on import: {type(error).__name__}: {error}") from error
    return module
