"""`pathnav anonymise`: a copy of a run folder without names, for a reviewer."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from pathnav.commands.console import emit, note
from pathnav.commands.options import folder_option
from pathnav.errors import ConfigError


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("anonymise", short_help="Copy a run folder without names, for a reviewer.")(anonymise)


def anonymise(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A run folder.")],
    out: Annotated[Path, folder_option("Where the copy goes.")],
    images: Annotated[
        bool, typer.Option("--images/--no-images", help="Whether the images that a model saw come along. Default: yes.")
    ] = True,
) -> None:
    """Copy a run folder without paths, file names, addresses and names of users and machines.

    Slides are called by their fingerprints. Findings, conclusions and pixels stay as they are: read them before you
    give them away. pathnav report works on the copy.

    \b
    Example: pathnav anonymise runs/quickstart --out for-review
    """
    from pathnav.run.anonymise import anonymise_run

    made = anonymise_run(folder, out, images=images)
    emit(f"{made.out}: {made.episodes} episodes, {made.images} images")
    if made.left_out:
        note(f"warning: {made.left_out} images were left out: they are no bare JPEG, or not what their name says")


@contextmanager
def anonymised(run: Path | None, copy: Path | None) -> Iterator[None]:
    """Copy a run folder at the end of a block; refuse before it what cannot be copied then.

    Args:
        run: The run folder; None where none is kept.
        copy: What `--anonymise` names; None where it is not given.

    Raises:
        ConfigError: If there is nothing to copy, or the place is not free.
    """
    if copy is None:
        yield
        return
    if run is None:
        raise ConfigError("--anonymise copies a run folder: give --out DIR too")
    from pathnav.run.anonymise import anonymise_run, check_copy

    check_copy(run, copy, "--anonymise")
    yield
    anonymise_run(run, copy)
