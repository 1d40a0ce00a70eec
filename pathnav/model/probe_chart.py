"""What `pathnav doctor` knows so far: decided fields of the profile, what stays open, the findings."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pathnav.model.probe_finding import Finding
from pathnav.model.probe_line import Line
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
        self.fields |= fields

    def leave_open(self, reasons: Mapping[str, str]) -> None:
        """Note fields that could not be decided."""
        self.undecided |= reasons
