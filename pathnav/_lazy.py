"""Exports of a package that are imported when they are first used."""

import importlib
import sys
from collections.abc import Callable
from typing import Any


def on_first_use(package: str, **exports: str) -> Callable[[str], Any]:
    """Return the `__getattr__` of a package whose exports cost too much to import with each of its modules.

    Args:
        package: Its `__name__`.
        exports: For each of its modules the names that the package exports from it, with spaces between.
    """
    homes = {name: f"{package}.{module}" for module, names in exports.items() for name in names.split()}

    def found(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(importlib.import_module(homes[name]), name)
        setattr(sys.modules[package], name, value)
        return value

    return found
