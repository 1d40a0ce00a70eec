"""Scenario files: reading them, filling their slots, and saying what is wrong with them."""

import difflib
import itertools
import json
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from pathnav.cohort.scenario import SCENARIO_FORMAT, Scenario, Variant
from pathnav.cohort.sweep import Axis, axes_of, sweep_faults, with_values
from pathnav.errors import ConfigError
from pathnav.settings import Place, child, compose, compose_mapping, construct, faults, put, shown, told, value_at

COHORT_FORMAT = "pathnav-cohort-1"
_TEXT = "tag:yaml.org,2002:str"
_MISSING = {
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

    Relative paths belong to the file that names them; those of options belong to `folder`.

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
    path, here = _find(source), Path(folder)
    root = _rooted(_read(path, "scenario"), (), path.parent)
    if cohort is not None:
        own = child(root, "cohort")
        sample = None if own is None else child(own, "sample")
        put(root, ("cohort",), compose("{}", "--cohort"))
        if sample is not None:
            put(root, ("cohort", "sample"), sample)
    slots = (
        ("--cohort", ("cohort", "file"), cohort),
        ("--model", ("model", "name"), model),
        ("--base-url", ("model", "base_url"), base_url),
        ("--prices", ("prices",), prices),
    )
    given = [(place, compose(json.dumps(str(value)), option)) for option, place, value in slots if value is not None]
    root = _with_cohort_file(root)
    for place, value in (*given, *map(_assignment, sets)):
        put(root, place, _rooted(value, place, here))
        root = _with_cohort_file(root)
    return _checked(root, path.stem)


def make_scenario(raw: Mapping[str, Any], *, name: str = "scenario", folder: str | Path = ".") -> Scenario:
    """Return the scenario of a plain mapping, as a file would hold it.

    Args:
        raw: The scenario.
        name: Its name, where it does not give one.
        folder: Where its relative paths belong.

    Raises:
        ConfigError: With one sentence a line for everything that is wrong.
    """
    root = compose(yaml.safe_dump(dict(raw), sort_keys=False), name)
    return _checked(_with_cohort_file(_rooted(root, (), Path(folder))), name)


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


def _read(path: Path, what: str) -> yaml.MappingNode:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{what} file {path} cannot be read: {error}") from error
    return compose_mapping(text, str(path), what)


def _assignment(text: str) -> tuple[Place, yaml.Node]:
    """Return the place and the value of `KEY=VALUE`: a dotted key, list items by number, and a YAML value."""
    key, equals, value = text.partition("=")
    steps = key.strip().split(".")
    if not equals or not all(steps):
        raise ConfigError(f"--set takes KEY=VALUE such as localise.budget=[5,3,2], got {text!r}")
    place = tuple(int(step) if step.isdigit() else step for step in steps)
    return place, compose(value, f"--set {key.strip()}")


def _with_cohort_file(root: yaml.Node) -> yaml.Node:
    """Return the scenario with its cohort file's content in the file's place; a sample that it adds stays."""
    cohort = child(root, "cohort")
    file = None if cohort is None else child(cohort, "file")
    if cohort is None or file is None or file.tag != _TEXT:
        return root
    path = Path(file.value)
    content = _read(path, "cohort")
    if (found := child(content, "format")) is not None and found.value != COHORT_FORMAT:
        raise ConfigError(f"{path}: format of a cohort file must be {COHORT_FORMAT!r}")
    if child(content, "file") is not None:
        raise ConfigError(f"{path}: file: a cohort file must not name another one")
    own = [(key, value) for key, value in cohort.value if key.value != "file"]
    if double := sorted({key.value for key, _ in own} & {"slides", "phantoms"}):
        raise ConfigError(f"cohort: {double[0]} must not stand beside file ({path})")
    content = _rooted(content, ("cohort",), path.parent)
    content.value = [(key, value) for key, value in content.value if key.value != "format"]
    for key, value in own:
        put(content, (key.value,), value)
    put(root, ("cohort",), content)
    return root


def _checked(root: yaml.Node, name: str) -> Scenario:
    """Return the scenario of a node tree; one with sweeps is checked in all its combinations."""
    document = {"name": name, **construct(root)}
    axes = tuple(axes_of(document))
    if wrong := sweep_faults(axes):
        raise ConfigError("\n".join(told(root, *fault) for fault in wrong))
    base = _combination(root, with_values(document, {axis.place: axis.values[0] for axis in axes}))
    return _swept(root, document, axes, base) if axes else base


def _swept(root: yaml.Node, document: dict[str, Any], axes: tuple[Axis, ...], base: Scenario) -> Scenario:
    """Return the first combination with all others; axes come in the order of the format, not of the file."""
    order = [axis.place for axis in axes_of(with_values(base.written(), {a.place: {"sweep": []} for a in axes}))]
    axes = tuple(sorted(axes, key=lambda axis: order.index(axis.place)))
    rest = {key: value for key, value in document.items() if key != "cohort"}
    variants: list[Variant] = []
    lines: dict[str, None] = {}
    for values in itertools.product(*(axis.values for axis in axes)):
        chosen = with_values(rest, dict(zip((axis.place for axis in axes), values, strict=True)))
        try:
            one = _combination(root, {**chosen, "cohort": base.cohort})
        except ConfigError as error:
            lines |= dict.fromkeys(str(error).splitlines())
        else:
            written = one.model_dump(mode="json", exclude={"cohort"})
            variants.append(Variant({axis.name: value_at(written, axis.place) for axis in axes}, one))
    if lines:
        raise ConfigError("\n".join(lines))
    checked = tuple(Axis(axis.place, _different([one.settings[axis.name] for one in variants])) for axis in axes)
    for axis, found in zip(axes, checked, strict=True):
        if len(found.values) < len(axis.values):  # as a checked scenario writes them, 1 and 1.0 are the same value
            text = f"sweep must not hold a value twice, got {shown(list(axis.values))}"
            raise ConfigError(told(root, axis.place, text))
    return base.swept(checked, tuple(variants))


def _different(values: list[Any]) -> tuple[Any, ...]:
    return tuple({json.dumps(value, sort_keys=True): value for value in values}.values())


def _combination(root: yaml.Node, document: dict[str, Any]) -> Scenario:
    try:
        return Scenario.model_validate(document)
    except ValidationError as error:
        hinted = (
            (place, text + (f"; {_MISSING[place]}" if place in _MISSING and document.get(place[0]) is None else ""))
            for place, text in faults(error, Scenario)
        )
        raise ConfigError("\n".join(told(root, *fault) for fault in hinted)) from error


def _rooted(node: yaml.Node, place: Place, folder: Path) -> Any:
    """Return a copy of a scenario's node tree, or of its part at a place; relative paths are those of a folder."""
    marks = node.start_mark, node.end_mark
    if isinstance(node, yaml.SequenceNode):
        # The values of a sweep stand at the place of the sweep.
        places = [place[:-1] if place[-1:] == ("sweep",) else (*place, index) for index in range(len(node.value))]
        items = [_rooted(item, where, folder) for item, where in zip(node.value, places, strict=True)]
        return yaml.SequenceNode(node.tag, items, *marks)
    if isinstance(node, yaml.MappingNode):
        names = [_rooted(key, place, folder) if _is_agent(place) else key for key, _ in node.value]
        values = [_rooted(value, (*place, str(key.value)), folder) for key, value in node.value]
        pairs = list(zip(names, values, strict=True))
        return yaml.MappingNode(node.tag, pairs, *marks)
    return yaml.ScalarNode(node.tag, _absolute(node.value, place, folder) if node.tag == _TEXT else node.value, *marks)


def _is_agent(place: Place) -> bool:
    return len(place) == 3 and place[:2] in (("localise", "agents"), ("explore", "scorers"))


def _absolute(text: str, place: Place, folder: Path) -> str:
    if _is_agent(place):
        file, colon, cls = text.rpartition(":")
        return f"{_joined(file, folder)}:{cls}" if colon and file.endswith(".py") else text
    match place:
        case ("model", "profile"):  # what else it holds is the name of a shipped one
            return _joined(text, folder) if text.endswith((".yaml", ".yml")) else text
        case ("cohort", "file") | ("out",) | ("prices",) | ("cohort", "slides", int(), "path" | "tree" | "annotation"):
            return _joined(text, folder)
        case ("explore", "scorers", int(), _, "prompt") | ("model", "api_key_file"):
            return _joined(text, folder)
    return text


def _joined(path: str, folder: Path) -> str:
    if not path.strip() or "://" in path:
        return path
    return str(Path(folder, Path(path).expanduser()).absolute())
