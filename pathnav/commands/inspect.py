"""`pathnav inspect`: what a slide is, and what is odd about it."""

from typing import Any

import typer

from pathnav.commands.console import tell
from pathnav.commands.options import Json, Mpp, ObjectivePower, Reader, SlideArgument, slide_source


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("inspect", short_help="Tell what a slide is and what is odd about it.")(inspect)


def inspect(
    slide: SlideArgument,
    mpp: Mpp = None,
    objective_power: ObjectivePower = None,
    reader: Reader = None,
    as_json: Json = False,
) -> None:
    """Tell what a slide is: format, size, levels, scale and where it comes from, tissue, warnings.

    \b
    Example:
      pathnav inspect slide.svs --json
    """
    from pathnav.slide.describe import describe

    with slide_source(slide, mpp, objective_power, reader).open() as opened:
        facts = describe(opened)
    tell(facts, _lines(facts), as_json)


def _lines(facts: dict[str, Any]) -> list[str]:
    """Return the facts as text."""
    mpp, power, tissue = facts["mpp_um"], facts["objective_power"], facts["tissue"]
    x, y, width, height = facts["bounds"]
    told = {
        "slide": facts["path"] + (" (a phantom)" if facts["is_phantom"] else ""),
        "format": f"{facts['vendor_format']}, read with {facts['reader']}",
        "size": f"{_across(facts['dimensions'])} px",
        "scanned": f"x {x}, y {y}, {width} x {height} px",
        "levels": ", ".join(_across(level["dimensions"]) for level in facts["levels"]),
        "scale": f"{mpp[0]:.4g} x {mpp[1]:.4g} um per pixel ({facts['mpp_source']})" if mpp else "unknown",
        "power": f"{power:g}x" if power else "unknown",
        "shown at": _shown_at(facts),
        "tissue": tissue["status"] if tissue["share"] is None else f"{tissue['share']:.1%} ({tissue['status']})",
        "fingerprint": facts["fingerprint"],
    }
    return [f"{name + ':':<13}{text}" for name, text in told.items()] + [f"warning: {w}" for w in facts["warnings"]]


def _across(dimensions: list[int]) -> str:
    return f"{dimensions[0]} x {dimensions[1]}"


def _shown_at(facts: dict[str, Any]) -> str:
    """Return how each magnification of the protocol comes about."""
    if facts["magnifications"] is None:
        return f"unknown: give {facts['scale_options']}"
    shown = []
    for one in facts["magnifications"]:
        times = "" if one["resolution"] == "native" else f" {one['factor']:.3g} times"
        shown.append(f"{one['magnification']:g}x {one['resolution']}{times}")
    return ", ".join(shown)
