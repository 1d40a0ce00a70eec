"""`pathnav inspect`: what a slide is, and what is odd about it."""

from enum import StrEnum
from typing import TYPE_CHECKING, Any

import typer

from pathnav.commands.console import tell
from pathnav.commands.options import Json, Mpp, ObjectivePower, Reader, SlideArgument, slide_source

if TYPE_CHECKING:
    from pathnav.slide import Slide, TissueMask

FORMAT = "pathnav-inspect-1"
TOLERANCE = 0.02  # of a downsample; 4.003 counts as 4


class Resolution(StrEnum):
    """How a magnification comes about: native pixels, pixels reduced, or native pixels enlarged."""

    NATIVE = "native"
    REDUCED = "reduced"
    UPSAMPLED = "upsampled"


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
    with slide_source(slide, mpp, objective_power, reader).open() as opened:
        facts = describe(opened)
    tell(facts, _lines(facts), as_json)


def describe(slide: "Slide") -> dict[str, Any]:
    """Return what is known about a slide: plain JSON types, lengths in level-0 pixels, unknown as None.

    A slide without a scale is described too: `mpp_um` and `magnifications` are None, `scale_options` says what helps.
    It reads an overview of 1,024 px for the tissue, both ends of every tile for damage, and the file's fingerprint.

    Raises:
        SlideError: If the file cannot be read.
    """
    from pathnav.slide.files import find_damage
    from pathnav.slide.scale import MAGNIFICATIONS, SCALE_OPTIONS

    damage = find_damage(slide.path)
    return {
        "format": FORMAT,
        "path": slide.path,
        "vendor_format": slide.format,
        "reader": slide.reader,
        "dimensions": [slide.width, slide.height],
        "bounds": slide.bounds.as_list(),
        "levels": _levels(slide),
        "mpp_um": list(slide.mpp_um) if slide.has_mpp else None,
        "mpp_source": str(slide.mpp_source) if slide.mpp_source else None,
        "scale_options": None if slide.has_mpp else SCALE_OPTIONS,
        "objective_power": slide.objective_power,
        "native_magnification": slide.native_magnification if slide.has_mpp else None,
        "magnifications": [_magnification(slide, wanted) for wanted in MAGNIFICATIONS] if slide.has_mpp else None,
        "tissue": _tissue(slide.tissue_mask()),
        "failed_share": max((found.failed_share for found in damage), default=0.0),
        "warnings": [*slide.warnings, *(found.warning for found in damage)],
        "fingerprint": slide.fingerprint,
        "is_phantom": slide.is_phantom,
    }


def _levels(slide: "Slide") -> list[dict[str, Any]]:
    pairs = zip(slide.level_dimensions, slide.level_downsamples, strict=True)
    return [{"dimensions": list(size), "downsample": list(downsample)} for size, downsample in pairs]


def _magnification(slide: "Slide", wanted: float) -> dict[str, Any]:
    """Return how a magnification comes about; the factor is the larger of the two axes."""
    downsample = max(slide.downsample(wanted))
    enlarged = 1 / min(slide.downsample(wanted))
    if enlarged > 1 + TOLERANCE:
        kind, factor = Resolution.UPSAMPLED, enlarged
    elif downsample > 1 + TOLERANCE:
        kind, factor = Resolution.REDUCED, downsample
    else:
        kind, factor = Resolution.NATIVE, 1.0
    return {"magnification": wanted, "resolution": str(kind), "factor": factor}


def _tissue(mask: "TissueMask") -> dict[str, Any]:
    return {"status": str(mask.status), "share": mask.share if mask.status != "not-brightfield" else None}


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
