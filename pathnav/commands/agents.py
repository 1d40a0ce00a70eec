"""`pathnav agents` and `pathnav scorers`: what can be run, and where it comes from."""

from typing import Any

import typer

from pathnav.commands.console import emit, emit_json, json_alone
from pathnav.commands.options import Json
from pathnav.errors import PluginError
from pathnav.plugins import Kind, load, names


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command("agents", short_help="List the installed agents.")(json_alone(agents))
    app.command("scorers", short_help="List the installed scorers.")(json_alone(scorers))


def agents(as_json: Json = False) -> None:
    """List the installed agents and where each comes from.

    An agent of your own needs no installation: --agent path/to/file.py:Class.
    """
    _list(Kind.AGENT, as_json)


def scorers(as_json: Json = False) -> None:
    """List the installed scorers and where each comes from.

    A scorer of your own needs no installation: --scorer path/to/file.py:Class.
    """
    _list(Kind.SCORER, as_json)


def _list(kind: Kind, as_json: bool) -> None:
    rows = [plugin_facts(kind, name) for name in names(kind)]
    if as_json:
        emit_json({"format": f"pathnav-{kind}s-1", f"{kind}s": rows})
        return
    wide = max((len(row["name"]) for row in rows), default=0)
    for row in rows:
        marks = " (unbudgeted)" * bool(row.get("unbudgeted")) + " (needs a chat endpoint)" * bool(row["uses_model"])
        what = row["error"] or f"{row['summary']}{marks}"
        emit(f"{row['name']:<{wide}}  {what}  [{row['origin']}]" if row["origin"] else f"{row['name']:<{wide}}  {what}")


def plugin_facts(kind: Kind, name: str) -> dict[str, Any]:
    """Return what can be told about an installed plug-in: `error` says why, where it cannot be loaded."""
    marks = ("unbudgeted", "uses_model") if kind is Kind.AGENT else ("uses_model",)
    facts: dict[str, Any] = dict.fromkeys(("version", *marks, "summary", "origin", "error"))
    try:
        plugin = load(kind, name)
    except PluginError as error:
        return {"name": name, **facts, "error": str(error)}
    return {
        "name": name,
        **facts,
        "version": str(getattr(plugin.cls, "version", "0")),
        **{mark: bool(getattr(plugin.cls, mark, False)) for mark in marks},
        "summary": (plugin.cls.__doc__ or "").strip().partition("\n")[0].rstrip("."),
        "origin": plugin.origin,
    }
