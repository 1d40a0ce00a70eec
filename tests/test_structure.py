"""The house rules of CONTRIBUTING.md, held true by reading the source."""

import ast
import importlib
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest

from support.source import FOLDER_OF_PACKAGE, ROOT, functions, imported_modules, parsed, pyproject, source_files

CORE = source_files("pathnav")
PLUGINS = source_files("baselines", "tools", "scenarios")
SHIPPED = [*CORE, *PLUGINS]

LEFT_TO_RIGHT = (
    {"_lazy", "errors", "geometry", "parallel", "plugins", "records", "settings"},
    {"slide"},
    {"cohort"},
    {"phantom", "model", "retrieval"},
    {"localise", "explore"},
    {"run"},
    {"report"},
    {"cli", "commands", "testing", "__main__"},
)
RANK = {room: rank for rank, rooms in enumerate(LEFT_TO_RIGHT) for room in rooms}
SINGLE_FILES = (0, len(LEFT_TO_RIGHT) - 1)
"""Ranks whose members are files that know each other, not rooms that must not."""

ONLY_IN = {
    "langgraph": {"localise"},
    "langchain_core": {"localise"},
    "httpx": {"model"},
    "openslide": {"slide"},
    "tiffslide": {"slide"},
    "zarr": {"slide"},
    "fsspec": {"slide"},
    "matplotlib": {"report"},
    "torch": {"retrieval"},
    "torchvision": {"retrieval"},
    "open_clip": {"retrieval"},
    "conch": {"retrieval"},
}
PLUGINS_MAY_IMPORT = {"pathnav", "numpy", "pydantic"}

MAX_MODULE_LINES = 500
MAX_FUNCTION_LINES = 50
MAX_POSITIONAL = 5

Function = ast.FunctionDef | ast.AsyncFunctionDef


def complaints(paths: Iterable[Path], rule: Callable[[Path], Iterable[str]]) -> list[str]:
    """Return what a rule has to say about files, each line with its file."""
    return [f"{path}: {said}" for path in paths for said in rule(path)]


def room_of(path: Path) -> str:
    """Return the room a file of pathnav/ belongs to: its folder, or its own name at the top."""
    return path.parts[1] if len(path.parts) > 2 else path.stem


def reaches_to_its_right(path: Path) -> Iterator[str]:
    room = room_of(path)
    for line, module in imported_modules(path):
        parts = module.split(".")
        if parts[0] == "pathnav" and len(parts) > 1 and parts[1] in RANK and not may_import(room, parts[1]):
            yield f"line {line}: {room} imports {module}"


def may_import(room: str, other: str) -> bool:
    if room == other or (RANK[room] == RANK[other] and RANK[room] in SINGLE_FILES):
        return True
    return RANK[other] < (RANK["slide"] if room == "model" else RANK[room])


def test_rooms_import_only_what_stands_left_of_them() -> None:
    assert not complaints([path for path in CORE if room_of(path) != "__init__"], reaches_to_its_right)


def test_importing_pathnav_imports_no_room() -> None:
    assert not [module for _, module in imported_modules(Path("pathnav/__init__.py")) if module.startswith("pathnav")]


@pytest.mark.parametrize("room", sorted({path.parts[1] for path in CORE if len(path.parts) == 3}))
def test_what_a_room_exports_is_there(room: str) -> None:
    package = importlib.import_module(f"pathnav.{room}")
    assert not [name for name in getattr(package, "__all__", ()) if not hasattr(package, name)]


def test_every_room_has_its_place() -> None:
    rooms = {room_of(path) for path in CORE} - {"__init__"}
    assert rooms <= set(RANK), f"say in tests/test_structure.py what {rooms - set(RANK)} may import"


@pytest.mark.parametrize(
    ("room", "other", "allowed"),
    [
        ("slide", "errors", True),
        ("slide", "cohort", False),
        ("model", "geometry", True),
        ("model", "slide", False),
        ("phantom", "cohort", True),
        ("cohort", "phantom", False),
        ("localise", "model", True),
        ("localise", "explore", False),
        ("plugins", "errors", True),
        ("commands", "cli", True),
        ("run", "report", False),
    ],
)
def test_the_rule_on_imports_is_what_it_says(room: str, other: str, allowed: bool) -> None:
    assert may_import(room, other) is allowed


def test_libraries_stay_in_their_rooms() -> None:
    def strays(path: Path) -> Iterator[str]:
        for line, module in imported_modules(path):
            if room_of(path) not in ONLY_IN.get(module.split(".")[0], {room_of(path)}):
                yield f"line {line}: {module}"

    assert not complaints(CORE, strays)


def test_the_core_never_imports_plugins() -> None:
    folders = {*FOLDER_OF_PACKAGE, *FOLDER_OF_PACKAGE.values()}
    assert not complaints(CORE, lambda path: {m for _, m in imported_modules(path) if m.split(".")[0] in folders})


def test_plugins_import_pathnav_and_their_neighbours_only() -> None:
    def strays(path: Path) -> Iterator[str]:
        known = {*PLUGINS_MAY_IMPORT, path.parts[0], *sys.stdlib_module_names}
        yield from (module for _, module in imported_modules(path) if module.split(".")[0] not in known)

    assert not complaints(PLUGINS, strays)


def test_modules_are_short() -> None:
    def too_long(path: Path) -> Iterator[str]:
        lines = (ROOT / path).read_text(encoding="utf-8").count("\n")
        if lines > MAX_MODULE_LINES:
            yield f"{lines} lines"

    assert not complaints([*SHIPPED, *source_files("tests")], too_long)


def test_functions_are_short() -> None:
    def too_long(path: Path) -> Iterator[str]:
        for function in functions(path):
            lines = (function.end_lineno or function.lineno) - function.lineno + 1
            if lines > MAX_FUNCTION_LINES and not is_command(path, function):
                yield f"{function.name} has {lines} lines"

    assert not complaints(SHIPPED, too_long)


def test_functions_take_few_positional_arguments() -> None:
    def too_many(path: Path) -> Iterator[str]:
        for function in functions(path):
            named = [a.arg for a in (*function.args.posonlyargs, *function.args.args) if a.arg not in ("self", "cls")]
            if len(named) > MAX_POSITIONAL and not is_command(path, function):
                yield f"{function.name} takes {len(named)}"

    assert not complaints(SHIPPED, too_many)


def is_command(path: Path, function: Function) -> bool:
    """Return whether a function is a command, whose arguments typer turns into options: one a line, and many."""
    return path.parent == Path("pathnav/commands") and function.name == path.stem


def test_every_module_and_public_name_has_a_docstring() -> None:
    def bare(path: Path) -> Iterator[str]:
        tree = parsed(path)
        if tree.body and not ast.get_docstring(tree):
            yield "the module has no docstring"
        yield from (f"{node.name} has no docstring" for node in public(tree) if not ast.get_docstring(node))

    assert not complaints(SHIPPED, bare)


def public(node: ast.Module | ast.ClassDef) -> Iterator[ast.ClassDef | Function]:
    """Yield the public functions and classes of a module, and the public methods of its public classes."""
    for child in node.body:
        if isinstance(child, ast.ClassDef | Function) and not child.name.startswith("_"):
            yield child
            if isinstance(child, ast.ClassDef):
                yield from public(child)


def test_error_classes_say_when_they_are_raised() -> None:
    def vague(path: Path) -> Iterator[str]:
        for node in ast.walk(parsed(path)):
            is_error = isinstance(node, ast.ClassDef) and any("Error" in ast.unparse(base) for base in node.bases)
            if is_error and not (ast.get_docstring(node) or "").startswith("Raised when"):
                yield f"the docstring of {node.name} must begin with 'Raised when'"

    assert not complaints(SHIPPED, vague)


def test_one_broad_except_in_the_place_that_ends_an_episode() -> None:
    def swallows(path: Path) -> Iterator[str]:
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.ExceptHandler) and is_broad(node):
                yield "except " + (ast.unparse(node.type) if node.type else "")

    assert [said.split(":")[0] for said in complaints(SHIPPED, swallows)] in ([], ["pathnav/parallel.py"])


def is_broad(handler: ast.ExceptHandler) -> bool:
    """Return whether a handler takes everything and does not always raise something in its place."""
    caught = {word for word in ("Exception", "BaseException") if handler.type and word in names(handler.type)}
    return (handler.type is None or bool(caught)) and not isinstance(handler.body[-1], ast.Raise)


def names(node: ast.expr) -> set[str]:
    """Return the names in an expression."""
    return {found.id for found in ast.walk(node) if isinstance(found, ast.Name)}


def test_the_package_list_names_every_folder() -> None:
    folders = {"pathnav", *(f"pathnav.{'.'.join(path.parent.parts[1:])}" for path in CORE if len(path.parts) > 2)}
    assert set(pyproject()["tool"]["setuptools"]["packages"]) == folders | set(FOLDER_OF_PACKAGE)


def test_the_package_folders_exist() -> None:
    mapping = pyproject()["tool"]["setuptools"]["package-dir"]
    assert mapping == {"pathnav": "pathnav", **FOLDER_OF_PACKAGE}
    assert all((ROOT / folder / "__init__.py").is_file() for folder in mapping.values())
