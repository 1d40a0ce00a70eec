"""Plug-ins come in by a name or by a file; what cannot come in says why in one sentence."""

import datetime
import hashlib
import inspect
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import pytest

from pathnav.errors import PathnavError, PluginError
from pathnav.plugins import Kind, Plugin, load, names
from support.source import pyproject

AGENT = '''
class Fixed:
    """An agent."""

    name = "fixed"

    def __init__(self, x: int = 0) -> None:
        self.x = x

    def run(self, environment: object) -> None:
        """Do nothing."""


class Unnamed:
    """An agent without a name of its own."""
'''


def written(folder: Path, text: str) -> str:
    """Write a module and return what names its class `Mine`."""
    folder.mkdir(exist_ok=True)
    (folder / "mine.py").write_text(text)
    return f"{folder}/mine.py:Mine"


@pytest.fixture
def agent_file(tmp_path: Path) -> Path:
    path = tmp_path / "my_agent.py"
    path.write_text(AGENT)
    return path


def test_the_installed_names_are_those_of_pyproject() -> None:
    points = pyproject()["project"]["entry-points"]
    assert names(Kind.AGENT) == sorted(points["pathnav.agents"])
    assert names(Kind.TOOL) == sorted(points["pathnav.tools"])


@pytest.mark.parametrize("kind", list(Kind))
def test_every_installed_plugin_loads_under_its_own_name(kind: Kind) -> None:
    for name in names(kind):
        plugin = load(kind, name)
        assert plugin.name == name == getattr(plugin.cls, "name", name)
        assert plugin.origin.startswith("pathnav ")
        assert plugin.digest is None


def test_a_class_in_a_file_is_loaded_with_the_hash_of_the_file(agent_file: Path) -> None:
    plugin = load(Kind.AGENT, f"{agent_file}:Fixed")
    assert plugin.name == "fixed"
    assert plugin.origin == str(agent_file)
    assert plugin.digest == hashlib.sha256(agent_file.read_bytes()).hexdigest()
    assert plugin.create({"x": 3}).x == 3
    assert load(Kind.AGENT, f"{agent_file}:Unnamed").name == "Unnamed"


def test_a_changed_file_is_loaded_anew(agent_file: Path) -> None:
    before = load(Kind.AGENT, f"{agent_file}:Fixed")
    agent_file.write_text(AGENT.replace("x: int = 0", "x: int = 7"))
    after = load(Kind.AGENT, f"{agent_file}:Fixed")
    assert (before.create().x, after.create().x) == (0, 7)
    assert before.digest != after.digest


def test_two_files_of_the_same_name_do_not_mix(tmp_path: Path) -> None:
    loaded = [load(Kind.AGENT, written(tmp_path / name, f"class Mine:\n    value = {name!r}\n")) for name in "ab"]
    assert [plugin.cls.value for plugin in loaded] == ["a", "b"]


def test_a_class_in_a_module_is_loaded_by_its_dotted_name() -> None:
    plugin = load(Kind.AGENT, "pathnav.geometry:Box")
    assert plugin.name == "Box"
    assert plugin.origin == "pathnav.geometry"


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ("randm", ["'randm'", "did you mean random?", "parent-centre"]),
        ("qqqq", ["'qqqq'", "installed: ", "file.py:Class"]),
        ("nowhere.py:Agent", ["nowhere.py does not exist"]),
        ("pathnav.nowhere:Agent", ["cannot be loaded", "pathnav.nowhere"]),
        ("pathnav.geometry:Bax", ["no class 'Bax'", "Box"]),
    ],
)
def test_what_is_not_there_is_said_with_what_is(spec: str, words: list[str]) -> None:
    with pytest.raises(PluginError) as caught:
        load(Kind.AGENT, spec)
    for word in words:
        assert word in str(caught.value)


def test_a_file_that_fails_on_import_says_how(tmp_path: Path) -> None:
    with pytest.raises(PluginError, match="fails on import: ZeroDivisionError"):
        load(Kind.AGENT, written(tmp_path, "1 / 0\n"))


@pytest.mark.parametrize(
    ("parameters", "body", "options", "says"),
    [
        ("x=0", "pass", {"y": 1, "x": 2, "z": 3}, r"^agent 'Mine' has no option 'y' and no option 'z'; it has: x$"),
        ("", "pass", {"y": 1}, r"^agent 'Mine' has no option 'y'; it has none$"),
        ("k, *, b=1", "pass", {"b": 2}, r"^agent 'Mine' cannot do without option 'k'; it has: k, b$"),
        (
            "**any",
            "len(any['k'])",
            {"k": 1},
            r"^agent 'Mine' \(.*mine\.py\) cannot be made with the options .*TypeError",
        ),
        ("", "raise ValueError('bad weights')", {}, r"^agent 'Mine' \(.*mine\.py\) cannot be made: ValueError: bad"),
        ("", "raise ModuleNotFoundError('no x')", {}, r"^agent 'Mine' \(.*mine\.py\) cannot be made: ModuleNotFound"),
        ("", "raise PluginError('own words')", {}, "^own words$"),
    ],
)
def test_options_that_a_class_cannot_take_are_refused_in_a_sentence(
    parameters: str, body: str, options: dict[str, Any], says: str, tmp_path: Path
) -> None:
    signature = f"self, {parameters}" if parameters else "self"
    source = f"from pathnav.errors import PluginError\n\nclass Mine:\n    def __init__({signature}):\n        {body}\n"
    plugin = load(Kind.AGENT, written(tmp_path, source))
    with pytest.raises(PluginError, match=says):
        plugin.create(options)


SHIPPED = [
    (kind, name, option)
    for kind in (Kind.AGENT, Kind.SCORER)
    for name in names(kind)
    for option in inspect.signature(load(kind, name).cls).parameters
]


@pytest.mark.parametrize(("kind", "name", "option"), SHIPPED)
def test_every_option_of_a_shipped_plugin_refuses_a_value_of_a_wrong_type_in_a_sentence(
    kind: Kind, name: str, option: str
) -> None:
    needed = {"architecture": "ViT-B-32", "checkpoint": "openai"} if name == "clip-retrieval" else {}
    with pytest.raises(PathnavError) as refused:
        load(kind, name).create({**needed, option: datetime.date(2026, 1, 2)})
    said = str(refused.value)
    assert option in said
    assert "2026" in said
    assert "Error" not in said


@pytest.mark.parametrize(
    ("name", "options", "says"),
    [
        ("vlm", {"target_text": 5}, "option target_text must be a text, got 5; a text that looks like a number"),
        ("vlm", {"target_text": False}, "option target_text must be a text, got false; a text that looks like"),
        ("vlm", {"prompt": 5}, "option prompt must be a text, got 5"),
        ("random", {"seed": "x"}, 'option seed must be a whole number, got "x"'),
        ("random", {"seed": True}, "option seed must be a whole number, got true"),
        ("random", {"seed": 1.5}, "option seed must be a whole number, got 1.5"),
        ("random", {"seed": None}, "option seed must be a whole number, got null"),
    ],
)
def test_an_option_of_a_wrong_type_is_refused_with_what_was_expected(name: str, options: Any, says: str) -> None:
    with pytest.raises(PathnavError) as refused:
        load(Kind.SCORER, name).create(options)
    assert str(refused.value).startswith(f"scorer {name!r}: {says}")


class Declared:
    """Declares what a plug-in may."""

    def __init__(
        self,
        share: float = 0,
        tools: Sequence[str] = (),
        table: dict[str, int] | None = None,
        kind: Any = None,
        either: Literal["a", "b"] | int = 0,
        where: Path | None = None,
        own: "Declared | None" = None,
    ) -> None:
        self.share, self.tools, self.where = share, tools, where


DECLARED = Plugin("declared", Kind.AGENT, Declared, "here")


@pytest.mark.parametrize(
    "given",
    [
        *[{"share": 1}, {"share": 0.5}, {"tools": ["a"]}, {"tools": ()}, {"table": {}}, {"table": None}, {"kind": Any}],
        *[{"either": "a"}, {"either": 5}, {"either": 5.0}, {"where": "a"}, {"where": Path("a")}, {"own": 3}],
    ],
)
def test_what_a_declaration_allows_reaches_the_class_as_it_was_given(given: Any) -> None:
    made = DECLARED.create(given)
    assert all(getattr(made, name, value) is value for name, value in given.items())


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"share": "a"}, 'share must be a number, got "a"'),
        ({"share": True}, "share must be a number, got true"),
        ({"tools": "a"}, 'tools must be a list, got "a"'),
        ({"tools": ["a", 1]}, "tools.1 must be a text, got 1"),
        ({"table": [1]}, "table must be a mapping of keys to values, got [1]"),
        ({"either": "c"}, "either must be 'a' or 'b' or a whole number, got \"c\""),
    ],
)
def test_what_a_declaration_does_not_allow_is_told(given: Any, says: str) -> None:
    with pytest.raises(PluginError, match=f"^agent 'declared': option {re.escape(says)}"):
        DECLARED.create(given)
