"""Print docs/commands.md from the commands themselves: `python .ci/commands_page.py > docs/commands.md`."""

import sys
from collections.abc import Iterator
from typing import Any

from typer.main import get_command

from pathnav.cli import app

HEAD = """# Commands

Made from the commands by `python .ci/commands_page.py > docs/commands.md`; a test holds the two together.

Results go to stdout, everything else to stderr. `--debug` anywhere shows the traceback of an error. Exit codes:

- 0: the agent has answered, also without a box;
- 1: a failure that is not the agent's; the record is kept, and a sentence says how to go on;
- 2: bad input; nothing was written;
- 130: Ctrl-C.
"""


def page() -> str:
    """Return the page."""
    commands: dict[str, Any] = get_command(app).commands  # type: ignore[attr-defined]
    return "\n".join([HEAD, *(line for name, command in commands.items() for line in section(name, command))])


def section(name: str, command: Any) -> Iterator[str]:
    """Yield the lines on one command."""
    takes = [parameter for parameter in command.params if parameter.param_type_name == "argument"]
    usage = " ".join(["pathnav", name, *(parameter.metavar or parameter.name.upper() for parameter in takes)])
    yield f"## `{name}`\n\n```text\n{usage} [OPTIONS]\n```\n"
    yield from paragraphs(command.help)
    for parameter in command.params:
        if parameter.name != "help":
            yield f"- {names(parameter)}: {parameter.help}{default(parameter)}"
    yield ""


def paragraphs(text: str) -> Iterator[str]:
    """Yield the paragraphs of a help text; one after a backspace keeps its lines."""
    for paragraph in text.replace("\f", "").split("\n\n"):
        body = paragraph.strip("\n")
        if body.lstrip().startswith("\b"):
            lines = body.replace("\b", "").strip("\n").split("\n")
            yield "```text\n" + "\n".join(line.rstrip() for line in lines if line.strip()) + "\n```\n"
        else:
            yield " ".join(body.split()) + "\n"


def names(parameter: Any) -> str:
    """Return an option or argument as it is typed."""
    if parameter.param_type_name == "argument":
        return f"`{parameter.metavar or parameter.name.upper()}`"
    flags = "/".join([*parameter.opts, *parameter.secondary_opts])
    return f"`{flags}`" if parameter.is_flag else f"`{flags} {parameter.metavar or 'VALUE'}`"


def default(parameter: Any) -> str:
    """Return the default where it is a number."""
    known = isinstance(parameter.default, int | float) and not isinstance(parameter.default, bool)
    return f" Default: {parameter.default}." if known else ""


if __name__ == "__main__":
    sys.stdout.write(page())
