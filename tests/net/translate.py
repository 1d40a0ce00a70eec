"""Read what a run left and what a command printed into plain rows: name of the row, then value by field.

There is a reader for the format of the starting commit and one for that of the working tree. They are the same until a
format changes; then the second one alone is edited, so that the same rows come out. A key that says nothing about a
result is left out here, with the reason.
"""

import csv
import io
import json
import sqlite3
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

Rows = dict[str, dict[str, Any]]

NO_RESULT = {
    *("format", "pathnav", "version", "origin", "prices_date", "time", "started"),  # of the program and the day
    *("key", "configuration", "id", "parent", "request_sha256", "prompt_sha256", "truth"),  # hashes of formats
    *(
        "path",
        "file",
        "out",
        "folder",
        "fingerprint",
        "fingerprints",
    ),  # where things lie; slides are named by their stem
    *("seconds", "call_seconds"),
    *("reason", "cost_unknown", "warnings", "notes", "note", "source_note"),  # wording; how many there are is compared
}
COUNTED = ("warnings",)
NAMES = (
    *("source", "combination", "mode", "agent", "scorer", "name", "model", "magnification", "budget", "budgets"),
    *("schedule", "fill_to_k", "tile_px", "min_tissue", "seed", "repeat", "controls", "settings", "decoding"),
    *("reference", "metric", "set", "reader"),
)
"""What names a row among its like; a row that has none of them is named by its place."""


def read_base(folder: Path) -> Rows:
    """Return the rows of a run folder of the starting commit: episodes, searches and scored tiles."""
    rows: Rows = {}
    for file in sorted(folder.glob("episodes/*/result.json")):
        result = json.loads(file.read_text(encoding="utf-8"))
        slide = Path(result["slide"]["path"]).stem
        name = f"{slide} {result.get('query', {}).get('id')} {name_of(result)}"
        events = file.with_name("events.jsonl")
        rows[unused(name, rows)] = {**fields(result), **(_events(events) if events.exists() else {})}
    return {**rows, **(_scores(folder / "scores.sqlite") if (folder / "scores.sqlite").exists() else {})}


def printed_base(command: list[str], text: str) -> Rows:
    """Return the rows of what a command of the starting commit printed: JSON, or CSV."""
    if "csv" not in command:
        return {"": fields(json.loads(text))} if text.strip() else {}
    rows: Rows = {}
    for line in csv.DictReader(io.StringIO(text)):
        if "seconds" not in line["metric"]:
            rows[unused(name_of(line), rows)] = fields(line)
    return rows


def command_new(command: list[str]) -> list[str]:
    """Return a command as the working tree wants it."""
    return command


def scenario_new(scenario: dict[str, Any]) -> dict[str, Any]:
    """Return a scenario as the working tree wants it."""
    return scenario


def read_new(folder: Path) -> Rows:
    """Return the rows of a run folder of the working tree: scores lie in a file for each slide and scorer."""
    rows = read_base(folder)
    for row in rows.values():
        row.pop("scores", None)
    for file in sorted((folder / "scores").glob("*.sqlite")):
        rows |= _scores_of_one(file)
    return rows


def printed_new(command: list[str], text: str) -> Rows:
    """Return the rows of what a command of the working tree printed."""
    return printed_base(command, text)


def fields(value: Any, prefix: str = "") -> dict[str, Any]:
    """Return the leaves of a record by their path; a list of plain values is one leaf, missing is None."""
    if isinstance(value, Mapping):
        found: dict[str, Any] = {f"{prefix}{key}#": len(value[key]) for key in COUNTED if key in value}
        for key, inner in value.items():
            if key not in NO_RESULT:
                found |= fields(inner, f"{prefix}{key}.")
        return found
    if isinstance(value, list) and any(isinstance(item, Mapping) for item in value):
        named: dict[str, Any] = {}
        for item in value:
            named[unused(name_of(item) if isinstance(item, Mapping) else "", named)] = item
        found = {f"{prefix}#": len(value)}
        for name, item in named.items():
            found |= fields(item, f"{prefix}[{name}].")
        return found
    return {prefix.rstrip("."): value}


def name_of(record: Mapping[str, Any]) -> str:
    """Return what tells a record from its neighbours."""
    return " ".join(
        f"{key}={json.dumps(_plain(record[key]))}" for key in NAMES if record.get(key) not in (None, "", {})
    )


def unused(name: str, taken: Mapping[str, Any]) -> str:
    """Return a name that is not taken yet, by a number at its end."""
    number, found = 1, name
    while found in taken:
        number, found = number + 1, f"{name} ({number + 1})"
    return found


def _plain(value: Any) -> Any:
    return {key: inner for key, inner in value.items() if key not in NO_RESULT} if isinstance(value, Mapping) else value


def _events(file: Path) -> dict[str, Any]:
    """Return everything that happened in an episode: each image, box and text, in order."""
    told = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    counts: dict[str, int] = {}
    found: dict[str, Any] = {}
    for event in told:
        counts[event["kind"]] = number = counts.get(event["kind"], 0) + 1
        event.pop("take")
        found |= fields(event, f"{event['kind']} {number}.")
    return found


def _scores(file: Path) -> Rows:
    """Return every scored tile of a store."""
    return dict(_scored_tiles(file))


def _scores_of_one(file: Path) -> Rows:
    """Return every scored tile of a file that holds one scorer's scores of one slide."""
    connection = sqlite3.connect(f"file:{file}?mode=ro", uri=True)
    rows: Rows = {}
    try:
        text, slide = connection.execute("SELECT configuration, fingerprint FROM about").fetchone()
        for magnification, x, y, width, height, *score, detail in connection.execute(
            "SELECT magnification, x, y, width, height, yes, confidence, source, requests, detail FROM scores"
        ):
            named = _tile_name(slide, magnification, [x, y, width, height], json.loads(text))
            kept = dict(zip(("yes", "confidence", "source", "requests"), score, strict=True))
            rows[named] = {**kept, **fields(json.loads(detail) if detail else None, "detail.")}
    finally:
        connection.close()
    return rows


def _tile_name(slide: str, magnification: float, box: list[int], configuration: dict[str, Any]) -> str:
    """Return what names a scored tile; reader and scale were settings of the scorer, and name the file now."""
    settings = {name: value for name, value in configuration["settings"].items() if not name.startswith("slide ")}
    return f"tile {slide[:8]} {magnification:g}x {box} {name_of({**configuration, 'settings': settings})}"


def _scored_tiles(file: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    connection = sqlite3.connect(f"file:{file}?mode=ro", uri=True)
    try:
        scorers = {row: json.loads(text) for row, text in connection.execute("SELECT id, configuration FROM scorers")}
        slides = dict(connection.execute("SELECT id, fingerprint FROM slides"))
        for scorer, slide, magnification, x, y, width, height, *score, detail in connection.execute(
            "SELECT scorer, slide, magnification, x, y, width, height, yes, confidence, source, requests, detail"
            " FROM scores"
        ):
            named = _tile_name(slides[slide], magnification, [x, y, width, height], scorers[scorer])
            kept = dict(zip(("yes", "confidence", "source", "requests"), score, strict=True))
            yield named, {**kept, **fields(json.loads(detail) if detail else None, "detail.")}
    finally:
        connection.close()
