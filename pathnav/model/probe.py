"""Find out what a chat endpoint and its model can do: `pathnav doctor`.

Each check is one or a few small requests with generated pictures; no slide is involved. What a check decides goes into
a server profile; what it cannot decide stays as it was, and is named.
"""

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np

from pathnav import __version__
from pathnav.model.probe_answers import probe_limit, probe_logprobs, probe_reasoning, probe_seed, probe_system
from pathnav.model.probe_chart import Chart
from pathnav.model.probe_context import probe_context
from pathnav.model.probe_finding import Finding, Result
from pathnav.model.probe_frame import probe_frame
from pathnav.model.probe_line import MAX_CALLS, Line
from pathnav.model.probe_sight import probe_many, probe_placements, probe_sight
from pathnav.model.probe_steady import probe_steady
from pathnav.model.probe_tools import probe_tools
from pathnav.model.profile import Profile
from pathnav.model.settings import ChatSettings, refuse_tracing

DOCTOR_FORMAT = "pathnav-doctor-1"
_PROBES: tuple[Callable[[Chart], None], ...] = (
    probe_limit,
    probe_system,
    probe_seed,
    probe_reasoning,
    probe_logprobs,
    probe_tools,
    probe_sight,
    probe_placements,
    probe_many,
    probe_frame,
    probe_context,
    probe_steady,
)


@dataclass(frozen=True)
class Examination:
    """What was found.

    Args:
        settings: The endpoint and the decoding.
        seed: Of the pictures.
        day: When, ISO 8601.
        chart: All that was found.
    """

    settings: ChatSettings
    seed: int
    day: str
    chart: Chart

    @property
    def findings(self) -> list[Finding]:
        """The findings in the order of the checks."""
        return self.chart.findings

    @property
    def profile(self) -> Profile:
        """The profile with all that was decided."""
        return self.chart.profile

    @property
    def usable(self) -> bool:
        """Whether a run makes sense: it takes the rules, sees the pictures of a conversation, and acts."""
        refuses_rules = self.result_of("system_role") is Result.NO
        answers = self.chart.line.outage is None
        return answers and self.chart.placed and self.chart.acts is not None and not refuses_rules

    @property
    def refuses_key(self) -> bool:
        """Whether the endpoint took the key at first, and then no more."""
        return self.chart.line.outage is not None and self.chart.line.outage.refuses_key

    @property
    def verdict(self) -> str:
        """What it comes to, in one sentence."""
        chart = self.chart
        if chart.line.outage is not None:
            what = "check the key and what it may use" if self.refuses_key else "what was not answered is undecided"
            return f"{chart.line.end}; {what}"
        if not self.usable and (unknown := self._unknown):
            return f"whether it can be run is undecided: {unknown.probe} got no answer; {unknown.seen}"
        if not chart.sees:
            return "the model does not see images: a run would measure nothing"
        if not chart.placed:
            return "the model sees images, but none that comes as the result of a tool: it would navigate blind"
        if chart.acts is None and chart.cut_off:
            return "the model sees images, but its calls are cut off: give it room with --max-tokens 4096"
        if chart.acts is None:
            return "the model sees images, but calls no tool in either way: its episodes would end without a box"
        if not self.usable:
            return "the model takes no system message: it cannot be told the rules"
        way = "with its own tool calls" if chart.acts == "native" else "by the text protocol"
        rest = f"; undecided: {', '.join(sorted(chart.undecided))}" if chart.undecided else ""
        return f"it can be run, {way}{rest}"

    @property
    def _unknown(self) -> Finding | None:
        """What an answer is missing to, of all that a run needs; None where what was answered rules it out."""
        if self.result_of("sight") is Result.NO or self.result_of("system_role") is Result.NO:
            return None
        needed = {"sight", "tools", "placement", "placement_text"}
        needed |= set() if self.chart.calls_tools else {"text_protocol"}
        return next((one for one in self.findings if one.probe in needed and one.result is Result.UNDECIDED), None)

    def result_of(self, probe: str) -> Result | None:
        """Return the outcome of a check, None where there was none of that name."""
        return self.chart.result_of(probe)

    def as_dict(self) -> dict[str, Any]:
        """Return the document of `--json`, see `docs/doctor.md`."""
        return {
            "format": DOCTOR_FORMAT,
            "subject": "endpoint",
            "pathnav": __version__,
            "endpoint": self.settings.endpoint,
            "model": self.settings.model,
            "date": self.day,
            "seed": self.seed,
            "calls": self.chart.line.calls,
            "calls_limit": MAX_CALLS,
            "ok": self.usable,
            "verdict": self.verdict,
            "findings": [finding.as_dict() for finding in self.findings],
            "undecided": dict(sorted(self.chart.undecided.items())),
            "profile": self.profile.model_dump(mode="json"),
            "profile_file": None,
            "evidence": self.chart.line.evidence,
        }


def examine(
    settings: ChatSettings,
    seed: int = 0,
    *,
    now: datetime | None = None,
    sleep: Callable[[float], None] = time.sleep,
    tell: Callable[[Finding], None] = lambda finding: None,
) -> Examination:
    """Return what an endpoint can do, after at most `MAX_CALLS` requests.

    Args:
        settings: The endpoint, and in its profile what to start from.
        seed: Draws the numbers and squares of the pictures.
        now: The day that is recorded, default: today.
        sleep: Waits for the given seconds.
        tell: Called with each finding as soon as it is there.

    Raises:
        ConfigError: If a variable is set that would send prompts to a tracing service.
        EndpointUnreachable: If there is no connection.
        ModelError: If the endpoint answers nothing that can be used: a wrong key, another kind of server.
    """
    refuse_tracing(os.environ)
    line = Line(settings, sleep)
    chart = Chart(line, np.random.default_rng(seed))
    told = 0
    try:
        for probe in _PROBES:
            probe(chart)
            for finding in chart.findings[told:]:
                tell(finding)
            told = len(chart.findings)
    finally:
        line.close()
    return Examination(settings, seed, (now or datetime.now(UTC)).date().isoformat(), chart)
