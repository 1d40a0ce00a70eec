"""`pathnav agents`: what can be run, and where it comes from."""

from typing import Any

import typer

from pathnav.commands.console import emit, emit_json
from pathnav.commands.options import Json
from pathnav.errors import PluginError
from pathnav.plugins import Kind, load, names


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("agents", short_help="List the installed agents.")(agents)


def agents(as_json: Json = False) -> None:
    """List the installed agents and where each comes from.

    An agent of your own needs no installation: --agent path/to/file.py:Class.
    """
    rows = [agent_facts(name) for name in names(Kind.AGENT)]
    if as_json:
        emit_json({"format": "pathnav-agents-1", "agents": rows})
        return
    wide = max((len(row["name"]) for row in rows), default=0)
    for row in rows:
        marks = " (unbudgeted)" * bool(row["unbudgeted"]) + " (needs a chat endpoint)" * bool(row["uses_model"])
        what = row["error"] or f"{row['summary']}{marks}"
        emit(f"{row['name']:<{wide}}  {what}  [{row['origin']}]" if row["origin"] else f"{row['name']:<{wide}}  {what}")


def agent_facts(name: str) -> dict[str, Any]:
    """Return what can be told about an installed agent: `error` says why, where it cannot be loaded."""
    facts: dict[str, Any] = dict.fromkeys(("version", "unbudgeted", "uses_model", "summary", "origin", "error"))
    try:
        plugin = load(Kind.AGENT, name)
    except PluginError as error:
        return {"name": name, **facts, "error": str(error)}
    return {
        "name": name,
        "version": str(getattr(plugin.cls, "version", "0")),
        "unbudgeted": bool(getattr(plugin.cls, "unbudgeted", False)),
        "uses_model": bool(getattr(plugin.cls, "uses_model", False)),
        "summary": (plugin.cls.__doc__ or "").strip().partition("\n")[0].rstrip("."),
        "origin": plugin.origin,
        "error": None,
    }
