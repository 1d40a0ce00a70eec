"""Run `pathnav` in this process, and what it needs: a small slide with a tree, a scenario, agents in a file."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from pathnav.cli import main
from support.trees import tree_document, write_cohort, write_json, write_slide

AGENTS = '''
"""Agents that a user might have written, well and badly."""

from pathnav.geometry import Box


class Looker:
    """Look once in the middle and report it."""

    def run(self, environment):
        box = Box.centred(environment.query.region.centre, 64, 64)
        environment.extract_roi(box, "the middle")
        environment.report(box, conclusion="there", confidence=0.5)


class Whole:
    """Look at the whole search region and report it."""

    def run(self, environment):
        environment.extract_roi(environment.query.region)
        environment.report(environment.query.region)


class Oracle:
    """Call itself what the control is called."""

    name = "oracle"
    seen = None

    def accept_target(self, target):
        type(self).seen = target

    def run(self, environment):
        environment.report(Box.centred(environment.query.region.centre, 64, 64), conclusion=str(self.seen))


class Fails:
    """Fail before the report."""

    def run(self, environment):
        raise ZeroDivisionError("no tissue")


class FailsLate:
    """Fail after the report."""

    def run(self, environment):
        environment.report(Box.centred(environment.query.region.centre, 64, 64))
        raise ZeroDivisionError("too late")


class Overspends:
    """Let the refusal escape."""

    def run(self, environment):
        while True:
            environment.extract_roi(environment.query.region)


class Waits:
    """Take a second."""

    def run(self, environment):
        import time

        time.sleep(1)
        environment.report(environment.query.region)


class Quits:
    """Try to end the process."""

    def run(self, environment):
        raise SystemExit(3)
'''


@dataclass(frozen=True)
class Said:
    """What a command did."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, Any]:
        """The one JSON object on stdout."""
        (line,) = self.out.splitlines()
        found: dict[str, Any] = json.loads(line)
        return found

    @property
    def sentences(self) -> list[str]:
        """The lines on stderr."""
        return self.err.splitlines()


class Command:
    """Call the command line as a user would; what it says is returned."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, *arguments: object) -> Said:
        self._capsys.readouterr()
        code = main([str(argument) for argument in arguments])
        said = self._capsys.readouterr()
        return Said(code, said.out, said.err)

    def json(self, *arguments: object, code: int = 0) -> dict[str, Any]:
        """Return the one JSON object that a command prints on stdout."""
        said = self(*arguments, "--json")
        assert said.code == code, said
        return said.json


@dataclass(frozen=True)
class Bench:
    """A folder with all that a command needs."""

    folder: Path

    @classmethod
    def set_up(cls, folder: Path) -> "Bench":
        """Write a slide of 2000 x 1600 px at 0.25 um, its tree, and agents."""
        write_slide(folder / "a.tif")
        write_json(folder / "a.json", tree_document("a.tif"))
        (folder / "agents.py").write_text(AGENTS, encoding="utf-8")
        return cls(folder)

    @property
    def slide(self) -> Path:
        """The slide."""
        return self.folder / "a.tif"

    @property
    def tree(self) -> Path:
        """Its tree; `a1` is at 10x, `a1i` at 40x."""
        return self.folder / "a.json"

    def agent(self, name: str) -> str:
        """Return the specification of an agent of the file."""
        return f"{self.folder / 'agents.py'}:{name}"

    def words(self, *more: object) -> tuple[object, ...]:
        """Return a `locate` in the user's own words."""
        return ("locate", self.slide, "--finding", "dense infiltrate", "--magnification", 10, *more)

    def node(self, *more: object) -> tuple[object, ...]:
        """Return a `locate` of a node of the tree."""
        return ("locate", self.slide, "--tree", self.tree, "--query", "a1", *more)

    def scenario(self, slides: int = 2, **localise: Any) -> Path:
        """Write a scenario over a cohort of its own and return its path."""
        cohort = write_cohort(self.folder, {f"s{number}": "breast" for number in range(slides)})
        document = {
            "format": "pathnav-scenario-1",
            "cohort": cohort,
            "localise": {"agents": ["parent-centre"], "magnifications": [10], **localise},
            "seed": 3,
        }
        path = self.folder / "scenario.yaml"
        path.write_text(yaml.safe_dump(document), encoding="utf-8")
        return path

    def files(self) -> set[Path]:
        """Return all that lies in the folder, but for what Python leaves there."""
        return {path for path in self.folder.rglob("*") if "__pycache__" not in path.parts}
