"""Plug-ins come in by a name or by a file; what cannot come in says why in one sentence."""

import datetime
import hashlib
import inspect
from collections.abc import Sequence
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import pytest

from pathnav.errors import PathnavError, PluginError
from pathnav.plugin_options import type_fault
from pathnav.plugins import Kind, load, names
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


def test_a_baseline_comes_from_its_folder() -> None:
    (point,) = (point for point in entry_points(group="pathnav.agents") if point.name == "random")
    assert point.value == "pathnav_baselines.random_window:RandomWindow"


def test_a_class_in_a_file_is_loaded_with_the_hash_of_the_file(agent_file: Path) -> None:
    plugin = load(Kind.AGENT, f"{agent_file}:Fixed")
    assert plugin.name == "fixed"
    assert plugin.origin == str(agent_file)
    assert plugin.digest == hashlib.sha256(agent_file.read_bytes()).hexdigest()
    assert plugin.create({"x": 3}).x == 3


def test_a_changed_file_is_loaded_anew(agent_file: Path) -> None:
    before = load(Kind.AGENT, f"{agent_file}:Fixed")
    agent_file.write_text(AGENT.replace("x: int = 0", "x: int = 7"))
    after = load(Kind.AGENT, f"{agent_file}:Fixed")
    assert (before.create().x, after.create().x) == (0, 7)
    assert before.digest != after.digest


def test_a_class_without_a_name_goes_by_its_class_name(agent_file: Path) -> None:
    assert load(Kind.AGENT, f"{agent_file}:Unnamed").name == "Unnamed"


def test_two_files_of_the_same_name_do_not_mix(tmp_path: Path) -> None:
    for folder, value in (("one", 1), ("two", 2)):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "agent.py").write_text(f"class Agent:\n    value = {value}\n")
    loaded = [load(Kind.AGENT, f"{tmp_path / folder / 'agent.py'}:Agent") for folder in ("one", "two")]
    assert [plugin.cls.value for plugin in loaded] == [1, 2]


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
    path = tmp_path / "broken.py"
    path.write_text("1 / 0\n")
    with pytest.raises(PluginError, match="fails on import: ZeroDivisionError"):
        load(Kind.AGENT, f"{path}:Agent")


def test_options_that_a_class_does_not_take_are_refused(agent_file: Path) -> None:
    with pytest.raises(PluginError, match=r"^agent 'fixed' has no option 'y' and no option 'z'; it has: x$"):
        load(Kind.AGENT, f"{agent_file}:Fixed").create({"y": 1, "x": 2, "z": 3})
    with pytest.raises(PluginError, match=r"^agent 'Unnamed' has no option 'y'; it has none$"):
        load(Kind.AGENT, f"{agent_file}:Unnamed").create({"y": 1})


def test_an_option_that_a_class_cannot_do_without_is_named(tmp_path: Path) -> None:
    path = tmp_path / "needy.py"
    path.write_text("class Needy:\n    def __init__(self, k, *, b=1):\n        pass\n")
    with pytest.raises(PluginError, match=r"^scorer 'Needy' cannot do without option 'k'; it has: k, b$"):
        load(Kind.SCORER, f"{path}:Needy").create({"b": 2})


def test_a_class_that_takes_any_option_speaks_for_itself(tmp_path: Path) -> None:
    path = tmp_path / "open.py"
    path.write_text("class Open:\n    def __init__(self, **options):\n        self.n = len(options['k'])\n")
    plugin = load(Kind.AGENT, f"{path}:Open")
    assert plugin.create({"k": "ab"}).n == 2
    with pytest.raises(PluginError, match=r"^agent 'Open' \(.*open\.py\) cannot be made with the options .*TypeError"):
        plugin.create({"k": 1})


@pytest.mark.parametrize(
    "raised", ["ValueError('bad weights')", "ModuleNotFoundError('no torchxyz')", "OSError('gone')"]
)
def test_a_class_that_fails_while_it_is_made_is_named_with_its_file(tmp_path: Path, raised: str) -> None:
    path = tmp_path / "mine.py"
    path.write_text(f"class Mine:\n    def __init__(self):\n        raise {raised}\n")
    with pytest.raises(PluginError, match=r"^scorer 'Mine' \(.*mine\.py\) cannot be made: ") as found:
        load(Kind.SCORER, f"{path}:Mine").create()
    assert raised.partition("(")[0] in str(found.value)


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
        self, share: float = 0, tools: Sequence[str] = (), table: dict[str, int] | None = None, kind: Any = None
    ) -> None:
        pass


@pytest.mark.parametrize(
    "given",
    [{"share": 1}, {"share": 0.5}, {"tools": ["a"]}, {"tools": ()}, {"table": {}}, {"table": None}, {"kind": Any}],
)
def test_what_a_declaration_allows_fits(given: Any) -> None:
    assert type_fault(Declared, given) is None


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"share": "a"}, "share must be a number"),
        ({"tools": "a"}, "tools must be a list of texts"),
        ({"tools": [1]}, "tools must be a list of texts"),
        ({"table": [1]}, "table must be a mapping of keys to values"),
    ],
)
def test_what_a_declaration_does_not_allow_is_told(given: Any, says: str) -> None:
    assert says in str(type_fault(Declared, given))
