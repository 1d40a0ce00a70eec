"""Everything that `pathnav inspect` says about a slide, as one JSON object."""

from enum import StrEnum
from typing import TYPE_CHECKING, Any

from pathnav.slide.damage import find_damage
from pathnav.slide.scale import MAGNIFICATIONS, SCALE_OPTIONS

if TYPE_CHECKING:
    from pathnav.slide.slide import Slide
    from pathnav.slide.tissue import TissueMask

FORMAT = "pathnav-inspect-1"
TOLERANCE = 0.02  # of a downsample; 4.003 counts as 4


class Resolution(StrEnum):
    """How a magnification comes about: native pixels, pixels reduced, or native pixels enlarged."""

    NATIVE = "native"
    REDUCED = "reduced"
    UPSAMPLED = "upsampled"


def describe(slide: "Slide") -> dict[str, Any]:
    """Return what is known about a slide: plain JSON types, lengths in level-0 pixels, unknown as None.

    A slide without a scale is described too: `mpp_um` and `magnifications` are None, `scale_options` says what helps.
    It reads an overview of 1,024 px for the tissue, both ends of every tile for damage, and the file's fingerprint.

    Raises:
        SlideError: If the file cannot be read.
    """
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
