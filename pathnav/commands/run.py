"""`pathnav run`: a whole scenario, from its file to its table."""

import contextlib
import json
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pathnav.commands.anonymise import Anonymise, check_anonymise
from pathnav.commands.console import DONE, INCOMPLETE, json_alone, note
from pathnav.commands.endpoint import AllowHosts, ProfileName
from pathnav.commands.options import BaseUrl, Json, ModelName, PriceFile, a_folder, a_number, a_whole_number
from pathnav.commands.progress import progress_shown
from pathnav.commands.report import print_report
from pathnav.commands.stopping import stoppable
from pathnav.errors import RecordError

if TYPE_CHECKING:
    from pathnav.run.progress import Progress

DEFAULT_FOLDER = Path("runs")

ScenarioArgument = Annotated[
    str, typer.Argument(metavar="SCENARIO", help="A scenario file, or a shipped one: quickstart, mode-a-base, ...")
]
Out = Annotated[
    Path | None, typer.Option(metavar="DIR", parser=a_folder, help="Run folder; default: runs/NAME of the scenario.")
]
Cohort = Annotated[Path | None, typer.Option(metavar="FILE", help="Cohort file, in place of the scenario's slides.")]
Sets = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="KEY=VALUE", help="Put a YAML value in, e.g. localise.budget=[5,3,2]. May be repeated."
    ),
]

Workers = Annotated[
    int,
    typer.Option(metavar="N", parser=a_whole_number, help="Episodes at a time; how much an endpoint bears is yours."),
]
MaxCalls = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        parser=a_whole_number,
        help="Stop before more than N requests of this process, failed ones included.",
    ),
]
MaxUsd = Annotated[
    float | None,
    typer.Option(
        metavar="X",
        parser=a_number,
        help="Stop before this process spends more than X USD; with N shards give each its share.",
    ),
]
MaxMinutes = Annotated[
    float | None, typer.Option(metavar="M", parser=a_number, help="Begin nothing new after M minutes of this process.")
]
EpisodeMinutes = Annotated[
    float | None,
    typer.Option(metavar="M", parser=a_number, help="Repeat no failed request of an episode after M minutes."),
]
ShardText = Annotated[
    str | None, typer.Option("--shard", metavar="I/N", help="Run the I-th of N equal shares of the plan.")
]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("run", short_help="Run a scenario and print its table.")(json_alone(run))


def run(
    scenario: ScenarioArgument,
    out: Out = None,
    cohort: Cohort = None,
    model: ModelName = None,
    base_url: BaseUrl = None,
    profile: ProfileName = None,
    allow_host: AllowHosts = None,
    sets: Sets = None,
    prices: PriceFile = None,
    workers: Workers = 1,
    max_calls: MaxCalls = None,
    max_usd: MaxUsd = None,
    max_minutes: MaxMinutes = None,
    episode_minutes: EpisodeMinutes = None,
    shard: ShardText = None,
    anonymise: Anonymise = None,
    as_json: Json = False,
) -> int:
    """Run a scenario and print its table; running it again continues it.

    Finished episodes are kept, those lost to a failing endpoint are tried again, a changed setting adds episodes.
    Ctrl-C finishes the episodes that run; a second one, or SIGTERM, stops them. Several processes may run into one
    folder: limits (--max-...) and model.requests_per_minute are each one's own, so divide them by their number.

    \b
    Example:
      pathnav run quickstart --workers 4 --max-calls 500
    """
    from pathnav.cohort.scenario_file import load_scenario
    from pathnav.model.guards import Limits
    from pathnav.report.summary import make_report
    from pathnav.run.anonymise import anonymise_run
    from pathnav.run.manner import Manner
    from pathnav.run.scenario_run import ScenarioRun
    from pathnav.run.shard import Shard

    manner = Manner(
        workers,
        Shard.of(shard),
        Limits(max_calls, max_usd, max_minutes),
        episode_minutes=episode_minutes,
        on_draining=_tell_of_draining,
    )
    named = [*([f"model.profile={profile}"] if profile else []), *_allowed(allow_host)]
    given = [*named, *(sets or [])]
    loaded = load_scenario(scenario, sets=given, cohort=cohort, model=model, base_url=base_url, prices=prices)
    folder = out or (Path(loaded.out) if loaded.out else DEFAULT_FOLDER / loaded.name)
    check_anonymise(folder, anonymise)
    reasons: Counter[str] = Counter()
    with stoppable(folder), progress_shown(named=base_url is not None) as show:

        def on_progress(progress: "Progress") -> None:
            show(progress)
            if progress.latest is not None and progress.latest["outcome"] == "infra_error":
                reasons[progress.latest["reason"]] += 1

        try:
            done = ScenarioRun(loaded, folder, manner).run(on_progress, note)
        except KeyboardInterrupt:
            if as_json:
                _print_what_there_is(folder)
            raise
    print_report(make_report(folder), "json" if as_json else "text")
    if anonymise is not None:
        anonymise_run(folder, anonymise)
    return _ended(done, reasons)


def _print_what_there_is(folder: Path) -> None:
    """Print the JSON of a run that was stopped, where anything of it was recorded."""
    from pathnav.report.summary import make_report

    with contextlib.suppress(RecordError):
        print_report(make_report(folder), "json")


def _ended(done: "Progress", reasons: Counter[str]) -> int:
    """Say what is not done and how to go on, and return the exit code."""
    if done.elsewhere:
        note(f"pathnav: {_counted(done.elsewhere, done.units)} left to other processes, which are running them now")
    if done.stopped is not None:
        left = done.left - done.elsewhere
        note(f"pathnav: {done.stopped}; {_counted(left, done.units)} left, and the same command goes on with them")
        return INCOMPLETE
    if not done.failed:
        return DONE
    whose = "" if done.units == "searches" else " that are not the agents'"
    lost = f"{done.failed} of {done.planned} {done.units} were lost to failures{whose}"
    why = "".join(f": {reason}" for reason, _ in reasons.most_common(1))
    further = f" (and {len(reasons) - 1} other reasons)" if len(reasons) > 1 else ""
    note(f"pathnav: {lost}{why}{further}; the same command tries them again")
    return INCOMPLETE


def _counted(count: int, units: str) -> str:
    one = "search" if units == "searches" else "episode"
    return f"1 {one} is" if count == 1 else f"{count} {units} are"


def _tell_of_draining(running: int) -> None:
    what = "the running episode" if running == 1 else f"the {running} running episodes"
    note(f"pathnav: Ctrl-C: no new episode begins; {what} will be finished first (Ctrl-C again stops now)")


def _allowed(hosts: list[str] | None) -> list[str]:
    """Return the assignment that puts hosts into a scenario, none where none is named."""
    return [f"model.allow_hosts={json.dumps(hosts)}"] if hosts else []
