"""`pathnav phantom`: a synthetic slide with exact truth beside it."""

from pathlib import Path
from typing import Annotated

import typer

from pathnav.commands.console import emit, emit_json
from pathnav.commands.options import Json, a_whole_number


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("phantom", short_help="Draw a synthetic slide with its exact truth.")(phantom)


def phantom(
    out: Annotated[Path, typer.Argument(metavar="OUT.tiff", help="The slide to write; its truth goes beside it.")],
    seed: Annotated[
        int, typer.Option(metavar="N", parser=a_whole_number, help="Seed: the same number draws the same slide.")
    ] = 0,
    side: Annotated[
        int, typer.Option(metavar="PX", parser=a_whole_number, help="Side of the slide in level-0 pixels.")
    ] = 16_384,
    pen: Annotated[bool, typer.Option("--pen", help="Draw a pen mark on the glass.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace files that exist.")] = False,
    as_json: Json = False,
) -> None:
    """Draw a phantom slide: H&E-like, without a patient, with its tumour polygons and a diagnostic tree.

    Writes OUT.tiff, OUT.geojson (exact tumour polygons) and OUT.tree.json (queries for locate --tree).

    \b
    Example:
      pathnav phantom demo.tiff --side 8192
    """
    from pathnav.phantom import make_phantom

    files = make_phantom(out, seed=seed, side=side, pen=pen, force=force)
    places = {"slide": str(files.slide), "annotation": str(files.annotation), "tree": str(files.tree)}
    if as_json:
        emit_json({"format": "pathnav-phantom-1", **places, "seed": seed, "side": side, "pen": pen})
        return
    for what, place in places.items():
        emit(f"{what + ':':<12}{place}")
