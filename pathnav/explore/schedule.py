"""How many tiles a hierarchical search keeps at each magnification."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pathnav.cohort.protocol import MAGNIFICATIONS
from pathnav.errors import ConfigError

MOST_KEPT = 1_000_000
"""A larger K is a slip of the keyboard: no slide has as many tiles at 2.5x, and no parent more than 16 children."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """K by level: of the whole slide at 2.5x, per kept parent below.

    Args:
        keep: K at 2.5x, 10x and 40x, each from 1 to 1,000,000.

    Raises:
        ConfigError: If a K is not a whole number of that range.
    """

    keep: tuple[int, ...]

    def __post_init__(self) -> None:
        if not self.keep or not all(type(k) is int and k >= 1 for k in self.keep):
            raise ConfigError(f"a schedule needs whole numbers of at least 1, such as 6,3,2, got {list(self.keep)}")
        if max(self.keep) > MOST_KEPT:
            raise ConfigError(f"a K of a schedule must be at most {MOST_KEPT:,}, got {max(self.keep):,}")

    @classmethod
    def of(cls, given: "str | Sequence[int]") -> "Schedule":
        """Return the schedule of a text such as `6,3,2`, or of three numbers.

        Raises:
            ConfigError: If it is not three whole numbers of at least 1.
        """
        parts = given.split(",") if isinstance(given, str) else list(given)
        try:
            keep = tuple(int(part) if isinstance(part, str) else part for part in parts)
        except ValueError:
            raise ConfigError(f"a schedule is three whole numbers such as 6,3,2, got {given!r}") from None
        if len(keep) != len(MAGNIFICATIONS):
            raise ConfigError(f"a schedule has a K for each of 2.5x, 10x and 40x, such as 6,3,2, got {given!r}")
        return cls(keep)

    def __str__(self) -> str:
        return ",".join(map(str, self.keep))

    def within(self, other: "Schedule") -> bool:
        """Return whether no K is larger than the other schedule's."""
        pairs = zip(self.keep, other.keep, strict=True)
        return all(mine <= theirs for mine, theirs in pairs)


def widest(schedules: Iterable[Schedule]) -> Schedule:
    """Return the schedule with the largest K of each level: what it asks for holds what each of them asks for."""
    return Schedule(tuple(max(ks) for ks in zip(*(schedule.keep for schedule in schedules), strict=True)))
