"""Scenario files for tests."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from pathnav.cohort.scenario_file import load_scenario
from pathnav.errors import ConfigError

SLIDES = {"slides": [{"path": "a.svs", "tree": "a.json"}]}


def write(path: Path, document: Any) -> Path:
    """Write a YAML file and return its path."""
    path.parent.mkdir(exist_ok=True, parents=True)
    path.write_text(document if isinstance(document, str) else yaml.safe_dump(document))
    return path


def plain(**changes: Any) -> dict[str, Any]:
    """Return the shortest scenario, with top-level keys changed."""
    return {"format": "pathnav-scenario-1", "cohort": SLIDES, "localise": {"agents": ["random"]}, **changes}


def complaints(path: Path, document: Any, **slots: Any) -> list[str]:
    """Return the lines with which a scenario is refused, without the file's name and line."""
    write(path, document)
    with pytest.raises(ConfigError) as caught:
        load_scenario(path, **slots)
    return [re.sub(rf"^{re.escape(str(path))}(, line \d+)?: ", "", line) for line in str(caught.value).splitlines()]
