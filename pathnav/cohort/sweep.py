"""`sweep:` in a scenario: a value that is several, and the combinations that several of them make.

Works on plain documents, before anything of them is checked. `localise.budget` and `explore.schedule` have sweeps of
their own, which are part of their value (`scenario_values.py`): all that they sweep shares one run of a scorer.
"""

import copy
import itertools
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pathnav.cohort.complaints import Place, dotted, shown
from pathnav.errors import ConfigError

MAX_COMBINATIONS = 1000
"""More of them are a slip of the pen: each is planned, and most are asked, on its own."""

_SWEEP = "sweep"
_OWN = (("localise", "budget"), ("explore", "schedule"))
_CHOSEN = (("localise", "agents"), ("explore", "scorers"))
_ONE_COHORT = "all combinations ask the same cohort, or their rows would not compare; run the scenario once for each"
_ONE_RUN = "a run has one of it"
_SAME_ANSWER = "it changes no answer, so only the first value would be asked; for several servers sweep model itself"
_NOT_SWEPT: Mapping[Place, str] = {
    ("cohort",): _ONE_COHORT,
    **{(key,): _ONE_RUN for key in ("format", "name", "out", "prices")},
    **{
        ("model", key): _SAME_ANSWER
        for key in (
            *("base_url", "api_key_env", "api_key_file", "allow_hosts"),
            *("timeout_s", "concurrency", "requests_per_minute"),
        )
    },
}


@dataclass(frozen=True, slots=True)
class Axis:
    """One swept value.

    Args:
        place: Where it stands in the scenario.
        values: What it takes, in order.
    """

    place: Place
    values: tuple[Any, ...]

    @property
    def name(self) -> str:
        """The place as users write it, e.g. `localise.jitter`."""
        return dotted(self.place)


def is_sweep(value: Any) -> bool:
    """Return whether a value of a document is a list of values to sweep over."""
    return isinstance(value, Mapping) and list(value) == [_SWEEP] and isinstance(value[_SWEEP], list)


def axes_of(document: Mapping[str, Any]) -> tuple[Axis, ...]:
    """Return the sweeps of a document, in its order.

    Raises:
        ConfigError: With one sentence a line for every sweep that cannot be.
    """
    axes = tuple(_found(document, ()))
    faults = [f"{axis.name}: {fault}" for axis in axes if (fault := _fault(axis))]
    count = math.prod(max(1, len(axis.values)) for axis in axes)
    if not faults and count > MAX_COMBINATIONS:
        told = ", ".join(f"{axis.name} {len(axis.values)}" for axis in axes)
        faults.append(f"sweep: makes {count:,} combinations ({told}), more than {MAX_COMBINATIONS:,}")
    if faults:
        raise ConfigError("\n".join(faults))
    return axes


def _found(value: Any, place: Place) -> Iterator[Axis]:
    if place in _OWN:
        return
    if is_sweep(value):
        yield Axis(place, tuple(value[_SWEEP]))
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from _found(item, (*place, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _found(item, (*place, index))


def _fault(axis: Axis) -> str | None:
    """Return why a sweep cannot be, None where it can."""
    for place, why in _NOT_SWEPT.items():
        if axis.place[: len(place)] == place:
            return f"may not be swept: {why}"
    if not axis.values:
        return "sweep must hold at least one value"
    if len(axis.place) == 4 and axis.place[:2] in _CHOSEN:
        return "options are swept one by one: {option: {sweep: [...]}}; or list the name once for each"
    inner = next((value for value in axis.values if _holds_sweep(value)), None)
    return f"a sweep must not stand inside another, got {shown(inner)}" if inner is not None else None


def _holds_sweep(value: Any) -> bool:
    if is_sweep(value):
        return True
    inside = value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ()
    return any(_holds_sweep(item) for item in inside)


def combinations(axes: Iterable[Axis]) -> Iterator[dict[Place, Any]]:
    """Yield every choice of one value an axis, in the order of the axes: the last one varies fastest."""
    chosen = tuple(axes)
    for values in itertools.product(*(axis.values for axis in chosen)):
        yield {axis.place: value for axis, value in zip(chosen, values, strict=True)}


def with_values(document: Mapping[str, Any], values: Mapping[Place, Any]) -> dict[str, Any]:
    """Return a copy of a document with values at places; it shares nothing that can be changed.

    Args:
        document: The document; what holds the last step of a place is there.
        values: By place.
    """
    changed: dict[str, Any] = copy.deepcopy(dict(document))
    for place, value in values.items():
        *way, last = place
        holder: Any = changed
        for step in way:
            holder = holder[step]
        holder[last] = copy.deepcopy(value)
    return changed


def with_sweeps(document: Mapping[str, Any], axes: Iterable[Axis]) -> dict[str, Any]:
    """Return a copy of a document with the axes written into it, as `axes_of` finds them."""
    return with_values(document, {axis.place: {_SWEEP: list(axis.values)} for axis in axes})
