"""The one way in for agents, scorers and tools: a name, or `file.py:Class`, or `package.module:Class`.

Names are entry points of the groups `pathnav.agents`, `pathnav.scorers` and `pathnav.tools`; pathnav's own
baselines and tools come in by the same door as a stranger's package.
"""

import difflib
import hashlib
import importlib
import inspect
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import ModuleType
from typing import Any

from pathnav.errors import PathnavError, PluginError
from pathnav.plugin_options import type_fault


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
        self._check_names(given)
        try:
            made = self.cls(**given)
        except PathnavError:
            raise
        except Exception as error:
            self._check_types(given)
            how = f" with the options {given}" if given else ""
            sentence = f"{self.label} cannot be made{how}: {type(error).__name__}: {error}"
            raise PluginError(sentence, remedy=f"mend the {self.kind} or its options") from error
        self._check_types(given)  # only now: a class that looks itself knows better what to say
        return made

    def _check_types(self, given: Mapping[str, Any]) -> None:
        """Refuse options of another type than the class declares."""
        fault = type_fault(self.cls, given)
        if fault is not None:
            raise PluginError(f"{self.kind} {self.name!r}: {fault}") from None

    def _check_names(self, given: Mapping[str, Any]) -> None:
        """Refuse options that the class does not have, and the lack of one that it cannot do without."""
        try:
            parameters = inspect.signature(self.cls).parameters.values()
        except (TypeError, ValueError):  # classes of C code may have none; making one tells what it takes
            return
        if any(one.kind is one.VAR_KEYWORD for one in parameters):
            return
        known = [one for one in parameters if one.kind in (one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY)]
        has = f"it has: {', '.join(one.name for one in known)}" if known else "it has none"
        if unknown := sorted(set(given) - {one.name for one in known}):
            raise PluginError(
                f"{self.kind} {self.name!r} has no option {' and no option '.join(map(repr, unknown))}; {has}"
            )
        if missing := [one.name for one in known if one.default is one.empty and one.name not in given]:
            raise PluginError(
                f"{self.kind} {self.name!r} cannot do without option {' and '.join(map(repr, missing))}; {has}"
            )


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
