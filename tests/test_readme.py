"""The documentation is true: its Python runs, its commands and options exist, its links lead somewhere."""

import contextlib
import importlib.util
import io
import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.main import get_command

from pathnav.cli import app, main
from pathnav.cohort.scenario_file import load_scenario
from pathnav.phantom import make_phantom
from pathnav.run import locate
from support.source import ROOT

PAGES = [Path("README.md"), Path("CONTRIBUTING.md"), *sorted(p.relative_to(ROOT) for p in (ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\[[^\]]*\]\(([^)#\s]*)(?:#([^)\s]*))?\)")
HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)
COMMANDS: dict[str, Any] = get_command(app).commands  # type: ignore[attr-defined]


def text_of(page: Path) -> str:
    return (ROOT / page).read_text(encoding="utf-8")


def blocks(page: Path, language: str) -> list[str]:
    """Return the fenced blocks of a language."""
    return [body for found, body in BLOCK.findall(text_of(page)) if found == language]


def command_lines(page: Path) -> Iterator[list[str]]:
    """Yield the words after `pathnav` of every command that a page shows, in blocks and in running text."""
    shown = [line for language in ("bash", "text") for body in blocks(page, language) for line in joined(body)]
    shown += re.findall(r"`(pathnav [^`\n]+)`", re.sub(BLOCK, "", text_of(page)))
    for line in shown:
        for part in line.split(" && "):
            if part.strip().startswith("pathnav "):
                yield shlex.split(part, comments=True)[1:]


def joined(body: str) -> list[str]:
    """Return the lines of a shell block, continued ones in one."""
    return body.replace("\\\n", " ").splitlines()


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the phantom that the documentation calls demo.tiff."""
    folder = tmp_path_factory.mktemp("demo")
    make_phantom(folder / "demo.tiff", seed=1, side=2048)
    return folder


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_every_command_and_option_shown_exists(page: Path) -> None:
    for words in command_lines(page):
        if words[0] in ("--help", "..."):
            continue
        assert words[0] in COMMANDS, f"{page} shows pathnav {words[0]}"
        known = {flag for p in COMMANDS[words[0]].params for flag in (*p.opts, *p.secondary_opts)} | {
            "--help",
            "--debug",
        }
        unknown = {word for word in words if word.startswith("--")} - known
        assert not unknown, f"{page} shows pathnav {words[0]} with {unknown}"


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_every_link_leads_to_a_file_and_a_heading(page: Path) -> None:
    for target, anchor in LINK.findall(text_of(page)):
        if target.startswith("http"):
            continue
        place = (ROOT / page.parent / target).resolve() if target else ROOT / page
        assert place.exists(), f"{page} links to {target}"
        if anchor:
            anchors = {re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-") for h in HEADING.findall(place.read_text())}
            assert anchor in anchors, f"{page} links to {target}#{anchor}"


@pytest.mark.parametrize("number", range(2))
def test_the_readmes_python_runs(number: int, demo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(demo)
    code = blocks(Path("README.md"), "python")[number]
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(compile(code, f"README example {number + 1}", "exec"), {"__name__": "__main__"})
    assert printed.getvalue()


def test_the_readmes_agent_is_short_and_there_are_two_examples() -> None:
    examples = blocks(Path("README.md"), "python")
    assert len(examples) == 2
    assert all(len([line for line in example.splitlines() if line.strip()]) <= 20 for example in examples)


def test_the_scorer_of_the_how_to_runs(demo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(demo)
    scorer, further, check = blocks(Path("docs/how-to-scorer.md"), "python")
    imports = "from concurrent.futures import ThreadPoolExecutor, as_completed"
    ask = "    def ask(self, tile):\n        return next(iter(self.score([tile])))"
    Path("my_scorer.py").write_text(f"{imports}\n{scorer}\n{ask}\n\n{further}")
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(compile(check, "docs/how-to-scorer.md", "exec"), {"__name__": "__main__"})
        (line,) = [words for words in command_lines(Path("docs/how-to-scorer.md")) if "my_scorer.py:Redness" in words]
        assert main([*line, "--json"]) == 0
    assert "Rule.REPEAT" in printed.getvalue()


@pytest.mark.parametrize("page", ["docs/how-to-agent.md", "docs/tutorial.md"])
def test_the_agents_of_the_how_tos_run(page: str, demo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(demo)
    agent, check = blocks(Path(page), "python")
    Path("my_agent.py").write_text(agent)
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(compile(check, page, "exec"), {"__name__": "__main__"})
    assert "7 rules kept" in printed.getvalue()


def test_the_tool_of_the_how_to_is_offered_to_the_model(demo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(demo)
    (tool,) = blocks(Path("docs/how-to-tool.md"), "python")
    Path("my_tool.py").write_text(tool)
    result = locate("demo.tiff", "solid nests", 10, options={"tools": ["my_tool.py:LooksSoFar"]}, out="with-tool")
    assert result["outcome"] == "finished"
    (events,) = Path("with-tool").glob("episodes/*/events.jsonl")
    assert '"looks_so_far"' in events.read_text()


def test_the_scenario_of_the_tutorial_loads(demo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(demo)
    (scenario,) = blocks(Path("docs/tutorial.md"), "yaml")
    Path("mine.yaml").write_text(scenario)
    assert len(load_scenario("mine.yaml").localise.agents) == 4


@pytest.mark.parametrize("page", [page for page in PAGES if "scenario" not in page.name], ids=str)
def test_every_yaml_block_is_yaml(page: Path) -> None:
    for body in blocks(page, "yaml"):
        assert isinstance(yaml.safe_load(body), dict)


def test_the_records_page_names_every_field_and_every_kind_of_event(demo: Path) -> None:
    locate(demo / "demo.tiff", "solid nests", 10, out=demo / "recorded")
    (result_file,) = demo.glob("recorded/episodes/*/result.json")
    (events_file,) = demo.glob("recorded/episodes/*/events.jsonl")
    page = text_of(Path("docs/records.md"))
    fields = set(json.loads(result_file.read_text()))
    kinds = {json.loads(line)["kind"] for line in events_file.read_text().splitlines()}
    assert {name for name in fields | kinds if f"`{name}`" not in page} == set()


def test_the_commands_page_is_that_of_the_commands() -> None:
    spec = importlib.util.spec_from_file_location("commands_page", ROOT / ".ci" / "commands_page.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.page() == text_of(Path("docs/commands.md")), "run python .ci/commands_page.py > docs/commands.md"


@pytest.mark.parametrize("name", list(COMMANDS))
def test_every_command_has_help_and_so_has_every_option(name: str) -> None:
    assert COMMANDS[name].help
    bare = [p.name for p in COMMANDS[name].params if p.name != "help" and not p.help]
    assert not bare


@pytest.mark.slow
@pytest.mark.parametrize("page", [Path("README.md"), Path("docs/tutorial.md")], ids=str)
def test_the_commands_on_the_demo_slide_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name, language in (("my_agent.py", "python"), ("mine.yaml", "yaml")):
        for body in blocks(page, language)[:1]:
            Path(name).write_text(body)
    ran = 0
    for body in blocks(page, "bash"):
        for line in joined(body):
            words = shlex.split(line)
            if (
                words[:1] == ["pathnav"]
                and not {"--base-url", "slide.svs", "slide.tif"} & set(words)
                and "quick" not in line
            ):
                assert main(words[1:]) == 0, line
                ran += 1
    assert ran >= 3
