"""Scenario files: reading them, filling their slots, and saying what is wrong with them."""

import difflib
import json
from collections.abc import Callable, Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from pathnav.cohort.assignment import assign, parse_assignment
from pathnav.cohort.complaints import Place, complaints, dotted, reason, shown, suggestion, value_at
from pathnav.cohort.scenario import SCENARIO_FORMAT, Scenario
from pathnav.cohort.scenario_origins import Origins
from pathnav.cohort.sweep import Axis, axes_of, is_sweep, with_values
from pathnav.cohort.yaml_file import read_mapping
from pathnav.errors import ConfigError

_YAML = (".yaml", ".yml")  # what else `model.profile` holds is the name of a shipped one
COHORT_FORMAT = "pathnav-cohort-1"
_SLOTS: Mapping[str, Place] = {
    "--model": ("model", "name"),
    "--base-url": ("model", "base_url"),
    "--prices": ("prices",),
}
_SLOT_HINTS = {
    ("cohort",): "name its slides in the scenario, or give --cohort FILE",
    ("format",): f"the first line of a scenario is `format: {SCENARIO_FORMAT}`",
}


def load_scenario(
    source: str | Path,
    *,
    sets: Sequence[str] = (),
    cohort: str | Path | None = None,
    model: str | None = None,
    base_url: str | None = None,
    prices: str | Path | None = None,
    folder: str | Path = ".",
) -> Scenario:
    """Read a scenario and fill its slots; nothing is written and no slide is opened.

    Relative paths belong to the file that names them; those of `sets` and `cohort` belong to `folder`.

    Args:
        source: A file, or the name of a shipped scenario, see `shipped_scenarios`.
        sets: `KEY=VALUE` each, e.g. `localise.budget=[5,3,2]`: a dotted key and a YAML value; applied last.
        cohort: File of a cohort, instead of the scenario's slides.
        model: Name of the model.
        base_url: Address of its endpoint.
        prices: File of prices.
        folder: Where the command was given.

    Raises:
        ConfigError: With one sentence a line for everything that is wrong with the scenario.
    """
    path = _find(source)
    raw = _absolute(read_mapping(path, "scenario"), (), path.parent)
    if cohort is not None:
        raw["cohort"] = {**_sample_only(raw.get("cohort")), "file": _joined(str(cohort), Path(folder))}
    origins = Origins(str(path))
    price_file = None if prices is None else _joined(str(prices), Path(folder))
    _fill_slots(raw, {"--model": model, "--base-url": base_url, "--prices": price_file}, origins)
    raw = _with_cohort_file(raw, origins)
    for assignment in sets:
        place, value = parse_assignment(assignment)
        assign(raw, place, _absolute(value, place, Path(folder)))
        origins.option(place, f"--set {dotted(place)}")
        raw = _with_cohort_file(raw, origins)
    return _validated(raw, path, origins)


def _fill_slots(raw: dict[str, Any], options: Mapping[str, str | None], origins: Origins) -> None:
    for option, given in options.items():
        if given is not None:
            assign(raw, _SLOTS[option], given)
            origins.option(_SLOTS[option], option)


def make_scenario(raw: Mapping[str, Any], *, name: str = "scenario", folder: str | Path = ".") -> Scenario:
    """Return the scenario of a plain mapping, as a file would hold it.

    Args:
        raw: The scenario.
        name: Its name, where it does not give one.
        folder: Where its relative paths belong.

    Raises:
        ConfigError: With one sentence a line for everything that is wrong.
    """
    origins = Origins(name)
    return _validated(_with_cohort_file(_absolute(raw, (), Path(folder)), origins), Path(name), origins)


def shipped_scenarios() -> dict[str, Path]:
    """Return the files of the scenarios that come with pathnav, by name."""
    folder = Path(str(resources.files("pathnav_scenarios")))
    return {path.stem: path for path in sorted(folder.glob("*.yaml"))}


def _find(source: str | Path) -> Path:
    path = Path(source)
    if path.is_file():
        return path
    shipped = shipped_scenarios()
    if str(source) in shipped:
        return shipped[str(source)]
    near = difflib.get_close_matches(str(source), shipped, n=2, cutoff=0.5)
    hint = f"did you mean {' or '.join(near)}?" if near else f"shipped scenarios: {', '.join(shipped)}"
    raise ConfigError(f"there is no scenario file {source} and none of that name is shipped; {hint}")


def _sample_only(cohort: Any) -> dict[str, Any]:
    return {key: value for key, value in cohort.items() if key == "sample"} if isinstance(cohort, Mapping) else {}


def _validated(raw: dict[str, Any], path: Path, origins: Origins) -> Scenario:
    """Return the scenario of a document; one with sweeps is checked in all its combinations."""
    document = {"name": path.stem, **raw}
    try:
        axes = axes_of(document)
    except ConfigError as error:
        raise ConfigError("\n".join(_of_sweep(line, origins) for line in str(error).splitlines())) from error
    first = {axis.place: axis.values[0] for axis in axes}
    base = _checked(with_values(document, first), origins)
    if not axes:
        return base
    rest = {key: value for key, value in document.items() if key != "cohort"}

    def normal(axis: Axis) -> Axis:
        return _normal(axis, lambda value: with_values(rest, {**first, axis.place: value}), base, origins)

    swept = base.with_axes(tuple(normal(axis) for axis in axes))
    swept = base.with_axes(axes_of(swept.resolved()))  # in the format's order, as it is found when it is read again
    try:
        swept.variants()
    except ValidationError as error:
        raise ConfigError("\n".join(_sentences(rest, error, origins))) from error
    return swept


def _of_sweep(line: str, origins: Origins) -> str:
    """Return a sentence of `axes_of`, which begins with a dotted place, under the name of what holds the sweep."""
    key, _, text = line.partition(": ")
    return origins.told(tuple(int(step) if step.isdigit() else step for step in key.split(".")), text)


def _checked(document: dict[str, Any], origins: Origins) -> Scenario:
    try:
        return Scenario.model_validate(document)
    except ValidationError as error:
        raise ConfigError("\n".join(_sentences(document, error, origins))) from error


def _normal(axis: Axis, document_with: Callable[[Any], dict[str, Any]], base: Scenario, origins: Origins) -> Axis:
    """Return an axis with its values as a checked scenario writes them, so that 1 and 1.0 are the same value.

    Raises:
        ConfigError: If a value is not legal, or stands twice.
    """
    checked = (_checked({**document_with(value), "cohort": base.cohort}, origins) for value in axis.values)
    values = [value_at(one.model_dump(mode="json", exclude={"cohort"}), axis.place) for one in checked]
    written = [json.dumps(value, sort_keys=True) for value in values]
    if len(set(written)) < len(written):
        twice = f"sweep must not hold a value twice, got {shown(list(axis.values))}"
        raise ConfigError(origins.told(axis.place, twice))
    return Axis(axis.place, tuple(values))


def _sentences(document: dict[str, Any], error: ValidationError, origins: Origins) -> list[str]:
    lines = []
    for detail in complaints(error):
        place: Place = tuple(detail["loc"])
        text = reason(detail)
        if detail["type"] == "extra_forbidden":
            text += f" ({suggestion(Scenario, place)})"
        elif place in _SLOT_HINTS and value_at(document, place) is None:
            text += f"; {_SLOT_HINTS[place]}"
        lines.append(origins.told(place, text))
    return lines


def _with_cohort_file(raw: dict[str, Any], origins: Origins) -> dict[str, Any]:
    """Return the scenario with its cohort file's content in the file's place; a sample that it adds stays."""
    cohort = raw.get("cohort")
    if not isinstance(cohort, Mapping) or not isinstance(cohort.get("file"), str):
        return raw
    path = Path(cohort["file"])
    content = read_mapping(path, "cohort")
    if content.pop("format", COHORT_FORMAT) != COHORT_FORMAT:
        raise ConfigError(f"{path}: format of a cohort file must be {COHORT_FORMAT!r}")
    if "file" in content:
        raise ConfigError(f"{path}: file: a cohort file must not name another one")
    own = {key: value for key, value in cohort.items() if key != "file"}
    double = sorted(set(own) & {"slides", "phantoms"})
    if double:
        raise ConfigError(f"cohort: {double[0]} must not stand beside file ({path})")
    origins.file(("cohort",), str(path), own)
    return {**raw, "cohort": {**_absolute(content, ("cohort",), path.parent), **own}}


def _absolute(value: Any, place: Place, folder: Path) -> Any:
    """Return a copy of a document in which every path is absolute.

    Args:
        value: The document, or the part of it that stands at `place`.
        place: Where in a scenario.
        folder: What relative paths are relative to.
    """
    if is_sweep(value):  # its values stand at the place of the sweep
        return {key: [_absolute(item, place, folder) for item in items] for key, items in value.items()}
    if isinstance(value, Mapping):
        names = {key: _reference(key, folder) if _is_agent(place) else key for key in value}
        return {names[key]: _absolute(item, (*place, key), folder) for key, item in value.items()}
    if isinstance(value, list):
        return [_absolute(item, (*place, index), folder) for index, item in enumerate(value)]
    if isinstance(value, str) and _is_agent(place):
        return _reference(value, folder)
    if isinstance(value, str) and (_is_path(place) or (place == ("model", "profile") and value.endswith(_YAML))):
        return _joined(value, folder)
    return value


def _is_agent(place: Place) -> bool:
    return len(place) == 3 and place[:2] in (("localise", "agents"), ("explore", "scorers"))


def _is_path(place: Place) -> bool:
    match place:
        case ("cohort", "file") | ("out",) | ("prices",) | ("cohort", "slides", int(), "path" | "tree" | "annotation"):
            return True
        case ("explore", "scorers", int(), _, "prompt") | ("model", "api_key_file"):
            return True
    return False


def _reference(agent: Any, folder: Path) -> Any:
    """Return `file.py:Class` with an absolute path, anything else as it is."""
    file, colon, cls = str(agent).rpartition(":")
    return f"{_joined(file, folder)}:{cls}" if colon and file.endswith(".py") else agent


def _joined(path: str, folder: Path) -> str:
    if not path.strip() or "://" in path:
        return path
    return str(Path(folder, Path(path).expanduser()).absolute())
