"""Examine scripted servers as `pathnav doctor` does, whole or by some checks alone."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import numpy as np

from pathnav.model import ChatSettings
from pathnav.model.probe import Examination, examine
from pathnav.model.probe_chart import Chart
from pathnav.model.probe_finding import Finding
from pathnav.model.probe_line import MAX_CALLS, Line
from pathnav.model.profile import Profile
from support.chat_server import Answer, ChatServer, Request
from support.model_kinds import Kind

Server = Kind | Callable[[Request], Answer]
NOW = datetime(2026, 11, 30, tzinfo=UTC)


def examined(kind: Server, models: dict[str, Any] | None = None, **settings: Any) -> Examination:
    """Return the examination of a whole server."""
    with ChatServer(kind.answer if isinstance(kind, Kind) else kind, models=models) as server:
        made = ChatSettings(base_url=server.base_url, model="any", **settings)
        found = examine(made, 3, now=NOW, sleep=lambda seconds: None)
        assert len(server.requests) <= MAX_CALLS
        return found


def probed(
    kind: Server,
    *probes: Callable[[Chart], None],
    models: dict[str, Any] | None = None,
    settings: dict[str, Any] | None = None,
    **known: Any,
) -> Chart:
    """Return the chart after some checks alone.

    Args:
        kind: The server.
        probes: The checks.
        models: What it lists.
        settings: Fields of `ChatSettings`.
        known: Fields of the chart.
    """
    with ChatServer(kind.answer if isinstance(kind, Kind) else kind, models=models) as server:
        made = ChatSettings(**{"base_url": server.base_url, "model": "any", "profile": Profile(), **(settings or {})})
        chart = Chart(Line(made, lambda seconds: None), np.random.default_rng(5), **known)
        for probe in probes:
            probe(chart)
        chart.line.close()
        return chart


def finding(found: Examination | Chart, name: str) -> Finding:
    """Return the only finding of a check."""
    (one,) = [finding for finding in found.findings if finding.probe == name]
    return one


def results(found: Examination | Chart) -> dict[str, str]:
    """Return the outcomes by check."""
    return {finding.probe: finding.result.value for finding in found.findings}
