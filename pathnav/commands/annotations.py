"""`pathnav annotations`: what an annotation file holds."""

from pathlib import Path
from typing import Annotated, Any

import typer

from pathnav.commands.console import tell
from pathnav.commands.options import Json


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("annotations", short_help="Tell what an annotation file holds.")(annotations)


def annotations(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="GeoJSON (QuPath), ASAP or ImageScope XML, DSA or NCRF JSON.")
    ],
    as_json: Json = False,
) -> None:
    """Tell what an annotation file holds: classes, how many regions of each, their areas, what was repaired.

    The names of the classes are what --tumour-class takes.

    \b
    Example:
      pathnav annotations case.geojson --json
    """
    from pathnav.cohort.annotations import describe_annotation

    facts = describe_annotation(file)
    tell(facts, _lines(facts), as_json)


def _lines(facts: dict[str, Any]) -> list[str]:
    """Return the facts as text."""
    ignored = ", ".join(f"{count} {kind}" for kind, count in facts["ignored"].items())
    x, y, width, height = map(round, facts["extent"] or (0, 0, 0, 0))
    rows = [(row, "") for row in facts["classes"]] + [(row, "  (excluded)") for row in facts["exclusions"]]
    empty = "nothing has an area" if rows else "holds no kept tiles: written by a search that kept none"
    told = {
        "file": f"{facts['path']} ({facts['file_format']})",
        "extent": f"x {x}, y {y}, {width} x {height} px" if facts["extent"] else empty,
        "repaired": f"{facts['repaired']} polygons that were invalid",
        "dropped": f"{facts['dropped']} polygons or holes without an area",
        "ignored": ignored or "nothing",
    }
    wide = max([len("class"), *(len(row["name"]) for row, _ in rows)])
    return [
        *(f"{name + ':':<11}{text}" for name, text in told.items()),
        f"{'class':<{wide}}  {'count':>7}  {'area in px2':>18}",
        *(f"{row['name']:<{wide}}  {row['count']:>7,}  {row['area_px2']:>18,.0f}{mark}" for row, mark in rows),
    ]
