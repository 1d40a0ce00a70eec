"""`pathnav locate`: one question about one slide."""

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pathnav.commands import options as opt
from pathnav.commands.anonymise import anonymised
from pathnav.commands.console import DONE, INCOMPLETE, embeddings_line, emit_json, json_alone, note, tell
from pathnav.commands.progress import tell_of_the_stub
from pathnav.commands.stopping import stoppable

if TYPE_CHECKING:
    from pathnav.report.load import EpisodeResult
    from pathnav.run.open_slides import OpenSlides
    from pathnav.run.request import Located, Request


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("locate", short_help="Ask one agent one question about one slide.")(json_alone(locate))


def locate(
    slide: opt.SlideArgument,
    finding: Annotated[str | None, opt.text_option("TEXT", "What to look for, in a pathologist's words.")] = None,
    magnification: Annotated[
        float | None, opt.number_option("2.5|10|40", "Magnification of the finding: 2.5, 10 or 40.")
    ] = None,
    region: Annotated[
        str | None, opt.text_option("X,Y,W,H", "Search region in level-0 pixels; default: the whole slide.")
    ] = None,
    target_size: Annotated[
        str | None,
        opt.text_option("W,H", "Size of the box to find in level-0 pixels; default: 1,024 px at MAGNIFICATION."),
    ] = None,
    tree: Annotated[
        Path | None, opt.text_option("FILE", "Diagnostic tree that holds the query and its target.")
    ] = None,
    query: Annotated[str | None, opt.text_option("ID", "Node of the tree; its answer is scored.")] = None,
    budget: Annotated[
        int | None,
        opt.whole_number_option("N", "ROIs that may be looked at; default: 10, 7 or 5 at 2.5x, 10x or 40x."),
    ] = None,
    agent: Annotated[
        str | None, opt.text_option("NAME", "An installed agent (see pathnav agents), or path/to/file.py:Class.")
    ] = None,
    agent_option: Annotated[
        list[str] | None, opt.text_option("KEY=VALUE", "An option of the agent; VALUE is YAML. May be repeated.")
    ] = None,
    model: opt.ModelName = None,
    base_url: opt.BaseUrl = None,
    api_key_env: opt.ApiKeyEnv = None,
    api_key_file: opt.ApiKeyFile = None,
    profile: opt.ProfileName = None,
    allow_host: opt.AllowHosts = None,
    max_tokens: opt.MaxTokens = None,
    guides: Annotated[
        bool | None,
        typer.Option("--guides/--no-guides", help="Whether images carry ticks with coordinates; default: yes."),
    ] = None,
    seed: opt.Seed = 0,
    mpp: opt.Mpp = None,
    objective_power: opt.ObjectivePower = None,
    reader: opt.Reader = None,
    prices: opt.PriceFile = None,
    out: opt.RecordFolder = None,
    picture: Annotated[
        Path | None, opt.text_option("FILE.png", "Draw ROIs, answer and, where known, target on an overview.")
    ] = None,
    force: opt.Force = False,
    anonymise: opt.Anonymise = None,
    as_json: opt.Json = False,
) -> int:
    """Find the region of a slide that a finding describes, within a budget of looks.

    Without --agent and --model the offline stub answers, which is no model.

    \b
    Example: pathnav locate slide.svs --finding "dense infiltrate" --magnification 10 --picture seen.png
    """
    from pathnav.run import Question, Request

    drawn = opt.writable_file("--picture", picture, (".png",), "PNG files", force=force)
    source = opt.slide_source(slide, mpp, objective_power, reader)
    place, extent = opt.numbers("--region", region, "X,Y,W,H"), opt.numbers("--target-size", target_size, "W,H")
    question = Question(finding, magnification, place, extent, tree, query, budget)
    options = opt.agent_options(agent_option, guides)
    hosts = tuple(allow_host or ())
    endpoint = opt.EndpointOptions(model, base_url, api_key_env, api_key_file, max_tokens, profile, hosts)
    settings, who = endpoint.settings(), "vlm" if agent is None else agent
    with anonymised(out, anonymise), stoppable(out):
        return _ask(Request(source, question, who, options, settings, seed, out, prices), drawn, as_json)


def _ask(request: "Request", picture: Path | None, as_json: bool) -> int:
    """Run the request, draw and print what came of it, and return the exit code."""
    from pathnav.run.open_slides import OpenSlides
    from pathnav.run.request import Located
    from pathnav.run.stopped import Stopped

    with OpenSlides() as slides:
        try:
            located = request.run(slides, partial(tell_of_the_stub, named=request.model is not None))
        except Stopped as stopped:
            if as_json and isinstance(stopped.found, Located):
                emit_json(stopped.found.printed())
            raise
        if picture is not None:
            _draw(located, slides, picture)
    result = located.result
    tell(located.printed(), _lines(located), as_json)
    for warning in result["slide"]["warnings"]:
        note(f"warning: {warning}")
    if result["unreadable_share"]:
        note(f"warning: up to {result['unreadable_share']:.1%} of an image could not be decoded and was shown white")
    if result["outcome"] == "infra_error":
        again = "run the same command again" if located.out else "run it again, with --out DIR to keep the record"
        lost = "the episode was stopped by a failure that is not the agent's"
        note(f"pathnav: {lost}: {result['reason']}; {again}")
        return INCOMPLETE
    if result["reason"]:
        note(f"warning: the agent failed: {result['reason']}")
    return DONE


def _draw(located: "Located", slides: "OpenSlides", picture: Path) -> None:
    """Write the picture of where the agent looked and what it answered; of declared draws none is the answer."""
    from pathnav.report.picture import draw_result, write_picture

    write_picture(picture, draw_result(slides.get(located.case.source), drawn_record(located.result)))


def drawn_record(result: Mapping[str, Any]) -> "EpisodeResult":
    """Return the result as a picture shows it: with the target that is scored, so that both tell the same IoU."""
    from pathnav.report.load import EpisodeResult

    return EpisodeResult.model_validate({**result, "target": result["scored_target"]})


def _lines(located: "Located") -> list[str]:
    """Return the result as text."""
    result = located.result
    told = {
        "outcome": result["outcome"] + (f" ({result['reason']})" if result["reason"] else ""),
        "box": "none" if result["box"] is None else f"{result['box']} level-0 px [x, y, w, h]",
        "IoU": None if result["iou"] is None else f"{result['iou']:.3f}",
        "conclusion": result["conclusion"],
        "confidence": result["confidence"],
        "looks": f"{result['rois_used']} of {result['budget']} ROIs in {result['steps']} steps",
        "enlarged": f"{result['upsampled']:.3g} times: the slide is coarser than asked"
        if result["upsampled"]
        else None,
        "surveyed": f"{result['examined_mm2']:.2f} mm2 (unbudgeted)" if result["unbudgeted"] else None,
        "embeddings": embeddings_line(result, located.out),
        "agent": result["agent"],
        "model": result["model"],
        "target cut": "the target is larger than the slide" if result["target_cut"] else None,
        "record": located.out,
    }
    return [f"{name + ':':<12}{text}" for name, text in told.items() if text is not None]
