"""What a run says while it goes on."""

import pytest

from pathnav.commands.progress import progress_shown
from pathnav.run.runner import Progress


def test_an_agent_that_fails_by_itself_is_named_once(capsys: pytest.CaptureFixture[str]) -> None:
    failed = {"agent": "mine", "outcome": "no_report", "reason": "ZeroDivisionError: division by zero"}
    lost = {"agent": "vlm", "outcome": "infra_error", "reason": "the endpoint is gone"}
    with progress_shown() as show:
        for done, latest in enumerate((failed, failed, lost, {**failed, "reason": None}), start=1):
            show(Progress(planned=9, kept=0, done=done, latest=latest))
    said = [line for line in capsys.readouterr().err.splitlines() if line.startswith("warning")]
    assert said == [
        "warning: agent 'mine' failed, and is scored as it stood (said once): ZeroDivisionError: division by zero"
    ]
