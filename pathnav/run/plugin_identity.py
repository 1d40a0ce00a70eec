"""Which code a plug-in is: what of it enters a key, and what records say of it."""

import hashlib
import inspect
import json
import sys
from collections.abc import Mapping
from importlib.metadata import packages_distributions, version
from types import ModuleType
from typing import Any

from pathnav.plugins import Kind, Plugin, load


def resolved(kind: Kind, chosen: str | type | Plugin) -> Plugin:
    """Return the plug-in that a user names or a program hands over.

    Args:
        kind: What is looked for.
        chosen: An installed name, `path/to/file.py:Class`, `package.module:Class`, or the class itself.

    Raises:
        PluginError: If there is none.
    """
    if isinstance(chosen, Plugin):
        return chosen
    return plugin_of(kind, chosen) if isinstance(chosen, type) else load(kind, chosen)


def uses_model(plugin: Plugin) -> bool:
    """Return whether a plug-in asks a chat endpoint."""
    return bool(getattr(plugin.cls, "uses_model", False))


def settings_of(plugin: Plugin, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return options with the defaults filled in, so that a default that is spelled out is the same setting."""
    parameters = inspect.signature(plugin.cls).parameters.values()
    defaults = {p.name: p.default for p in parameters if p.default is not p.empty and _is_json(p.default)}
    return json.loads(json.dumps({**defaults, **options}, default=str))  # type: ignore[no-any-return]


def package_of(plugin: Plugin) -> str | None:
    """Return the installed package and version that a plug-in comes from, e.g. `pathnav 0.1.0`; None for a file's.

    A file's path is left out, since the digest of its content says more: a file that was moved is the same agent.
    """
    if plugin.digest is not None:
        return None
    if plugin.origin not in sys.modules:  # an entry point's: package and version already
        return plugin.origin
    top = plugin.origin.partition(".")[0]
    found = [f"{name} {version(name)}" for name in sorted(set(packages_distributions().get(top, ())))]
    return ", ".join(found) or plugin.origin


def code_of(plugin: Plugin) -> str | None:
    """Return the digest of a plug-in's code; None where its package's version has to do."""
    if plugin.digest is not None or plugin.origin not in sys.modules:
        return plugin.digest
    return _source_digest(sys.modules[plugin.cls.__module__])


def plugin_of(kind: Kind, cls: type) -> Plugin:
    """Return the plug-in of a class that a program hands over; its source, where there is one, enters the key."""
    name = getattr(cls, "name", cls.__name__)
    return Plugin(name if isinstance(name, str) else cls.__name__, kind, cls, cls.__module__, _source_digest(cls))


def _source_digest(code: type | ModuleType) -> str | None:
    """Return the SHA-256 of a source text, None where there is none, as for what was typed in at a prompt."""
    try:
        return hashlib.sha256(inspect.getsource(code).encode()).hexdigest()
    except (OSError, TypeError):
        return None


def _is_json(value: Any) -> bool:
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError):
        return False
    return True
