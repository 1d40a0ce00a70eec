"""What a slide's file says about itself: a reader's properties under one name each, and OME-XML, which none reads."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from xml.etree import ElementTree

from pathnav.geometry import Box

PHANTOM_MARK = "pathnav phantom"  # the phantom generator writes it into the ImageDescription
GENERIC = "generic-tiff"

# Micrometres per unit; "pixel" and "reference frame" state no length.
_UM_PER_UNIT = {"m": 1e6, "cm": 1e4, "mm": 1e3, "µm": 1.0, "μm": 1.0, "um": 1.0, "nm": 1e-3, "pm": 1e-6, "Å": 1e-4}
_DEFAULT_UNIT = "µm"  # of the OME schema


class Properties:
    """The properties of an OpenSlide or a TiffSlide; those that are None or blank count as absent."""

    def __init__(self, raw: Mapping[str, str]) -> None:
        self._raw = raw
        self.description = self.text("tiff.ImageDescription") or self.common("comment") or ""
        self.vendor = self.common("vendor") or GENERIC
        self.is_ome = self.vendor == GENERIC and is_ome(self.description)
        self.is_phantom = PHANTOM_MARK in self.description

    @property
    def format(self) -> str:
        """The vendor's format as OpenSlide names it, or `ome-tiff`, which neither reader tells from a plain TIFF."""
        return "ome-tiff" if self.is_ome else self.vendor

    def text(self, name: str) -> str | None:
        """Return a property without surrounding blanks."""
        found = self._raw.get(name)
        return (str(found).strip() or None) if found is not None else None

    def common(self, name: str) -> str | None:
        """Return a property that OpenSlide and TiffSlide share, such as `mpp-x`."""
        return self.text(f"openslide.{name}") or self.text(f"tiffslide.{name}")

    def scanned(self, plane: Box) -> tuple[Box, tuple[str, ...]]:
        """Return the scanned area and the warnings about it; the whole plane where the file states none usable."""
        texts = [self.common(f"bounds-{side}") for side in ("x", "y", "width", "height")]
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
            warning = f"the scanned area stated in the file, {known}, lies outside the plane, which counts instead"
            return plane, (warning,)
        if scanned == plane:
            return plane, ()
        return scanned, (
            f"the scanned area {scanned.as_list()} is smaller than the plane of "
            f"{plane.width:g} x {plane.height:g} pixels; coordinates are those of the plane",
        )


def number(text: str | None) -> float | None:
    """Return a finite number written with a decimal point or a decimal comma; None for anything else."""
    if text is None:
        return None
    try:
        found = float(text.replace(",", ".") if text.count(",") == 1 and "." not in text else text)
    except ValueError:
        return None
    return found if math.isfinite(found) else None


@dataclass(frozen=True, slots=True)
class OmeScale:
    """What OME-XML says about the level-0 image; None where it says nothing.

    Args:
        mpp_x: Micrometres per pixel along x, as text.
        mpp_y: Micrometres per pixel along y, as text.
        objective_power: The nominal magnification, as text, where all objectives of the file agree.
    """

    mpp_x: str | None
    mpp_y: str | None
    objective_power: str | None


def is_ome(description: str) -> bool:
    """Return whether an ImageDescription holds OME-XML."""
    return "<OME" in description[:4096] or "<ome:OME" in description[:4096]


def read_ome(description: str, width: int, height: int) -> OmeScale:
    """Return the scale of the image of the given level-0 size; where none has exactly this size, of the first image.

    Raises:
        ValueError: If the XML cannot be read, has its metadata in another file, or uses a unit that is no length.
    """
    try:
        root = ElementTree.fromstring(description.strip("\0 \r\n\t").encode())
    except ElementTree.ParseError as error:
        raise ValueError(f"its OME-XML cannot be read ({error})") from error
    companion = root.find(".//{*}BinaryOnly")
    if companion is not None:
        raise ValueError(
            f"its OME-XML lies in another file, {companion.get('MetadataFile')}, which pathnav does not read"
        )
    powers = {found.get("NominalMagnification") for found in root.iterfind(".//{*}Objective")}
    power = powers.pop() if len(powers) == 1 else None
    images = root.findall(".//{*}Pixels")
    if not images:
        return OmeScale(None, None, power)
    fitting = [image for image in images if (image.get("SizeX"), image.get("SizeY")) == (str(width), str(height))]
    image = (fitting or images)[0]
    return OmeScale(_length_um(image, "X"), _length_um(image, "Y"), power)


def _length_um(image: ElementTree.Element, axis: str) -> str | None:
    stated = image.get(f"PhysicalSize{axis}")
    unit = image.get(f"PhysicalSize{axis}Unit", _DEFAULT_UNIT)
    if stated is None or unit in ("µm", "μm"):
        return stated
    if unit not in _UM_PER_UNIT:
        raise ValueError(f"its OME-XML gives the pixel size in {unit!r}, which is no length")
    try:
        return f"{float(stated) * _UM_PER_UNIT[unit]:.12g}"
    except ValueError:
        return stated  # whoever parses it says that it is no number
