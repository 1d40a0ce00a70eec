"""Options that several commands share, and how their texts become values."""

import math
import os
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pathnav.errors import ConfigError

if TYPE_CHECKING:
    from pathnav.run.case import SlideSource

MAX_COORDINATE = 2.0**40
"""No slide is a trillion pixels wide; beyond it half-pixel centres would no longer be exact."""


class ReaderName(StrEnum):
    """The slide libraries that can be asked for."""

    OPENSLIDE = "openslide"
    TIFFSLIDE = "tiffslide"


def a_number(text: str | float) -> float:
    """Return the number of an option's text; the parser adds the option's name to the message."""
    try:
        return float(text)
    except ValueError:
        raise typer.BadParameter(f"expected a number, got {text!r}") from None


def a_whole_number(text: str | int) -> int:
    """Return the whole number of an option's text; the parser adds the option's name to the message."""
    try:
        return int(text)
    except ValueError:
        raise typer.BadParameter(f"expected a whole number, got {text!r}") from None


def a_folder(text: str | Path) -> Path:
    """Return the folder of an option's text; an empty text, as of an unset variable of a shell, names none."""
    if not str(text):
        raise typer.BadParameter("expected the name of a folder, got an empty text")
    return Path(text)


SlideArgument = Annotated[str, typer.Argument(metavar="SLIDE", help="A slide file, or any file of a DICOM series.")]
Mpp = Annotated[
    float | None,
    typer.Option(
        metavar="UM", parser=a_number, help="Micrometres per level-0 pixel, 0.05 to 20; overrides the slide's own."
    ),
]
ObjectivePower = Annotated[
    float | None,
    typer.Option(
        metavar="POWER",
        parser=a_number,
        help="Objective power, e.g. 40; gives 10/POWER um per pixel where mpp is unknown.",
    ),
]
Reader = Annotated[
    ReaderName | None,
    typer.Option(
        metavar="openslide|tiffslide", help="Slide library; default: OpenSlide, and TiffSlide for what it refuses."
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object on stdout instead of text.")]
Seed = Annotated[int, typer.Option(metavar="N", parser=a_whole_number, help="Seed of all that is drawn by chance.")]
ModelName = Annotated[
    str | None, typer.Option("--model", metavar="NAME", help="Model name, as the chat endpoint knows it.")
]
PriceFile = Annotated[
    Path | None, typer.Option("--prices", metavar="FILE", help="Prices of your own, in place of pathnav's.")
]
Force = Annotated[bool, typer.Option("--force", help="Replace the file that is to be written, if there is one.")]
BaseUrl = Annotated[
    str | None,
    typer.Option(metavar="URL", help="OpenAI-compatible endpoint, e.g. http://127.0.0.1:8000/v1."),
]


def numbers(option: str, text: str | None, names: str) -> tuple[float, ...] | None:
    """Return the numbers of a text such as `0,0,4000,3000`, None where the option is not given.

    Args:
        option: What the message calls it, e.g. `--region`.
        text: Numbers between commas.
        names: What is expected, e.g. `X,Y,W,H`: as many numbers as names.

    Raises:
        ConfigError: If the count is wrong or a part is not a finite number of sane size.
    """
    if text is None:
        return None
    parts = text.split(",")
    wanted = names.count(",") + 1
    if len(parts) != wanted:
        raise ConfigError(f"{option} takes {wanted} numbers {names}, got {len(parts)} in {text!r}")
    try:
        values = tuple(float(part) for part in parts)
    except ValueError as error:
        raise ConfigError(f"{option} takes {wanted} numbers {names}, got {text!r}") from error
    if not all(math.isfinite(value) and abs(value) <= MAX_COORDINATE for value in values):
        raise ConfigError(f"{option} takes {wanted} finite numbers {names}, got {text!r}")
    return values


def key_values(option: str, texts: list[str]) -> dict[str, Any]:
    """Return the settings of texts such as `stride=0.5`, each value read as YAML.

    Raises:
        ConfigError: If a text has no `=`, a name is given twice, or a value is not YAML.
    """
    import yaml

    settings: dict[str, Any] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        name = name.strip().replace("-", "_")
        if not equals or not name:
            raise ConfigError(f"{option} takes KEY=VALUE, got {text!r}")
        if name in settings:
            raise ConfigError(f"{option} {name} is given twice")
        try:
            settings[name] = yaml.safe_load(value)
        except yaml.YAMLError as error:
            raise ConfigError(f"{option} {name}: {value!r} is not a YAML value") from error
    return settings


def slide_source(
    path: str, mpp: float | None, objective_power: float | None, reader: ReaderName | None
) -> "SlideSource":
    """Return the slide that a command's slide options name."""
    from pathnav.run.case import SlideSource

    return SlideSource(path, mpp, objective_power, reader.value if reader else None)


def agent_options(texts: list[str] | None, guides: bool | None) -> dict[str, Any]:
    """Return the keyword arguments of an agent's class.

    Raises:
        ConfigError: If a text is not KEY=VALUE, or `guides` is said twice.
    """
    options = key_values("--agent-option", texts or [])
    if guides is None:
        return options
    if "guides" in options:
        raise ConfigError("--guides and --agent-option guides=... say the same thing: give one of them")
    return {**options, "guides": guides}


def writable_file(
    option: str, path: Path | None, suffixes: tuple[str, ...], kind: str, *, force: bool = True
) -> Path | None:
    """Return the path of a file, where one is asked for, that can be written there later.

    Args:
        option: What the message calls it, e.g. `--picture`.
        path: The file.
        suffixes: The endings that it may have.
        kind: What is written, e.g. `PNG files`.
        force: Whether a file that exists may be replaced.

    Raises:
        ConfigError: If it has another ending, is a folder, exists, or its folder does not exist or cannot be written.
    """
    if path is None:
        return None
    if path.suffix.lower() not in suffixes:
        wanted = " or ".join(suffixes)
        raise ConfigError(f"{option} writes {kind}: expected a name that ends in {wanted}, got {str(path)!r}")
    if path.is_dir():
        raise ConfigError(f"{option} {path} is a folder; expected the name of a file")
    if not path.parent.is_dir():
        raise ConfigError(f"{option} cannot be written: the folder {path.parent} does not exist")
    if not os.access(path.parent, os.W_OK):
        raise ConfigError(f"{option} cannot be written: the folder {path.parent} is not writable")
    if path.exists() and not force:
        raise ConfigError(f"{option} {path} exists: name another file, or give --force to replace it")
    return path
