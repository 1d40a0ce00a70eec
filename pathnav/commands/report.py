"""`pathnav report`: the table of a run folder."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pathnav.commands.console import emit, emit_json
from pathnav.commands.options import Json
from pathnav.errors import ConfigError

if TYPE_CHECKING:
    from pathnav.report.summary import Report


FORMS = ("text", "markdown", "csv", "json")


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("report", short_help="Print the table of a run folder.")(report)


def report(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A run folder, also of a run that is still going on.")],
    form: Annotated[
        str, typer.Option("--format", metavar="text|markdown|csv|json", help="text, markdown, csv or json.")
    ] = "text",
    as_json: Json = False,
) -> None:
    """Print a run's scores per agent and magnification, each with its n and interval, beside the paper's values.

    \b
    Example:
      pathnav report runs/quickstart --format markdown
    """
    from pathnav.report.summary import make_report

    check_form(form)
    print_report(make_report(folder), "json" if as_json else form)


def check_form(form: str) -> None:
    """Refuse a form that a report does not have.

    Raises:
        ConfigError: If there is no such form.
    """
    if form not in FORMS:
        raise ConfigError(f"--format must be one of {', '.join(FORMS)}, got {form!r}")


def print_report(found: "Report", form: str = "text") -> None:
    """Print a report on stdout: with a terminal's width on a terminal, as wide as it needs elsewhere."""
    if form == "json":
        emit_json(found.as_json())
        return
    from pathnav.report import render

    if form == "text" and sys.stdout.isatty():
        from rich.console import Console

        render.print_report(found, Console(markup=False, highlight=False))
    else:
        emit(render.render(found, render.Form(form)).rstrip("\n"))
