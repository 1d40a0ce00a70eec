"""The one way in for agents, scorers and tools: a name, or `file.py:Class`, or `package.module:Class`.

Names are entry points of the groups `pathnav.agents`, `pathnav.scorers` and `pathnav.tools`; pathnav's own
baselines and tools come in by the same door as a stranger's package.
"""

import difflib
import hashlib
import importlib
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import ModuleType
from typing import Any

from pathnav.errors import PluginError


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

    def create(self, options: Mapping[str, Any] | None = None) -> Any:
        """Return an instance made with the given options as keyword arguments.

        Raises:
            PluginError: If the class does not take these options.
        """
        given = dict(options or {})
        try:
            return self.cls(**given)
        except TypeError as error:
            raise PluginError(f"{self.kind} {self.name!r} does not take the options {given}: {error}") from error


def names(kind: Kind) -> list[str]:
    """Return the names of all installed plug-ins of a kind, sorted."""
    return sorted({point.name for point in entry_points(group=f"pathnav.{kind}s")})


def load(kind: Kind, spec: str) -> Plugin:
    """Return the plug-in that a specification names.

    Args:
        kind: What is looked for.
        spec: An installed name, `path/to/file.py:Class`, or `package.module:Class`.

    Raises:
        PluginError: If there is none, with the nearest names; or if loading it fails, with the reason.
    """
    found = [point for point in entry_points(group=f"pathnav.{kind}s") if point.name == spec]
    if found:
        return _from_entry_point(kind, found[0])
    if ":" in spec:
        return _from_reference(kind, spec)
    raise PluginError(f"there is no {kind} named {spec!r}; {_suggestion(kind, spec)}")


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
