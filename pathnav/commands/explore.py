"""`pathnav explore`: one hierarchical search of one slide."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pathnav.commands import options as opt
from pathnav.commands.anonymise import anonymised
from pathnav.commands.console import DONE, INCOMPLETE, embeddings_line, emit_json, json_alone, note, tell
from pathnav.commands.progress import progress_shown
from pathnav.commands.stopping import stoppable
from pathnav.errors import ConfigError

if TYPE_CHECKING:
    from pathnav.run.explore_request import ExploreRequest, Searched


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("explore", short_help="Search one slide from coarse to fine for tumour.")(json_alone(explore))


def explore(
    slide: opt.SlideArgument,
    annotation: Annotated[Path | None, opt.text_option("FILE", "Tumour polygons (see pathnav annotations).")] = None,
    tumour_class: Annotated[
        list[str] | None, opt.text_option("NAME", "A class of the annotation that is tumour. May be repeated.")
    ] = None,
    relative_to_bounds: Annotated[
        bool,
        typer.Option(
            "--relative-to-bounds",
            help="Annotation and GeoJSON count from the corner of the scanned area, as QuPath does on MIRAX.",
        ),
    ] = False,
    scorer: Annotated[
        str | None,
        opt.text_option("NAME", "An installed scorer (see pathnav scorers), or path/to/file.py:Class; default: vlm."),
    ] = None,
    scorer_option: Annotated[
        list[str] | None, opt.text_option("KEY=VALUE", "An option of the scorer; VALUE is YAML. May be repeated.")
    ] = None,
    model: opt.ModelName = None,
    base_url: opt.BaseUrl = None,
    api_key_env: opt.ApiKeyEnv = None,
    api_key_file: opt.ApiKeyFile = None,
    profile: opt.ProfileName = None,
    allow_host: opt.AllowHosts = None,
    max_tokens: opt.MaxTokens = None,
    prompt: Annotated[Path | None, opt.text_option("FILE", "Your own question, for the vlm scorer.")] = None,
    target_text: Annotated[
        str | None, opt.text_option("TEXT", "What is looked for, in the vlm scorer's question; default: tumour.")
    ] = None,
    schedule: Annotated[str, opt.text_option("K,K,K", "Tiles kept at 2.5x, and per parent.")] = "6,3,2",
    tile_px: Annotated[int, opt.whole_number_option("PX", "Side of a tile's image at its magnification.")] = 1024,
    min_tissue: Annotated[
        float, opt.number_option("SHARE", "Least tissue of a tile that is scored; 0: all tiles.")
    ] = 0.01,
    fill_to_k: Annotated[
        bool, typer.Option("--fill-to-k", help="Where fewer than K say Yes, fill with the best No.")
    ] = False,
    seed: opt.Seed = 0,
    concurrency: Annotated[int, opt.whole_number_option("N", "Requests to the endpoint that may be in flight.")] = 8,
    mpp: opt.Mpp = None,
    objective_power: opt.ObjectivePower = None,
    reader: opt.Reader = None,
    prices: opt.PriceFile = None,
    out: opt.RecordFolder = None,
    geojson: Annotated[Path | None, opt.text_option("FILE", "Write the kept tiles for QuPath, with scores.")] = None,
    force: opt.Force = False,
    anonymise: opt.Anonymise = None,
    as_json: opt.Json = False,
) -> int:
    """Keep the most suspicious tiles of a slide at 2.5x, then of each kept tile at 10x, then at 40x.

    With an annotation, tells how much of the tumour was kept. Without --scorer and --model the offline stub answers,
    which is no model. With --out, scores are kept: the same command continues, another schedule asks only new tiles.

    \b
    Example: pathnav explore slide.svs --annotation slide.geojson --tumour-class tumor --scorer nuclear-density
    """
    from pathnav.explore.schedule import Schedule
    from pathnav.run.exploration import TileSettings
    from pathnav.run.explore_request import ExploreRequest
    from pathnav.run.truth import TruthSource

    drawn = opt.writable_file("--geojson", geojson, (".geojson", ".json"), "GeoJSON files", force=force)
    if annotation is None and tumour_class:
        raise ConfigError("--tumour-class names a class of an annotation: give its file with --annotation")
    if relative_to_bounds and annotation is None and geojson is None:
        raise ConfigError("--relative-to-bounds is about coordinates in files: give --annotation or --geojson too")
    truth = TruthSource(str(annotation) if annotation else None, tuple(tumour_class or ()), relative_to_bounds)
    options = _scorer_options(scorer_option, prompt, target_text)
    hosts = tuple(allow_host or ())
    endpoint = opt.EndpointOptions(model, base_url, api_key_env, api_key_file, max_tokens, profile, hosts)
    request = ExploreRequest(
        opt.slide_source(slide, mpp, objective_power, reader),
        truth,
        "vlm" if scorer is None else scorer,
        options,
        endpoint.settings(),
        Schedule.of(schedule),
        TileSettings(tile_px, min_tissue, fill_to_k),
        seed,
        concurrency,
        out,
        prices,
    )
    with anonymised(out, anonymise), stoppable(out):
        return _search(request, drawn, as_json)


def _scorer_options(texts: list[str] | None, prompt: Path | None, target_text: str | None) -> dict[str, Any]:
    """Return the keyword arguments of a scorer's class.

    Raises:
        ConfigError: If a text is not KEY=VALUE, or something is said twice.
    """
    options = opt.key_values("--scorer-option", texts or [])
    short = {"prompt": None if prompt is None else str(prompt), "target_text": target_text}
    given = {name: value for name, value in short.items() if value is not None}
    double = sorted(set(options) & set(given))
    if double:
        option = double[0].replace("_", "-")
        raise ConfigError(f"--{option} and --scorer-option {double[0]}=... say the same thing: give one of them")
    return {**options, **given}


def _search(request: "ExploreRequest", geojson: Path | None, as_json: bool) -> int:
    """Run the request, write and print what came of it, and return the exit code."""
    from pathnav.run.explore_request import Searched
    from pathnav.run.open_slides import OpenSlides
    from pathnav.run.stopped import Stopped

    with OpenSlides() as slides:
        try:
            with progress_shown(named=request.model is not None) as on_progress:
                found = request.run(slides, on_progress, note)
        except Stopped as stopped:
            if as_json and isinstance(stopped.found, Searched):
                emit_json(stopped.found.printed())
            raise
        if geojson is not None and found.result["outcome"] == "finished":
            from pathnav.report.geojson import write_kept_tiles

            bounds = slides.get(request.source).bounds
            corner = (bounds.x, bounds.y) if request.truth.relative_to_bounds else (0.0, 0.0)
            write_kept_tiles(geojson, found.result, corner)
    tell(found.printed(), _lines(found), as_json)
    for line in _oddities(found.result):
        note(f"pathnav: warning: {line}")
    if found.result["outcome"] == "infra_error":
        again = "run the same command again" if found.out else "run it again, with --out DIR to keep the scores"
        note(f"pathnav: the search did not come to its end: {found.result['reason']}; {again}")
        return INCOMPLETE
    return DONE


def _oddities(result: dict[str, Any]) -> list[str]:
    """Return what makes a finished search mean less than it seems to."""
    if result["outcome"] != "finished":
        return []
    said = [] if result["levels"][0]["kept"] else [_why_none_is_kept(result)]
    if result["annotation"] and not result["annotation"]["area_px2"]:
        said.append("the slide is annotated as free of tumour, so that there is no rate: every Yes is a false alarm")
    elif result["annotation"] and not any(level["positives"] for level in result["levels"]):
        said.append("the annotation covers more than 5 % of no tile, so that there is no rate: is it in level-0 px?")
    return said


def _why_none_is_kept(result: dict[str, Any]) -> str:
    """Return why no tile at 2.5x was kept, and with it none at all."""
    scored, unparsed = result["levels"][0]["scored"], result["unparsed"]
    if not scored:
        return "no tile at 2.5x has enough tissue to be scored: see --min-tissue, and pathnav inspect SLIDE"
    if unparsed and result["model"]:
        return (
            f"{unparsed} answers could not be read as Yes or No, and no tile was kept: see the model's "
            "words in the scores (--out DIR), and --max-tokens if they are cut off"
        )
    if unparsed:
        return f"scorer {result['scorer']!r} says neither Yes nor No of {unparsed} tiles, and no tile was kept"
    return (
        f"scorer {result['scorer']!r} says No to all {scored} tiles at 2.5x, so that none was kept and the search "
        "ended there; --fill-to-k goes on with the most suspicious ones"
    )


def _lines(found: "Searched") -> list[str]:
    """Return the result as text."""
    result = found.result
    told = {
        "outcome": result["outcome"] + (f" ({result['reason']})" if result["reason"] else ""),
        "scorer": result["scorer"] + (f" ({result['model']})" if result["model"] else ""),
        "schedule": ",".join(map(str, result["schedule"])),
        "calls": _calls(found),
        "unparsed": result["unparsed"] or None,
        "embeddings": embeddings_line(result, found.out),
        "tumour": ", ".join(result["annotation"]["classes"]) or "none" if result["annotation"] else "not annotated",
        "record": found.out,
    }
    lines = [f"{name + ':':<12}{text}" for name, text in told.items() if text is not None]
    return [*lines, *_table(result)] if result["levels"] else lines


def _calls(found: "Searched") -> str | None:
    """Return what was asked for; a scorer without a model makes no requests, and its tiles are counted."""
    result = found.result
    if result["calls"] is None:
        return None
    unit = "" if result["model"] else " tiles scored, without a model"
    return f"{result['calls']}{unit} ({found.calls_now} now)"


def _table(result: dict[str, Any]) -> list[str]:
    """Return one line a magnification; rates in percent."""
    heads = ("at", "tiles", "scored", "yes", "kept", "positives", "reachable", "kept positives")
    rates = ("conditional hit", "unconditional hit", "optimum hit", "tie rate")
    rows = [(*heads, *(f"{rate} %" for rate in rates))]
    for level in result["levels"]:
        counts = (f"{level['magnification']:g}x", *(level[name.replace(" ", "_")] for name in heads[1:]))
        shares = (level[rate.replace(" ", "_")] for rate in rates)
        rows.append((*(map(_count, counts)), *(map(_percent, shares))))
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return ["  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in rows]


def _count(value: object) -> str:
    return "-" if value is None else str(value)


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{100 * share:.2f}"
