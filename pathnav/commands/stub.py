"""`pathnav stub`: the offline chat server, for rehearsals without a model."""

from typing import Annotated

import typer

from pathnav.commands.console import note
from pathnav.commands.options import a_whole_number


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("stub", short_help="Serve an offline chat endpoint on loopback.")(stub)


def stub(
    port: Annotated[
        int, typer.Option(metavar="N", parser=a_whole_number, help="Port on 127.0.0.1; 0 takes a free one.")
    ] = 8123,
) -> None:
    """Serve an offline chat endpoint on loopback until Ctrl-C.

    It looks at the images it is sent (haematoxylin density) and navigates with the tools. It is no model, and its
    name, stub-pixel-reader, says so.

    \b
    Example:
      pathnav stub --port 8123
      pathnav locate slide.svs --finding "solid nests" --magnification 10 \\
        --model stub-pixel-reader --base-url http://127.0.0.1:8123/v1
    """
    from pathnav.model.stub_server import serve

    serve(port, lambda base_url: note(f"stub-pixel-reader, which is no model, listens on {base_url} (Ctrl-C stops it)"))
