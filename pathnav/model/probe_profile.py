"""Write a server profile from what was found, with a head that says where it comes from."""

from pathlib import Path

import yaml

from pathnav import __version__
from pathnav.errors import ConfigError
from pathnav.model.probe import Examination
from pathnav.model.profile import PROFILE_FORMAT, load_profile


def refuse_no_profile(path: Path) -> None:
    """Refuse to replace a file that is no profile.

    Raises:
        ConfigError: If there is one.
    """
    if not path.exists():
        return
    try:
        load_profile(str(path))
    except ConfigError as error:
        sentence = f"--write-profile {path}: a file is there that is no profile, and it is not replaced"
        raise ConfigError(f"{sentence} (a profile's first line is `format: {PROFILE_FORMAT}`)") from error


def profile_text(found: Examination) -> str:
    """Return the YAML of the profile with its head."""
    head = [
        f"Written by pathnav {__version__} doctor on {found.day}, from {found.chart.line.calls} requests.",
        f"model: {_one_line(found.settings.model)}",
        f"endpoint: {_one_line(found.settings.endpoint)}",
        f"verdict: {found.verdict}",
        f"seed of the pictures: {found.seed}",
    ]
    undecided = sorted(found.chart.undecided.items())
    head += [f"undecided, and left at {kept_value(found, name)}: {name} ({_one_line(why)})" for name, why in undecided]
    fields = found.profile.model_dump(mode="json")
    body = {"format": fields.pop("format"), **{name: value for name, value in fields.items() if value is not None}}
    return "".join(f"# {line}\n" for line in head) + yaml.safe_dump(body, sort_keys=False, allow_unicode=True)


def write_profile(found: Examination, path: Path) -> None:
    """Write the profile.

    Raises:
        ConfigError: If a file is there that is no profile.
    """
    refuse_no_profile(path)
    path.write_text(profile_text(found), encoding="utf-8")


def kept_value(found: Examination, name: str) -> str:
    """Return what an undecided field stays at, in words."""
    value = found.profile.model_dump(mode="json")[name]
    return "unset" if value is None else str(value)


def _one_line(text: str) -> str:
    return " ".join(text.split())
