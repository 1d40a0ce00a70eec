"""`pathnav plan`: what a scenario would ask for, and what it could cost."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pathnav.commands import options as opt
from pathnav.commands.console import json_alone, note, tell
from pathnav.commands.run import DEFAULT_FOLDER

if TYPE_CHECKING:
    from pathnav.run.estimate import Bound
    from pathnav.run.forecast import Forecast, Row

_NUMBERS = ("planned", "done", "ROIs", "tiles", "calls", "tokens in", "tokens out", "USD")


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("plan", short_help="Tell what a scenario asks for and what it can cost.")(json_alone(plan))


def plan(
    scenario: opt.ScenarioArgument,
    out: Annotated[
        Path | None,
        opt.folder_option("Run folder, whose results count as done; default: runs/NAME of the scenario."),
    ] = None,
    cohort: opt.Cohort = None,
    model: opt.ModelName = None,
    base_url: opt.BaseUrl = None,
    profile: opt.ProfileName = None,
    sets: opt.Sets = None,
    prices: opt.PriceFile = None,
    as_json: opt.Json = False,
) -> None:
    """Tell what a scenario asks for, at most, before anything is spent: ROIs, requests, tokens and money.

    No model is asked and no run folder is written to. ROIs, tiles and calls are bounds that no run exceeds, tries that
    fail apart; tokens rest on estimates. What the run folder holds already is counted as done.

    \b
    Example:
      pathnav plan mode-a-base --cohort cohort.yaml --model gpt-4.1 --base-url https://api.openai.com/v1
    """
    from pathnav.cohort.scenario_file import load_scenario
    from pathnav.run.forecast import make_forecast
    from pathnav.run.open_slides import OpenSlides

    sets = [*([f"model.profile={profile}"] if profile else []), *(sets or [])]
    loaded = load_scenario(scenario, sets=sets, cohort=cohort, model=model, base_url=base_url, prices=prices)
    folder = out or (Path(loaded.out) if loaded.out else DEFAULT_FOLDER / loaded.name)
    with OpenSlides() as slides:
        found = make_forecast(loaded, folder, slides, note)
    tell(found.as_json(), _lines(found), as_json)


def _lines(found: "Forecast") -> Iterator[str]:
    """Yield the plan as text."""
    plural = "" if found.planned == 1 else "s"
    yield f"{found.scenario.name}: {found.planned:,} result{plural}, {found.done:,} done in {found.out}"
    for name, values, combines in found.axes:
        yield f"sweep {name}: {', '.join(map(_value, values))}" + ("" if combines else " (within each combination)")
    for number, variant in enumerate(found.plan.variants):
        rows = [row for row in found.rows if row.combination == number]
        yield ""
        if variant.settings:
            told = ", ".join(f"{name}={_value(value)}" for name, value in variant.settings.items())
            shared = f"; {variant.shared:,} more are shared with those above" if variant.shared else ""
            yield f"{number + 1} of {len(found.plan.variants)}: {told}{shared}"
        if rows:
            yield from _table(rows)
    yield ""
    yield from _summary(found)


def _table(rows: Sequence["Row"]) -> Iterator[str]:
    """Yield one line an agent or scorer; what is not known is said so, what does not apply is a dash."""
    named = [("mode", "name", "model"), *((row.mode, row.name, row.model or "-") for row in rows)]
    numbers = [_NUMBERS, *(_numbers(row) for row in rows)]
    names = [max(len(line[column]) for line in named) for column in range(3)]
    widths = [max(len(line[column]) for line in numbers) for column in range(len(_NUMBERS))]
    for name, line in zip(named, numbers, strict=True):
        left = (cell.ljust(width) for cell, width in zip(name, names, strict=True))
        right = (cell.rjust(width) for cell, width in zip(line, widths, strict=True))
        yield "  ".join([*left, *right])


def _numbers(row: "Row") -> tuple[str, ...]:
    bound, mode_a = row.bound, row.mode == "localise"
    seen = (f"{bound.rois:,}" if mode_a else "-", "-" if mode_a else f"{bound.tiles:,}")
    asked = (_count(bound.calls), _count(bound.tokens_in), _count(bound.tokens_out), _usd(bound))
    return (f"{row.planned:,}", f"{row.done:,}", *seen, *(asked if row.model else ("-",) * len(asked)))


def _summary(found: "Forecast") -> Iterator[str]:
    """Yield what it all comes to."""
    bound = found.at_most
    seen = f"{bound.rois:,} ROIs, {bound.tiles:,} tiles"
    asked = f"{_count(bound.calls)} calls, {_count(bound.tokens_in)} tokens in, {_count(bound.tokens_out)} tokens out"
    yield f"at most: {seen}, {asked}"
    dated = found.as_json()["prices_date"]
    why = f" ({'; '.join(bound.unknown)})" if bound.unknown else f" at the prices of {dated}"
    yield f"cost:    {_usd(bound)}{' USD' if bound.cost_usd is not None else ''}{why}"
    talks = [row.conversation for row in found.rows if row.conversation is not None]
    if talks:
        longest = max(talks, key=lambda talk: talk.longest)
        yield f"longest conversation: {longest.longest:,} tokens, with short answers {longest.short:,}"
    yield from (f"warning: {text}" for text in found.warnings)


def _count(number: int | None) -> str:
    return "unknown" if number is None else f"{number:,}"


def _usd(bound: "Bound") -> str:
    if bound.cost_usd is None:
        return "unknown"
    return f"{bound.cost_usd:.2f}" if bound.cost_usd >= 1 or bound.cost_usd == 0 else f"{bound.cost_usd:.2g}"


def _value(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
