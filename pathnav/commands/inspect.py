"""`pathnav inspect`: what a slide is, and what is odd about it."""

from typing import TYPE_CHECKING, Any

import typer

from pathnav.commands.console import emit, emit_json
from pathnav.commands.options import Json, Mpp, ObjectivePower, Reader, SlideArgument, slide_source

if TYPE_CHECKING:
    from pathnav.slide import Slide

INSPECT_FORMAT = "pathnav-inspect-1"


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
        facts = slide_facts(opened)
    if as_json:
        emit_json(facts)
    else:
        for line in _lines(facts):
            emit(line)


def slide_facts(slide: "Slide") -> dict[str, Any]:
    """Return what can be told about an open slide as plain JSON; unknown is None."""
    tissue = _tissue(slide)
    return {
        "format": INSPECT_FORMAT,
        "path": slide.path,
        "slide_format": slide.format,
        "reader": slide.reader,
        "width": slide.width,
        "height": slide.height,
        "bounds": slide.bounds.as_list(),
        "levels": [
            {"width": width, "height": height, "downsample": [round(factor, 4) for factor in downsample]}
            for (width, height), downsample in zip(slide.level_dimensions, slide.level_downsamples, strict=True)
        ],
        "mpp_um": list(slide.mpp_um) if slide.has_mpp else None,
        "mpp_source": str(slide.mpp_source) if slide.mpp_source else None,
        "objective_power": slide.objective_power,
        "native_magnification": round(slide.native_magnification, 4) if slide.has_mpp else None,
        "magnifications": _magnifications(slide),
        "tissue_status": tissue["status"],
        "tissue_share": tissue["share"],
        "failed_share": tissue["failed_share"],
        "phantom": slide.is_phantom,
        "fingerprint": slide.fingerprint,
        "warnings": [*slide.warnings, *tissue["warnings"]],
    }


def _tissue(slide: "Slide") -> dict[str, Any]:
    """Return what an overview of the slide shows: how much tissue, and how much of it cannot be read."""
    side_px = 1024
    mask = slide.tissue_mask(max_side_px=side_px)
    failed = slide.reading(slide.bounds, max_side_px=side_px).failed_share
    sentence = f"{failed:.2%} of the slide cannot be decoded and is shown white"
    return {
        "status": str(mask.status),
        "share": round(mask.share, 4),
        "failed_share": round(failed, 6),
        "warnings": [sentence] if failed else [],
    }


def _magnifications(slide: "Slide") -> list[dict[str, Any]]:
    """Return for each magnification of the protocol how much native pixels are enlarged for it: 1 is not at all."""
    from pathnav.cohort.protocol import MAGNIFICATIONS

    if not slide.has_mpp:
        return []
    factors = {magnification: magnification / slide.native_magnification for magnification in MAGNIFICATIONS}
    return [
        {"magnification": magnification, "upsampled": round(factor, 3) if factor > 1.02 else 1.0}
        for magnification, factor in factors.items()
    ]


def _lines(facts: dict[str, Any]) -> list[str]:
    """Return the facts as text."""
    mpp = facts["mpp_um"]
    scale = f"{mpp[0]:.4g} x {mpp[1]:.4g} um per pixel ({facts['mpp_source']})" if mpp else "unknown"
    power = facts["objective_power"]
    shown = [
        f"{one['magnification']:g}x " + (f"enlarged {one['upsampled']:g} times" if one["upsampled"] > 1 else "native")
        for one in facts["magnifications"]
    ]
    x, y, width, height = facts["bounds"]
    told = {
        "slide": facts["path"] + (" (a phantom)" if facts["phantom"] else ""),
        "format": f"{facts['slide_format']}, read with {facts['reader']}",
        "size": f"{facts['width']} x {facts['height']} px",
        "scanned": f"x {x}, y {y}, {width} x {height} px",
        "levels": ", ".join(f"{level['width']} x {level['height']}" for level in facts["levels"]),
        "scale": scale,
        "power": f"{power:g}x" if power else "unknown",
        "shown at": ", ".join(shown) or "unknown: give --mpp or --objective-power",
        "tissue": f"{facts['tissue_share']:.1%} ({facts['tissue_status']})",
        "fingerprint": facts["fingerprint"],
    }
    return [f"{name + ':':<13}{text}" for name, text in told.items()] + [f"warning: {w}" for w in facts["warnings"]]
