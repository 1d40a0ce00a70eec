"""Which file or option each value of a scenario comes from: its faults are told under that name."""

from collections.abc import Collection
from dataclasses import dataclass

from pathnav.cohort.complaints import Place, dotted


@dataclass(frozen=True, slots=True)
class _Origin:
    """What gave the value at a place.

    Args:
        place: Where the value stands in the scenario.
        name: What gave it: a file, or an option.
        is_file: Whether it is a file of a part of the scenario, in which keys count from that part.
    """

    place: Place
    name: str
    is_file: bool


class Origins:
    """Where the values of a scenario come from.

    Args:
        scenario: The scenario's own name in messages, from which everything comes that is not told otherwise.
    """

    def __init__(self, scenario: str) -> None:
        self._scenario = scenario
        self._later: list[_Origin] = []

    def option(self, place: Place, name: str) -> None:
        """Note that an option gave the value at a place, whatever gave it before."""
        self._later = [one for one in self._later if one.place[: len(place)] != place]
        self._later.append(_Origin(place, name, False))

    def file(self, place: Place, name: str, but: Collection[str]) -> None:
        """Note that a file gave the value at a place, but for the keys in it that stood there already."""
        stays = [_Origin((*place, key), self._name_of((*place, key)), False) for key in but]
        depth = len(place)
        later = [one for one in self._later if one.place[:depth] != place or one.place[depth : depth + 1] in _keys(but)]
        self._later = [_Origin(place, name, True), *stays, *later]

    def told(self, place: Place, text: str) -> str:
        """Return a sentence on the value at a place, under the name of what gave it.

        Options that changed something inside the value are named too, since they may be what is wrong.
        """
        origin = self._of(place)
        key = place
        if origin is not None and origin.is_file:
            key = place[len(origin.place) :]
        elif origin is not None and origin.place == place and origin.name.startswith("--set "):
            key = ()  # the option says it
        depth = len(place)
        inside = [one for one in self._later if depth and len(one.place) > depth and one.place[:depth] == place]
        names = dict.fromkeys(one.name for one in inside if one.name.startswith("--"))
        changed = f" with {', '.join(names)}" if names else ""
        return ": ".join(part for part in (self._name_of(place) + changed, dotted(key), text) if part)

    def _name_of(self, place: Place) -> str:
        origin = self._of(place)
        return self._scenario if origin is None else origin.name

    def _of(self, place: Place) -> _Origin | None:
        """Return what gave the value at a place: the innermost of what holds it; None for the scenario itself."""
        holding = [one for one in self._later if place[: len(one.place)] == one.place]
        return max(holding, key=lambda one: len(one.place), default=None)


def _keys(names: Collection[str]) -> set[Place]:
    return {(name,) for name in names}
