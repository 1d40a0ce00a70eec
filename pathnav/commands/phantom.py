"""`pathnav phantom`: a synthetic slide with exact truth beside it."""

from pathlib import Path
from typing import Annotated

import typer

from pathnav.commands.console import tell
from pathnav.commands.options import Force, Json, whole_number_option


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("phantom", short_help="Draw a synthetic slide with its exact truth.")(phantom)


def phantom(
    out: Annotated[Path, typer.Argument(metavar="OUT.tiff", help="The slide to write; its truth goes beside it.")],
    seed: Annotated[int, whole_number_option("N", "Seed: the same number draws the same slide.")] = 0,
    side: Annotated[int, whole_number_option("PX", "Side of the slide in level-0 pixels.")] = 16_384,
    pen: Annotated[bool, typer.Option("--pen", help="Draw a pen mark on the glass.")] = False,
    force: Force = False,
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
    document = {"format": "pathnav-phantom-1", **places, "seed": seed, "side": side, "pen": pen}
    tell(document, (f"{what + ':':<12}{place}" for what, place in places.items()), as_json)
