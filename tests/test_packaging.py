"""What is in the repository is in the wheel; what the README promises is what `.ci/run` runs."""

import importlib.util
import re
import shutil
import subprocess
import sys
import zipfile
from fnmatch import fnmatch
from pathlib import Path
from types import ModuleType

import pytest

from support.source import FOLDER_OF_PACKAGE, ROOT, pyproject, source_files

PACKAGED = ("pathnav", *FOLDER_OF_PACKAGE.values())
NOT_PACKAGED = ("__pycache__", ".mypy_cache", ".ruff_cache", ".ipynb_checkpoints")


def packaged_files() -> set[Path]:
    """Return the files of the packages' folders, relative to the root."""
    return {
        path.relative_to(ROOT)
        for folder in PACKAGED
        for path in (ROOT / folder).rglob("*")
        if path.is_file() and not set(path.parts) & set(NOT_PACKAGED)
    }


def in_wheel(path: Path) -> str:
    """Return where a file of the repository lies in the wheel."""
    package_of = {folder: package for package, folder in FOLDER_OF_PACKAGE.items()}
    return Path(package_of.get(path.parts[0], path.parts[0]), *path.parts[1:]).as_posix()


def test_every_data_file_is_declared_and_every_declaration_has_a_file() -> None:
    patterns = {
        f"{FOLDER_OF_PACKAGE.get(package, package.replace('.', '/'))}/{pattern}"
        for package, found in pyproject()["tool"]["setuptools"]["package-data"].items()
        for pattern in found
    }
    files = {path.as_posix() for path in packaged_files() if path.suffix != ".py"}
    assert {file for file in files if not any(fnmatch(file, pattern) for pattern in patterns)} == set()
    assert {pattern for pattern in patterns if not any(fnmatch(file, pattern) for file in files)} == set()


def test_every_dependency_says_what_it_excludes() -> None:
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    capped = re.findall(r'^    "[^"]+<[^"]+",(.*)$', text, flags=re.MULTILINE)
    assert capped
    undecided = [line for line in capped if "#" not in line]
    assert not undecided, "write the reason beside each upper bound"


def test_the_lowest_versions_are_those_of_pyproject() -> None:
    found = dict(line.split("==") for line in lowest().constraints(["a-b>=1.2,<2", "c[x]>=3.0.1", "tifffile", "d<2"]))
    assert found == {"a-b": "1.2", "c": "3.0.1"}


def lowest() -> ModuleType:
    """Return the script that computes the lowest allowed versions."""
    spec = importlib.util.spec_from_file_location("lowest", ROOT / ".ci" / "lowest.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_readme_has_the_two_lines_that_ci_runs() -> None:
    lines = re.findall(r"^pip install -e .* && .*$", (ROOT / "README.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert lines == ["pip install -e . && pathnav run quickstart", "pip install -e '.[test]' && pytest"]


def test_the_licence_is_there() -> None:
    assert "Apache License" in (ROOT / "LICENSE").read_text(encoding="utf-8")
    assert pyproject()["project"]["license"] == "Apache-2.0"


@pytest.mark.slow
def test_the_wheel_holds_every_file_and_nothing_else(tmp_path: Path) -> None:
    copy = tmp_path / "tree"
    copy.mkdir()
    for folder in PACKAGED:
        shutil.copytree(ROOT / folder, copy / folder, ignore=shutil.ignore_patterns(*NOT_PACKAGED))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, copy)
    build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "-w", str(tmp_path), str(copy)]
    subprocess.run(build, check=True, capture_output=True, text=True)
    (wheel,) = tmp_path.glob("pathnav-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        held = {name for name in archive.namelist() if ".dist-info/" not in name}
    assert held == {in_wheel(path) for path in packaged_files()}
    assert {in_wheel(path) for path in source_files(*PACKAGED)} <= held
