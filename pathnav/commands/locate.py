"""`pathnav locate`: one question about one slide."""

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pathnav.commands.anonymise import Anonymise, check_anonymise
from pathnav.commands.console import DONE, INCOMPLETE, embeddings_line, emit, emit_json, json_alone, note
from pathnav.commands.endpoint import AllowHosts, ApiKeyEnv, ApiKeyFile, EndpointOptions, MaxTokens, ProfileName
from pathnav.commands.options import (
    BaseUrl,
    Json,
    ModelName,
    Mpp,
    ObjectivePower,
    PriceFile,
    Reader,
    Seed,
    SlideArgument,
    a_folder,
    a_number,
    a_whole_number,
    agent_options,
    numbers,
    picture_file,
    slide_source,
)
from pathnav.commands.progress import tell_of_the_stub
from pathnav.commands.stopping import stoppable

if TYPE_CHECKING:
    from pathnav.report.load import EpisodeResult
    from pathnav.run.open_slides import OpenSlides
    from pathnav.run.request import Located, Request

Finding = Annotated[str | None, typer.Option(metavar="TEXT", help="What to look for, in a pathologist's words.")]
Magnification = Annotated[
    float | None,
    typer.Option(metavar="2.5|10|40", parser=a_number, help="Magnification of the finding: 2.5, 10 or 40."),
]
Region = Annotated[
    str | None, typer.Option(metavar="X,Y,W,H", help="Search region in level-0 pixels; default: the whole slide.")
]
TargetSize = Annotated[
    str | None,
    typer.Option(metavar="W,H", help="Size of the box to find in level-0 pixels; default: 1,024 px at MAGNIFICATION."),
]
Tree = Annotated[Path | None, typer.Option(metavar="FILE", help="Diagnostic tree that holds the query and its target.")]
QueryId = Annotated[str | None, typer.Option("--query", metavar="ID", help="Node of the tree; its answer is scored.")]
Budget = Annotated[
    int | None,
    typer.Option(
        metavar="N", parser=a_whole_number, help="ROIs that may be looked at; default: 10, 7 or 5 at 2.5x, 10x or 40x."
    ),
]
AgentName = Annotated[
    str | None,
    typer.Option("--agent", metavar="NAME", help="An installed agent (see pathnav agents), or path/to/file.py:Class."),
]
AgentOptions = Annotated[
    list[str] | None,
    typer.Option("--agent-option", metavar="KEY=VALUE", help="An option of the agent; VALUE is YAML. May be repeated."),
]
Guides = Annotated[
    bool | None, typer.Option("--guides/--no-guides", help="Whether images carry ticks with coordinates; default: yes.")
]
Out = Annotated[
    Path | None, typer.Option(metavar="DIR", parser=a_folder, help="Run folder that keeps the record; default: none.")
]
Picture = Annotated[
    Path | None, typer.Option(metavar="FILE.png", help="Draw ROIs, answer and, where known, target on an overview.")
]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("locate", short_help="Ask one agent one question about one slide.")(json_alone(locate))


def locate(
    slide: SlideArgument,
    finding: Finding = None,
    magnification: Magnification = None,
    region: Region = None,
    target_size: TargetSize = None,
    tree: Tree = None,
    query: QueryId = None,
    budget: Budget = None,
    agent: AgentName = None,
    agent_option: AgentOptions = None,
    model: ModelName = None,
    base_url: BaseUrl = None,
    api_key_env: ApiKeyEnv = None,
    api_key_file: ApiKeyFile = None,
    profile: ProfileName = None,
    allow_host: AllowHosts = None,
    max_tokens: MaxTokens = None,
    guides: Guides = None,
    seed: Seed = 0,
    mpp: Mpp = None,
    objective_power: ObjectivePower = None,
    reader: Reader = None,
    prices: PriceFile = None,
    out: Out = None,
    picture: Picture = None,
    anonymise: Anonymise = None,
    as_json: Json = False,
) -> int:
    """Find the region of a slide that a finding describes, within a budget of looks.

    Without --agent and --model the offline stub answers, which is no model.

    \b
    Example: pathnav locate slide.svs --finding "dense infiltrate" --magnification 10 --picture seen.png
    """
    from pathnav.run import Question, Request

    drawn = picture_file(picture)
    source = slide_source(slide, mpp, objective_power, reader)
    place, extent = numbers("--region", region, "X,Y,W,H"), numbers("--target-size", target_size, "W,H")
    question = Question(finding, magnification, place, extent, tree, query, budget)
    options = agent_options(agent_option, guides)
    endpoint = EndpointOptions(model, base_url, api_key_env, api_key_file, max_tokens, profile, tuple(allow_host or ()))
    settings, who = endpoint.settings(), "vlm" if agent is None else agent
    check_anonymise(out, anonymise)
    with stoppable(out):
        code = _ask(Request(source, question, who, options, settings, seed, out, prices), drawn, as_json)
    if out is not None and anonymise is not None:
        from pathnav.run.anonymise import anonymise_run

        anonymise_run(out, anonymise)
    return code


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
    if as_json:
        emit_json(located.printed())
    else:
        for line in _lines(located):
            emit(line)
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
