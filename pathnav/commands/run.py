"""`pathnav run`: a whole scenario, from its file to its table."""

import contextlib
import json
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pathnav.commands import options as opt
from pathnav.commands.anonymise import anonymised
from pathnav.commands.console import DONE, INCOMPLETE, json_alone, note
from pathnav.commands.progress import progress_shown
from pathnav.commands.report import print_report
from pathnav.commands.stopping import stoppable
from pathnav.errors import RecordError

if TYPE_CHECKING:
    from pathnav.run.runner import Progress

DEFAULT_FOLDER = Path("runs")


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("run", short_help="Run a scenario and print its table.")(json_alone(run))


def run(
    scenario: opt.ScenarioArgument,
    out: Annotated[Path | None, opt.folder_option("Run folder; default: runs/NAME of the scenario.")] = None,
    cohort: opt.Cohort = None,
    model: opt.ModelName = None,
    base_url: opt.BaseUrl = None,
    profile: opt.ProfileName = None,
    allow_host: opt.AllowHosts = None,
    sets: opt.Sets = None,
    prices: opt.PriceFile = None,
    workers: Annotated[
        int, opt.whole_number_option("N", "Episodes at a time; how much an endpoint bears is yours.")
    ] = 1,
    max_calls: Annotated[
        int | None,
        opt.whole_number_option("N", "Stop before more than N requests of this process, failed ones included."),
    ] = None,
    max_usd: Annotated[
        float | None,
        opt.number_option("X", "Stop before this process spends more than X USD; with N shards give each its share."),
    ] = None,
    max_minutes: Annotated[
        float | None, opt.number_option("M", "Begin nothing new after M minutes of this process.")
    ] = None,
    episode_minutes: Annotated[
        float | None, opt.number_option("M", "Repeat no failed request of an episode after M minutes.")
    ] = None,
    shard: Annotated[str | None, opt.text_option("I/N", "Run the I-th of N equal shares of the plan.")] = None,
    anonymise: opt.Anonymise = None,
    as_json: opt.Json = False,
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
    from pathnav.run.runner import RunOptions, Shard
    from pathnav.run.scenario_run import ScenarioRun

    options = RunOptions(
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
    reasons: Counter[str] = Counter()
    with anonymised(folder, anonymise):
        with stoppable(folder), progress_shown(named=base_url is not None) as show:

            def on_progress(progress: "Progress") -> None:
                show(progress)
                if progress.latest is not None and progress.latest["outcome"] == "infra_error":
                    reasons[progress.latest["reason"]] += 1

            try:
                done = ScenarioRun(loaded, folder, options).run(on_progress, note)
            except KeyboardInterrupt:
                if as_json:
                    _print_what_there_is(folder)
                raise
        print_report(make_report(folder), "json" if as_json else "text")
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
