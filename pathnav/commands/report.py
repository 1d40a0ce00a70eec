"""`pathnav report`: the tables of a run folder."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pathnav.commands.console import DONE, INCOMPLETE, emit, emit_json, note
from pathnav.commands.options import Json, text_option
from pathnav.errors import ConfigError

if TYPE_CHECKING:
    from pathnav.report.load import RunRecord
    from pathnav.report.summary import Report


FORMS = ("text", "markdown", "csv", "json")


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("report", short_help="Print the tables of a run folder.")(report)


def report(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A run folder, also of a run that is still going on.")],
    form: Annotated[str, text_option("text|markdown|csv|json", "text, markdown, csv or json.", "--format")] = "text",
    rescore: Annotated[
        bool, typer.Option("--rescore", help="Make the scores anew from the records, and tell which are others.")
    ] = False,
    as_json: Json = False,
) -> int:
    """Print a run's scores, each with its n and interval, beside the paper's values.

    Of questions (Mode A) per agent and magnification; of whole slides that were explored (Mode B) the hit rates per
    scorer, schedule and magnification. DIR is what pathnav run wrote, or locate or explore with --out; of single
    requests all are shown. With --rescore the exit code is 1 where no score could be made anew.

    \b
    Example:
      pathnav report runs/quickstart --format markdown
    """
    from pathnav.report.load import load_run
    from pathnav.report.summary import report_of

    check_form(form)
    run, code = load_run(folder), DONE
    if rescore:
        run, code = _rescored(run)
    print_report(report_of(run), "json" if as_json else form)
    return code


def _rescored(run: "RunRecord") -> "tuple[RunRecord, int]":
    """Return a run's record with the scores of now, and the exit code; tell what differs."""
    from pathnav.report.rescore import rescored

    found = rescored(run)
    for said in found.lacking:
        note(f"warning: {said}")
    for said in found.differences:
        note(f"rescored: {said}")
    if not found.n_scores:
        note("rescored: nothing; the run holds no score that can be made anew from its records")
        return found.run, INCOMPLETE
    if not found.differences:
        note(f"rescored: all {found.n_scores} scores that were made anew are the recorded ones")
    return found.run, DONE


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
