"""What `pathnav doctor` knows so far: decided fields of the profile, what stays open, the findings."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import wraps
from typing import Any

import numpy as np

from pathnav.model.probe_finding import Finding, Result
from pathnav.model.probe_line import Line, Undecided
from pathnav.model.profile import Profile


@dataclass
class Chart:
    """The state of one examination.

    Args:
        line: Where to ask.
        rng: Draws numbers and places.
        fields: Fields of the profile that were decided, plain values.
        undecided: Fields that could not be, each with the reason; they stay as in the profile that was given.
        findings: In the order of the checks.
        takes_tools: Whether a request with tools was answered.
        calls_tools: Whether it calls tools in the API's own way.
        cut_off: Whether calls came whose arguments were cut off, and no whole one.
        acts: `native` or `text` where the model calls tools in that way, None where it does in none.
        sees: Whether it read a picture in a user message.
        placed: Whether it read the picture of a tool call.
        image_tokens: What an image of 1,024 x 1,024 px costs by the server's own count, None where unknown.
    """

    line: Line
    rng: np.random.Generator
    fields: dict[str, Any] = field(default_factory=dict)
    undecided: dict[str, str] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)
    takes_tools: bool = False
    calls_tools: bool = False
    cut_off: bool = False
    acts: str | None = None
    sees: bool = False
    placed: bool = False
    image_tokens: int | None = None

    @property
    def base(self) -> Profile:
        """The profile that the examination starts from."""
        return self.line.settings.profile

    @property
    def profile(self) -> Profile:
        """The profile with all that was decided.

        Model and server are named in its file's head; the name says where it comes from.
        """
        return Profile.model_validate({**self.base.model_dump(mode="json"), "name": "doctor", **self.fields})

    def add(self, finding: Finding, **fields: Any) -> None:
        """Add a finding with the fields that it decides."""
        self.findings.append(finding)
        self.decide(**fields)

    def decide(self, **fields: Any) -> None:
        """Note fields that are decided."""
        self.fields |= fields
        for name in fields:
            self.undecided.pop(name, None)

    def result_of(self, probe: str) -> Result | None:
        """Return the outcome of a check, None where there was none of that name."""
        return next((finding.result for finding in self.findings if finding.probe == probe), None)

    def rest_on(self, probe: str) -> None:
        """Refuse to go on where an earlier check is undecided.

        Raises:
            Undecided: If it is.
        """
        if self.result_of(probe) is Result.UNDECIDED:
            self.line.insist()
            raise Undecided(f"it was not asked: {probe} is undecided")

    def leave_open(self, reasons: Mapping[str, str]) -> None:
        """Note fields that could not be decided."""
        self.undecided |= reasons


Check = Callable[[Chart], None]
_MEANS = "undecided: a failure of this kind says nothing of the model, or of what the server takes"


def decides(*probes: str, fields: tuple[str, ...] = ()) -> Callable[[Check], Check]:
    """Make a check decide all of its findings or none: where a question went unanswered, they are undecided.

    Args:
        probes: The findings that the check makes.
        fields: Those of the profile that it decides.
    """

    def made(check: Check) -> Check:
        @wraps(check)
        def all_or_none(chart: Chart) -> None:
            count, decided, left_open = len(chart.findings), dict(chart.fields), dict(chart.undecided)
            try:
                check(chart)
            except Undecided as error:
                del chart.findings[count:]
                chart.fields, chart.undecided = decided, left_open
                change = None if error.heard is None or chart.line.outage else "ask again later"
                means = "" if error.heard is None else _MEANS
                for probe in probes:
                    chart.add(Finding(probe, Result.UNDECIDED, error.sentence, means, change))
                chart.leave_open({name: error.sentence for name in fields if name not in decided})

        return all_or_none

    return made
