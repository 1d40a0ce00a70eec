"""Runs of scenarios in processes of their own: started, stopped, killed, and compared without their times."""

import hashlib
import json
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from pathnav.records import read_events
from support.chat_server import Answer, Request, call

LOOK = {"x": 300, "y": 300, "w": 300, "h": 300, "reason": "dense"}
REPORT = {"conclusion": "here", "bbox": [600, 600, 100, 100], "confidence": 0.7}
TURNS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("get_image_info", {}),
    ("extract_roi", LOOK),
    ("extract_roi", {**LOOK, "x": 500}),
    ("finish_and_report", REPORT),
)
CALLS = len(TURNS)
"""Requests of one undisturbed episode."""

_TIMES = re.compile(rb'"(seconds|call_seconds)": [0-9.e+-]+')


def navigate(request: Request) -> Answer:
    """Answer by the turn that the conversation has come to; the call's id names the request."""
    name, arguments = TURNS[sum(message["role"] == "assistant" for message in request.messages)]
    return call(name, arguments, ids=[named(request)])


def named(request: Request) -> str:
    """Return the name of a request: a hash of all that was sent."""
    return hashlib.sha256(request.raw).hexdigest()[:24]


def results(out: Path) -> dict[str, bytes]:
    """Return the bytes of all results by key, without their times."""
    files = {path.parent.name: path.read_bytes() for path in (out / "episodes").glob("*/result.json")}
    return {key: _TIMES.sub(b'"time": 0', content) for key, content in files.items()}


def outcomes(out: Path) -> list[str]:
    """Return the outcomes of all results, sorted."""
    return sorted(json.loads(content)["outcome"] for content in results(out).values())


def recorded(out: Path) -> set[str]:
    """Return the names of the requests whose replies are on record."""
    logs = [read_events(path) for path in (out / "episodes").glob("*/events.jsonl")]
    replies = [event for events in logs for event in events if event["kind"] == "reply"]
    return {call["id"] for reply in replies for call in reply["calls"]}


def start(*arguments: object, **options: Any) -> "subprocess.Popen[bytes]":
    """Start `pathnav` in a process of its own."""
    script = "import sys; from pathnav.cli import main; sys.exit(main())"
    command = [sys.executable, "-c", script, *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)


def ended(processes: Iterable["subprocess.Popen[bytes]"], limit_s: float = 200) -> list[tuple[int, str]]:
    """Wait for processes and return their exit codes and what they said on stderr."""
    return [
        (process.returncode, said[1].decode()) for process in processes if (said := process.communicate(None, limit_s))
    ]


def wait_for(reached: Callable[[], bool], process: "subprocess.Popen[bytes]", limit_s: float = 120) -> None:
    """Wait until something is so; fails where the process ends before."""
    deadline = time.monotonic() + limit_s
    while not reached():
        assert process.poll() is None, process.communicate()[1].decode()
        assert time.monotonic() < deadline
        time.sleep(0.005)
