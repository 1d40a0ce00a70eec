"""The pixel size and objective power in an OME-TIFF's XML, which neither OpenSlide nor TiffSlide reads."""

from dataclasses import dataclass
from xml.etree import ElementTree

# Micrometres per unit; "pixel" and "reference frame" state no length.
_UM_PER_UNIT = {"m": 1e6, "cm": 1e4, "mm": 1e3, "µm": 1.0, "μm": 1.0, "um": 1.0, "nm": 1e-3, "pm": 1e-6, "Å": 1e-4}
_DEFAULT_UNIT = "µm"  # of the OME schema


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
