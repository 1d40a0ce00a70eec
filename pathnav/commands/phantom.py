"""`pathnav phantom`: a synthetic slide with exact truth beside it."""

from pathlib import Path
from typing import Annotated

import typer

from pathnav.commands.console import tell
from pathnav.commands.options import Json, whole_number_option
from pathnav.errors import ConfigError


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("phantom", short_help="Draw a synthetic slide with its exact truth.")(phantom)


def phantom(
    out: Annotated[Path, typer.Argument(metavar="OUT.tiff", help="The slide to write; its truth goes beside it.")],
    seed: Annotated[int, whole_number_option("N", "Seed: the same number draws the same slide.")] = 0,
    side: Annotated[int, whole_number_option("PX", "Side of the slide in level-0 pixels.")] = 16_384,
    pen: Annotated[bool, typer.Option("--pen", help="Draw a pen mark on the glass.")] = False,
    as_json: Json = False,
) -> None:
    """Draw a phantom slide: H&E-like, without a patient, with its tumour polygons and a diagnostic tree.

    Writes OUT.tiff, OUT.geojson (exact tumour polygons) and OUT.tree.json (queries for locate --tree).

    \b
    Example:
      pathnav phantom demo.tiff --side 8192
    """
    from pathnav.cohort.phantom import make_phantom, phantom_files

    beside = phantom_files(out)  # the slide itself is make_phantom's to refuse
    _refuse_other(beside.annotation, b'{"type": "Feature", "id": "00000000", ')
    _refuse_other(beside.tree, b'"format": "pathnav-tree-')
    files = make_phantom(out, seed=seed, side=side, pen=pen)
    places = {"slide": str(files.slide), "annotation": str(files.annotation), "tree": str(files.tree)}
    document = {"format": "pathnav-phantom-1", **places, "seed": seed, "side": side, "pen": pen}
    tell(document, (f"{what + ':':<12}{place}" for what, place in places.items()), as_json)


def _refuse_other(path: Path, mark: bytes) -> None:
    """Refuse to draw over a file that does not begin as that of a phantom does."""
    if path.is_file():
        with path.open("rb") as file:
            if mark not in file.read(256):
                raise ConfigError(f"{path} exists and is no phantom's: name another file, or move that one away")
