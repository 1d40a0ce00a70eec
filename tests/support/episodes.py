"""Ask for one node of the bench's tree, and read what the record says of it."""

import json
from pathlib import Path
from typing import Any

from pathnav.model import ChatSettings
from pathnav.records import read_events
from pathnav.run.request import locate
from support.chat_server import ChatServer
from support.commands import Bench


def ask(bench: Bench, agent: str | type, **changes: Any) -> dict[str, Any]:
    """Ask for node a1 and return what `result.json` says."""
    out = bench.folder / "out"
    question = {"tree": bench.tree, "query_id": "a1", **changes.pop("question", {})}
    locate(bench.slide, agent=agent, out=out, **question, **changes)
    return stored(out)


def stored(out: Path) -> dict[str, Any]:
    """Return the one result of a run folder."""
    (path,) = (out / "episodes").glob("*/result.json")
    found: dict[str, Any] = json.loads(path.read_text())
    return found


def events(out: Path) -> list[dict[str, Any]]:
    """Return the events of the one episode of a run folder."""
    (path,) = (out / "episodes").glob("*/events.jsonl")
    return read_events(path)


def endpoint(server: ChatServer) -> ChatSettings:
    """Return how a canned server is asked."""
    return ChatSettings(base_url=server.base_url, model="canned")
