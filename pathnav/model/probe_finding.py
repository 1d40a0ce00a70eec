"""What a check found: what was seen, what it means for a run, what to change."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class Result(StrEnum):
    """The outcome of a check in a word; `not_asked` where an earlier one made it pointless or impossible."""

    YES = "yes"
    NO = "no"
    PARTLY = "partly"
    UNDECIDED = "undecided"
    NOT_ASKED = "not_asked"


@dataclass(frozen=True, slots=True)
class Finding:
    """One check.

    Args:
        probe: What was checked, a name that stays.
        result: Whether it works.
        seen: What happened, one sentence.
        means: What that means for a run, one sentence; empty where nothing follows.
        change: What the user can do about it, None where nothing need be done.
        facts: Numbers and names for programs; plain JSON.
    """

    probe: str
    result: Result
    seen: str
    means: str = ""
    change: str | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain JSON."""
        return {
            "probe": self.probe,
            "result": self.result.value,
            "seen": self.seen,
            "means": self.means or None,
            "change": self.change,
            "facts": dict(self.facts),
        }

    def lines(self) -> list[str]:
        """Return it as text: the check and what was seen, then what follows, indented."""
        mark = {Result.YES: "ok", Result.NO: "no", Result.PARTLY: "partly", Result.NOT_ASKED: "--"}.get(
            self.result, "?"
        )
        rest = [f"        means:  {self.means}"] if self.means else []
        rest += [f"        change: {self.change}"] if self.change else []
        return [f"{mark:<7} {self.probe}: {self.seen}", *rest]


def not_asked(probe: str, why: str) -> Finding:
    """Return the finding of a check that was left out."""
    return Finding(probe, Result.NOT_ASKED, f"not asked: {why}")
