"""A share of a run, for schedulers that start the same command many times."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeVar

from pathnav.errors import ConfigError

Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class Shard:
    """One of several shares of equal size.

    Args:
        number: Which, from 1.
        count: Of how many.

    Raises:
        ConfigError: If there is no such share.
    """

    number: int = 1
    count: int = 1

    def __post_init__(self) -> None:
        if not 1 <= self.number <= self.count:
            raise ConfigError(f"--shard must be I/N with I from 1 to N, got {self.number}/{self.count}")

    @classmethod
    def of(cls, text: str | None) -> "Shard":
        """Return the share of a text such as `2/8`; the whole where there is none.

        Raises:
            ConfigError: If the text is no share.
        """
        if text is None:
            return cls()
        found = re.fullmatch(r"\s*(\d{1,6})\s*/\s*(\d{1,6})\s*", text)
        if found is None:
            raise ConfigError(f"--shard must be I/N, such as 2/8, got {text!r}")
        return cls(int(found[1]), int(found[2]))

    def share(self, items: Iterable[Item]) -> list[Item]:
        """Return every N-th item from the I-th on: the place in the plan decides, whatever is finished already."""
        return list(items)[self.number - 1 :: self.count]
