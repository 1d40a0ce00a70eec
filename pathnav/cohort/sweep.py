"""`sweep:` in a scenario: a value that is several. Works on plain documents, before anything of them is checked.

`localise.budget` and `explore.schedule` have sweeps of their own, which are part of their value (`scenario.py`): all
that they sweep shares one run of a scorer.
"""

import copy
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pathnav.settings import Place, dotted, shown, value_at

MAX_COMBINATIONS = 1000
"""More of them are a slip of the pen: each is planned, and most are asked, on its own."""

_OWN = (("localise", "budget"), ("explore", "schedule"))
_AGENTS = (("localise", "agents"), ("explore", "scorers"))
_ONE_COHORT = "all combinations ask the same cohort, or their rows would not compare; run the scenario once for each"
_ONE_RUN = "a run has one of it"
_SAME_ANSWER = "it changes no answer, so only the first value would be asked; for several servers sweep model itself"
_NOT_SWEPT: Mapping[Place, str] = {
    ("cohort",): _ONE_COHORT,
    **{(key,): _ONE_RUN for key in ("format", "name", "out", "prices")},
    **{("model", key): _SAME_ANSWER for key in ("base_url", "api_key_env", "api_key_file", "allow_hosts")},
    **{("model", key): _SAME_ANSWER for key in ("timeout_s", "concurrency", "requests_per_minute")},
}


@dataclass(frozen=True, slots=True)
class Axis:
    """One swept value: where it stands in the scenario, and what it takes, in order."""

    place: Place
    values: tuple[Any, ...]

    @property
    def name(self) -> str:
        """The place as users write it, e.g. `localise.jitter`."""
        return dotted(self.place)

    def fault(self) -> str | None:
        """Return why this cannot be swept, None where it can."""
        for place, why in _NOT_SWEPT.items():
            if self.place[: len(place)] == place:
                return f"may not be swept: {why}"
        if not self.values:
            return "sweep must hold at least one value"
        if len(self.place) == 4 and self.place[:2] in _AGENTS:
            return "options are swept one by one: {option: {sweep: [...]}}; or list the name once for each"
        inner = next((value for value in self.values if is_sweep(value) or any(axes_of(value))), None)
        return f"a sweep must not stand inside another, got {shown(inner)}" if inner is not None else None


def is_sweep(value: Any) -> bool:
    """Return whether a value of a document is a list of values to sweep over."""
    return isinstance(value, Mapping) and list(value) == ["sweep"] and isinstance(value["sweep"], list)


def axes_of(value: Any, place: Place = ()) -> Iterator[Axis]:
    """Yield the sweeps of a document, or of its part at a place, in its order."""
    if is_sweep(value) and place not in _OWN:
        yield Axis(place, tuple(value["sweep"]))
    elif place not in _OWN and isinstance(value, Mapping | list):
        for step, item in value.items() if isinstance(value, Mapping) else enumerate(value):
            yield from axes_of(item, (*place, step))


def sweep_faults(axes: tuple[Axis, ...]) -> list[tuple[Place, str]]:
    """Return the place and the reason of every sweep that cannot be."""
    found = [(axis.place, fault) for axis in axes if (fault := axis.fault())]
    count = math.prod(len(axis.values) for axis in axes)
    if not found and count > MAX_COMBINATIONS:
        each = ", ".join(f"{axis.name} {len(axis.values)}" for axis in axes)
        found.append(((), f"sweep makes {count:,} combinations ({each}), more than {MAX_COMBINATIONS:,}"))
    return found


def with_values(document: Mapping[str, Any], values: Mapping[Place, Any]) -> dict[str, Any]:
    """Return a copy of a document with values at places that are there; it shares nothing that can be changed."""
    changed: dict[str, Any] = copy.deepcopy(dict(document))
    for place, value in values.items():
        value_at(changed, place[:-1])[place[-1]] = copy.deepcopy(value)
    return changed
