"""The starting commit: its checkout, its Python, the slides it drew and its stub as the endpoint of all model rows."""

import contextlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

START = "0488831"
HERE = Path(__file__).resolve().parent
PHANTOMS = {"p1": ["--seed", "1"], "p2": ["--seed", "2"], "p3": ["--seed", "3", "--pen"]}
PERSONAS = ("plain", "strict", "mistral-order", "no-logprobs", "html-error", "truncated-json", "text-only")
PERSONAS += ("garrulous", "overbudget")
_SERVE = """
import json, sys
from pathnav.model.stub_server import StubServer
servers = {name: StubServer(persona=name, seed=7) for name in sys.argv[1:]}
for server in servers.values():
    server.start()
print(json.dumps({name: server.base_url for name, server in servers.items()}), flush=True)
sys.stdin.read()
"""


@dataclass(frozen=True)
class Base:
    """The starting commit in a cache folder.

    Args:
        cache: Holds all that is made once: checkout, environment, slides, results.
        given_python: A Python that has the starting commit installed already, or None.
    """

    cache: Path
    given_python: Path | None = None

    @cached_property
    def python(self) -> Path:
        """The starting commit's Python; made on first use, with the libraries' versions of this environment."""
        if self.given_python is not None:
            return self.given_python
        python = self.cache / "venv/bin/python"
        if not (self.cache / "venv/made").exists():
            source = self.cache / "source"
            source.mkdir(exist_ok=True)
            archive = subprocess.run(
                ["git", "archive", START], cwd=HERE.parents[1], check=True, stdout=subprocess.PIPE
            ).stdout
            subprocess.run(["tar", "-xf", "-", "-C", source], input=archive, check=True)
            subprocess.run([sys.executable, "-m", "venv", self.cache / "venv"], check=True)
            frozen = subprocess.run(
                [sys.executable, "-m", "pip", "freeze", "--exclude-editable", "--exclude", "pathnav"],
                check=True,
                stdout=subprocess.PIPE,
            ).stdout
            (self.cache / "constraints.txt").write_bytes(frozen)
            subprocess.run(
                [python, "-m", "pip", "install", "-q", "-c", self.cache / "constraints.txt", source], check=True
            )
            (self.cache / "venv/made").touch()
        return python

    @cached_property
    def slides(self) -> Path:
        """The folder of the phantoms that the starting commit drew."""
        folder = self.cache / "slides"
        folder.mkdir(exist_ok=True)
        left = [name for name in PHANTOMS if not (folder / f"{name}.tree.json").exists()]
        run_inside(
            self.python, [["phantom", str(folder / f"{n}.tiff"), "--side", "4096", *PHANTOMS[n]] for n in left], {}
        )
        return folder

    def fingerprints(self, shared: Path) -> dict[str, str]:
        """Return what the starting commit calls each slide, by its resolved path."""
        kept = self.cache / "fingerprints.json"
        if not kept.exists():
            slides = (*shared.glob("slides/*.*"), *shared.glob("slides/*-dicom/*.dcm"))
            paths = [*sorted(self.slides.glob("*.tiff")), *sorted(slides)]
            answers = run_inside(self.python, [["inspect", str(path), "--json"] for path in paths], {})
            found = {
                str(path.resolve()): json.loads(answer["printed"])["fingerprint"]
                for path, answer in zip(paths, answers, strict=True)
                if answer["code"] == 0
            }
            kept.write_text(json.dumps(found, indent=1), encoding="utf-8")
        known: dict[str, str] = json.loads(kept.read_text(encoding="utf-8"))
        return known

    @contextlib.contextmanager
    def stubs(self) -> Iterator[dict[str, str]]:
        """Serve all personas; yields their base URLs by name."""
        with subprocess.Popen(
            [self.python, "-P", "-c", _SERVE, *PERSONAS], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as process:
            assert process.stdin is not None and process.stdout is not None
            yield json.loads(process.stdout.readline())
            process.stdin.close()


def run_inside(python: Path, commands: list[list[str]], fingerprints: dict[str, str]) -> list[dict[str, Any]]:
    """Run commands in one process of a Python and return exit code, stdout and seconds of each.

    Raises:
        subprocess.CalledProcessError: If that process itself failed.
    """
    if not commands:
        return []
    with tempfile.TemporaryDirectory() as scratch:
        request, answer, said = (Path(scratch, name) for name in ("request.json", "answer.json", "stderr"))
        request.write_text(json.dumps({"commands": commands, "fingerprints": fingerprints}), encoding="utf-8")
        with said.open("w") as stderr:
            done = subprocess.run(
                [python, "-P", HERE / "inside.py", request, answer],
                cwd=scratch,
                stderr=stderr,
                env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "XDG_CACHE_HOME": scratch},
            )
        said_text = said.read_text(encoding="utf-8", errors="replace")
        if done.returncode or "Traceback" in said_text:
            sys.stderr.write(said_text[-6000:])
        done.check_returncode()
        answers: list[dict[str, Any]] = json.loads(answer.read_text(encoding="utf-8"))
    return answers
