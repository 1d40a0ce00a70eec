"""Episodes of the vlm agent that are recorded against canned answers, to be spoilt and replayed by tests."""

import json
from pathlib import Path
from typing import Any

from pathnav.model import ChatSettings
from pathnav.records import read_events
from pathnav.run.replay_compare import Replayed
from support.chat_server import Answer, ChatServer, call, calls, failure, say
from support.commands import Bench
from support.episodes import ask

LOOK = {"x": 150, "y": 250, "w": 300, "h": 200, "reason": "dark"}
OUTSIDE = {"x": 1900, "y": 1500, "w": 50, "h": 50, "reason": "far"}
REPORT = {"conclusion": "there", "bbox": [300, 300, 200, 200], "confidence": 0.7}

EPISODES: dict[str, tuple[list[Answer], str]] = {
    "finished": (
        [
            calls(("get_image_info", {}), ("extract_roi", LOOK), ("extract_roi", OUTSIDE)),
            calls(("extract_roi", '{"x": 1,'), ("zoom", {}), ("extract_roi", {**LOOK, "x": 1200, "w": 400})),
            say("Let me think."),
            call("finish_and_report", REPORT, usage=None),
        ],
        "finished",
    ),
    "forced": (
        [
            calls(*[("extract_roi", {**LOOK, "x": 150 + 10 * step}) for step in range(12)]),
            calls(("extract_roi", LOOK), ("finish_and_report", REPORT)),
            call("finish_and_report", REPORT),
        ],
        "forced",
    ),
    "no report": ([*[say("I see fat.")] * 3, say("No."), say("No.")], "format_errors"),
    "refused": ([call("extract_roi", LOOK), say("", message={"refusal": "I cannot."})], "refused"),
    "overflow": (
        [call("extract_roi", LOOK), failure(400, "maximum context length is 8192 tokens")],
        "context_overflow",
    ),
}


def episode(bench: Bench) -> Path:
    """Return the folder of the one episode of the bench."""
    (folder,) = (bench.folder / "out" / "episodes").iterdir()
    return folder


def files(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def played(bench: Bench, name: str, **settings: Any) -> Path:
    """Record one of the episodes and return its folder."""
    answers, outcome = EPISODES[name]
    with ChatServer(answers) as server:
        model = ChatSettings(base_url=server.base_url, model="canned", **settings)
        assert ask(bench, "vlm", model=model)["outcome"] == outcome
    return episode(bench)


def event(folder: Path, event_id: str) -> dict[str, Any]:
    """Return an event of the record."""
    return next(one for one in read_events(folder / "events.jsonl") if one["id"] == event_id)


def changed(folder: Path, event_id: str, **fields: Any) -> None:
    """Change an event on disk."""
    path = folder / "events.jsonl"
    events = [json.loads(line) for line in path.read_text().splitlines()]
    assert any(event["id"] == event_id for event in events)
    made = [{**event, **fields} if event["id"] == event_id else event for event in events]
    path.write_text("".join(json.dumps(event) + "\n" for event in made))


def changed_result(folder: Path, **fields: Any) -> None:
    path = folder / "result.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **fields}))


def only(found: Replayed) -> str:
    (line,) = found.differences
    return line
