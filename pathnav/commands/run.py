"""`pathnav run`: a whole scenario, from its file to its table."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pathnav.commands.console import DONE, INCOMPLETE, note
from pathnav.commands.options import BaseUrl, Json, ModelName
from pathnav.commands.progress import progress_shown
from pathnav.commands.report import print_report

if TYPE_CHECKING:
    pass

DEFAULT_FOLDER = Path("runs")

ScenarioArgument = Annotated[
    str, typer.Argument(metavar="SCENARIO", help="A scenario file, or a shipped one: quickstart, mode-a-base, ...")
]
Out = Annotated[Path | None, typer.Option(metavar="DIR", help="Run folder; default: runs/NAME of the scenario.")]
Cohort = Annotated[Path | None, typer.Option(metavar="FILE", help="Cohort file, in place of the scenario's slides.")]
Sets = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="KEY=VALUE", help="Put a YAML value in, e.g. localise.budget=[5,3,2]. May be repeated."
    ),
]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("run", short_help="Run a scenario and print its table.")(run)


def run(
    scenario: ScenarioArgument,
    out: Out = None,
    cohort: Cohort = None,
    model: ModelName = None,
    base_url: BaseUrl = None,
    sets: Sets = None,
    as_json: Json = False,
) -> int:
    """Run a scenario and print its table; running it again continues it.

    Finished episodes are kept, those lost to a failing endpoint are tried again, a changed setting adds episodes.

    \b
    Example:
      pathnav run quickstart
    """
    from pathnav.cohort.scenario_file import load_scenario
    from pathnav.report.summary import make_report
    from pathnav.run.scenario_run import ScenarioRun

    loaded = load_scenario(scenario, sets=sets or [], cohort=cohort, model=model, base_url=base_url)
    folder = out or (Path(loaded.out) if loaded.out else DEFAULT_FOLDER / loaded.name)
    with progress_shown() as on_progress:
        done = ScenarioRun(loaded, folder).run(on_progress, note)
    print_report(make_report(folder), "json" if as_json else "text")
    if not done.failed:
        return DONE
    note(
        f"pathnav: {done.failed} of {done.planned} episodes were lost to failures that are not the agents'; "
        "the same command tries them again"
    )
    return INCOMPLETE
