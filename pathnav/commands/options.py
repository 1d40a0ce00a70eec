"""Options that several commands share, and how their texts become values."""

import math
import os
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pathnav.errors import ConfigError

if TYPE_CHECKING:
    from pathnav.model import ChatSettings
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


def text_option(metavar: str, help: str, *flags: str) -> Any:
    """Declare an option that takes a text, a path or a name; `flags` where its parameter is called otherwise."""
    return typer.Option(*flags, metavar=metavar, help=help)


def number_option(metavar: str, help: str) -> Any:
    """Declare an option that takes a number."""
    return typer.Option(metavar=metavar, parser=a_number, help=help)


def whole_number_option(metavar: str, help: str) -> Any:
    """Declare an option that takes a whole number."""
    return typer.Option(metavar=metavar, parser=a_whole_number, help=help)


def folder_option(help: str) -> Any:
    """Declare an option that takes a folder."""
    return typer.Option(metavar="DIR", parser=a_folder, help=help)


SlideArgument = Annotated[str, typer.Argument(metavar="SLIDE", help="A slide file, or any file of a DICOM series.")]
Mpp = Annotated[
    float | None, number_option("UM", "Micrometres per level-0 pixel, 0.05 to 20; overrides the slide's own.")
]
ObjectivePower = Annotated[
    float | None,
    number_option("POWER", "Objective power, e.g. 40; gives 10/POWER um per pixel where mpp is unknown."),
]
Reader = Annotated[
    ReaderName | None,
    text_option("openslide|tiffslide", "Slide library; default: OpenSlide, and TiffSlide for what it refuses."),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object on stdout instead of text.")]
Seed = Annotated[int, whole_number_option("N", "Seed of all that is drawn by chance.")]
PriceFile = Annotated[Path | None, text_option("FILE", "Prices of your own, in place of pathnav's.")]
RecordFolder = Annotated[Path | None, folder_option("Run folder that keeps the record; default: none.")]
ModelName = Annotated[str | None, text_option("NAME", "Model name, as the chat endpoint knows it.")]
BaseUrl = Annotated[str | None, text_option("URL", "OpenAI-compatible endpoint, e.g. http://127.0.0.1:8000/v1.")]
Force = Annotated[bool, typer.Option("--force", help="Replace the file that is to be written, if there is one.")]
ApiKeyEnv = Annotated[str | None, text_option("VARIABLE", "Environment variable that holds the endpoint's key.")]
ApiKeyFile = Annotated[Path | None, text_option("FILE", "File that holds the key, and nothing else.")]
MaxTokens = Annotated[
    int | None,
    whole_number_option("N", "New tokens an answer may have; default: 1,024. Reasoning models need 4,096."),
]
ProfileName = Annotated[
    str | None,
    text_option("NAME", "Server profile: openai (default), vllm, ollama, text, ..., or a YAML file."),
]
AllowHosts = Annotated[
    list[str] | None,
    text_option("HOST", "A host on a public network that pixels may be sent to. May be repeated."),
]
ScenarioArgument = Annotated[
    str, typer.Argument(metavar="SCENARIO", help="A scenario file, or a shipped one: quickstart, mode-a-base, ...")
]
Cohort = Annotated[Path | None, text_option("FILE", "Cohort file, in place of the scenario's slides.")]
Sets = Annotated[
    list[str] | None,
    text_option("KEY=VALUE", "Put a YAML value in, e.g. localise.budget=[5,3,2]. May be repeated.", "--set"),
]
Anonymise = Annotated[
    Path | None, text_option("DIR", "Also copy the run to DIR without names of slides, paths and users.")
]


@dataclass(frozen=True, slots=True)
class EndpointOptions:
    """What the options of a chat endpoint say; None where one is not given."""

    model: str | None = None
    base_url: str | None = None
    api_key_env: str | None = None
    api_key_file: Path | None = None
    max_tokens: int | None = None
    profile: str | None = None
    allow_hosts: tuple[str, ...] = ()

    def settings(self) -> "ChatSettings | None":
        """Return the chat endpoint, None where the options name none.

        Raises:
            ConfigError: If one of model and base URL is missing, a value is not usable, or there is no key.
        """
        if self.model is None and self.base_url is None:
            self._refuse_orphans()
            return None
        if self.model is None or self.base_url is None:
            raise ConfigError(
                "--model NAME and --base-url URL must be given together: pathnav knows no default endpoint"
            )
        from pathnav.model import ChatSettings, load_profile
        from pathnav.model.hosts import refuse_public

        given = {
            "max_tokens": self.max_tokens,
            "profile": load_profile(self.profile) if self.profile else None,
        }
        settings = ChatSettings(
            base_url=self.base_url,
            model=self.model,
            api_key=self._key(),
            allow_hosts=self.allow_hosts,
            **{name: value for name, value in given.items() if value is not None},  # type: ignore[arg-type]
        )
        refuse_public(settings.host, settings.allow_hosts)
        return settings

    def _refuse_orphans(self) -> None:
        further = {
            "--api-key-env": self.api_key_env,
            "--api-key-file": self.api_key_file,
            "--max-tokens": self.max_tokens,
            "--profile": self.profile,
            "--allow-host": self.allow_hosts or None,
        }
        for option in [name for name, value in further.items() if value is not None]:
            raise ConfigError(f"{option} belongs to a chat endpoint: give --model NAME and --base-url URL too")

    def _key(self) -> str | None:
        """Return the key from the environment or a file, None where none is named."""
        if self.api_key_env is not None and self.api_key_file is not None:
            raise ConfigError("--api-key-env and --api-key-file name two keys: give one of them")
        if self.api_key_file is not None:
            from pathnav.cohort.scenario import key_in_file

            return key_in_file(str(self.api_key_file), "--api-key-file")
        key = os.environ.get(self.api_key_env) if self.api_key_env else None
        if self.api_key_env and not key:
            raise ConfigError(f"--api-key-env: the environment variable {self.api_key_env} is not set")
        return key


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
