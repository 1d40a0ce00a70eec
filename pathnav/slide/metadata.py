"""What a slide's metadata and its user say: format, scale with provenance, scanned area, and what is odd about them."""

from collections.abc import Mapping
from dataclasses import dataclass

from pathnav.geometry import Box
from pathnav.slide.properties import Properties, number
from pathnav.slide.scale import SCALE_OPTIONS, MppSource, check_user_scale, find_scale

__all__ = ["SCALE_OPTIONS", "MppSource", "SlideMetadata", "read_metadata"]


@dataclass(frozen=True, slots=True)
class SlideMetadata:
    """What is known about a slide without its pixels.

    Args:
        format: The vendor's format, as OpenSlide names it (`aperio`, `mirax`, ...), or `ome-tiff`, `generic-tiff`.
        mpp_um: Micrometres per level-0 pixel (x, y); None if unknown.
        mpp_source: Where it came from; None if unknown.
        objective_power: As given by the user, else as stated in the file; None if neither.
        bounds: The scanned area in level-0 pixels: whole pixels, inside the plane.
        warnings: One sentence each, in a fixed order.
        is_phantom: Whether the file says that it is a pathnav phantom.
    """

    format: str
    mpp_um: tuple[float, float] | None
    mpp_source: MppSource | None
    objective_power: float | None
    bounds: Box
    warnings: tuple[str, ...]
    is_phantom: bool


def read_metadata(
    path: str,
    properties: Mapping[str, str],
    width: int,
    height: int,
    *,
    mpp: float | None,
    objective_power: float | None,
) -> SlideMetadata:
    """Return what is known about a slide.

    Args:
        path: The slide, for messages.
        properties: The reader's properties, of OpenSlide or TiffSlide; None and blank values count as absent.
        width: Plane width in level-0 pixels.
        height: Plane height.
        mpp: The user's micrometres per pixel: win over the file's.
        objective_power: The user's objective power: counts where the file states no micrometres per pixel.

    Raises:
        SlideError: If a value of the user's is out of range.
    """
    check_user_scale(path, mpp, objective_power)
    known = Properties(properties)
    scale = find_scale(known, width, height, mpp, objective_power)
    bounds, warnings = _bounds(known, Box(0, 0, width, height))
    return SlideMetadata(
        format=known.format,
        mpp_um=scale.mpp_um,
        mpp_source=scale.source,
        objective_power=scale.objective_power,
        bounds=bounds,
        warnings=scale.warnings + warnings,
        is_phantom=known.is_phantom,
    )


def _bounds(properties: Properties, plane: Box) -> tuple[Box, tuple[str, ...]]:
    """Return the scanned area and the warnings about it; the whole plane where the file states none that is usable."""
    texts = [properties.common(f"bounds-{side}") for side in ("x", "y", "width", "height")]
    if all(text is None for text in texts):
        return plane, ()
    numbers = [number(text) for text in texts]
    known = [value for value in numbers if value is not None]
    if len(known) < 4 or min(known[2:]) <= 0:
        return plane, (
            f"the scanned area stated in the file, {texts}, is not usable; the whole plane counts as scanned",
        )
    scanned = Box.from_list(known).rounded_out().intersection(plane)
    if scanned.is_empty:
        return plane, (f"the scanned area stated in the file, {known}, lies outside the plane, which counts instead",)
    if scanned == plane:
        return plane, ()
    return scanned, (
        f"the scanned area {scanned.as_list()} is smaller than the plane of {plane.width:g} x {plane.height:g} pixels; "
        "coordinates are those of the plane",
    )
