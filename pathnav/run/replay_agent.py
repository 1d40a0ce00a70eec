"""The agent of a record, found again from what the record says of it."""

import ast
from pathlib import Path

from pathnav.errors import RecordError
from pathnav.model import ChatSettings
from pathnav.plugins import Kind, load, names
from pathnav.run.agent_choice import AgentChoice
from pathnav.run.replay_record import EpisodeRecord


def recorded_agent(record: EpisodeRecord, model: ChatSettings | None = None) -> AgentChoice:
    """Return the agent of an episode with its recorded options.

    Args:
        record: The episode.
        model: How its model is asked; None for an agent without one.

    Raises:
        PluginError: If there is no such agent any more.
        RecordError: If the record does not tell which class it was.
    """
    plugin = load(Kind.AGENT, _specification(record))
    return AgentChoice(plugin, dict(record.result.get("settings") or {}), model)


def _specification(record: EpisodeRecord) -> str:
    name, origin = str(record.field("agent")), str(record.result.get("origin") or "")
    if origin.endswith(".py"):
        return f"{origin}:{_class_of(Path(origin), name)}"
    is_installed = name in names(Kind.AGENT) and (" " in origin or not origin)
    return name if is_installed else f"{origin}:{name}"


def _class_of(path: Path, name: str) -> str:
    """Return which class of a file calls itself so; one that says no name is known by its own.

    Raises:
        RecordError: If the file cannot be read.
    """
    try:
        tree = ast.parse(path.read_bytes())
    except (OSError, SyntaxError, ValueError) as error:
        raise RecordError(f"the agent's file {path} cannot be read, without which it cannot be replayed") from error
    classes = [node for node in tree.body if isinstance(node, ast.ClassDef)]
    return next((node.name for node in classes if _says(node, name)), name)


def _says(node: ast.ClassDef, name: str) -> bool:
    """Return whether a class has the line `name = NAME`."""
    lines = [part for part in node.body if isinstance(part, ast.Assign | ast.AnnAssign)]
    for line in lines:
        targets = line.targets if isinstance(line, ast.Assign) else [line.target]
        is_name = any(isinstance(target, ast.Name) and target.id == "name" for target in targets)
        if is_name and isinstance(line.value, ast.Constant) and line.value.value == name:
            return True
    return False
