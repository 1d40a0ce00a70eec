"""`pathnav stub`: the offline chat server, for rehearsals without a model."""

from typing import TYPE_CHECKING, Annotated

import typer

from pathnav.commands.console import emit, note
from pathnav.commands.options import number_option, text_option, whole_number_option
from pathnav.errors import ConfigError

if TYPE_CHECKING:
    from pathnav.model.stub_persona import Persona


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("stub", short_help="Serve an offline chat endpoint on loopback.")(stub)


def stub(
    port: Annotated[int, whole_number_option("N", "Port on 127.0.0.1; 0 takes a free one.")] = 8123,
    persona: Annotated[
        str, text_option("NAME", "Whose quirks it has, for rehearsals: a name that --list-personas tells.")
    ] = "plain",
    seed: Annotated[int, whole_number_option("N", "Seed of a persona's failures.")] = 0,
    delay_s: Annotated[
        float | None, number_option("S", "Seconds before each answer of the persona slow; default: 2.")
    ] = None,
    list_personas: Annotated[
        bool, typer.Option("--list-personas", help="Print every persona with what it does, and serve nothing.")
    ] = False,
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
    if list_personas:
        from pathnav.model.stub_personas import PERSONAS

        for name, kind in PERSONAS.items():
            emit(f"{name:<{max(map(len, PERSONAS))}}  {kind.summary}")
        return
    from pathnav.model.stub_server import serve

    played = _persona(persona, seed, delay_s)
    who = "stub-pixel-reader, which is no model," + (f" as {persona}" if persona != "plain" else "")
    serve(port, lambda base_url: note(f"{who} listens on {base_url} (Ctrl-C stops it)"), persona=played)


def _persona(name: str, seed: int, delay_s: float | None) -> "Persona":
    """Return the persona that is asked for.

    Raises:
        ConfigError: If there is none of that name, or it has no delay to set.
    """
    from pathnav.model.stub_persona_failures import Slow
    from pathnav.model.stub_personas import persona_named

    if delay_s is None:
        return persona_named(name, seed)
    if name != Slow.name:
        raise ConfigError(f"--delay-s belongs to --persona {Slow.name}, got --persona {name}")
    return Slow(seed, delay_s)
