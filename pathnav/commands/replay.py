"""`pathnav replay`: run a recorded episode again, without a model, and tell what differs."""

from pathlib import Path
from typing import Annotated

import typer

from pathnav.commands.console import DONE, INCOMPLETE, emit, emit_json, json_alone, note
from pathnav.commands.options import Json, text_option


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("replay", short_help="Run a recorded episode again and tell what differs.")(json_alone(replay))


def replay(
    episode: Annotated[Path, typer.Argument(metavar="EPISODE", help="An episode's folder: RUN/episodes/KEY.")],
    slide: Annotated[str | None, text_option("FILE", "The slide, where it was moved since.")] = None,
    model_from_record: Annotated[
        bool, typer.Option("--model-from-record", help="Run the agent itself, with the recorded replies as its model.")
    ] = False,
    as_json: Json = False,
) -> int:
    """Run a recorded episode or search again, without a model, and print one line for all that differs.

    Images, boxes, magnifications, the final box and the scores must be the same. Nothing is written. Exit codes: 0 all
    is equal, 1 something differs, 2 it cannot be replayed.

    \b
    Example: pathnav replay runs/quickstart/episodes/0a1b2c3d4e5f60718293
    """
    from pathnav.run.replay import replay_episode

    found = replay_episode(episode, slide, model_from_record=model_from_record)
    for said in found.not_compared:
        note(f"not compared: {said}")
    if as_json:
        emit_json(found.as_json())
    else:
        for line in found.differences:
            emit(line)
        if found.is_equal:
            images = f", {found.images} images" if found.images else ""
            emit(f"equal: {found.events} {'levels' if found.mode == 'schedule' else 'events'}{images} ({found.mode})")
    return DONE if found.is_equal else INCOMPLETE
