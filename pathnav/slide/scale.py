"""How many micrometres a level-0 pixel spans: the first usable source decides, and nothing is guessed.

In order: the user's `--mpp`, the scanner's metadata, OME-XML, TIFF resolution tags, the objective power. What is passed
over, contradicted or missing becomes a warning.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from pathnav.errors import SlideError
from pathnav.slide.metadata import GENERIC, OmeScale, Properties, number, read_ome

MPP_RANGE_UM = (0.05, 20.0)  # a 100x oil scan has 0.05-0.1; the 72 dpi of a careless TIFF writer would be 352.8
MAGNIFICATIONS = (2.5, 10.0, 40.0)  # of a diagnostic tree, root to leaf (docs/protocol.md, section 1)
UM_AT_1X = 10.0  # magnification m means 10 / m um per pixel (docs/protocol.md, section 1)
POWER_RANGE = (UM_AT_1X / MPP_RANGE_UM[1], UM_AT_1X / MPP_RANGE_UM[0])
USER_TOLERANCE = 0.20
POWER_TOLERANCE = 0.25  # scanners at 40x have 0.22-0.28 um; a camera adapter or a wrong entry lies beyond
SQUARE_TOLERANCE = 0.01

SCALE_OPTIONS = "--mpp (micrometres per pixel) or --objective-power (such as 20 or 40)"

_UM_PER_UNIT = {"inch": 25_400.0, "centimeter": 10_000.0}

Pair = tuple[float, float]


class MppSource(StrEnum):
    """Where a slide's micrometres per pixel came from; a power given by the user is `objective-power`."""

    VENDOR = "vendor"
    OME_XML = "ome-xml"
    TIFF_TAG = "tiff-tag"
    OBJECTIVE_POWER = "objective-power"
    USER = "user"


@dataclass(frozen=True, slots=True)
class Scale:
    """A slide's scale.

    Args:
        mpp_um: Micrometres per level-0 pixel (x, y); None if unknown.
        source: Where it came from; None if unknown.
        objective_power: As given by the user, else as stated in the file; None if neither.
        warnings: One sentence each.
    """

    mpp_um: Pair | None
    source: MppSource | None
    objective_power: float | None
    warnings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Statement:
    """A scale as a source states it, before it is checked."""

    source: MppSource
    x: str | None
    y: str | None
    name: str


def check_user_scale(path: str, mpp: float | None, objective_power: float | None) -> None:
    """Check the user's micrometres per pixel and objective power for a slide.

    Raises:
        SlideError: If one is out of range or not a number.
    """
    _check_range("--mpp", mpp, MPP_RANGE_UM, f"the micrometres per pixel of {path}, such as 0.25 for a 40x scan")
    _check_range("--objective-power", objective_power, POWER_RANGE, f"the scanning power of {path}, such as 20 or 40")


def find_scale(
    properties: Properties, width: int, height: int, mpp: float | None = None, objective_power: float | None = None
) -> Scale:
    """Return the scale of a slide.

    Args:
        properties: What the reader found.
        width: Plane width in level-0 pixels; picks the image in OME-XML.
        height: Plane height.
        mpp: The user's micrometres per pixel: wins over the file's.
        objective_power: The user's objective power: counts where the file states no micrometres per pixel.
    """
    warnings: list[str] = []
    ome = _ome(properties, width, height, warnings)
    stated = _stated(properties, ome, warnings)
    power = _power(properties, ome, objective_power, warnings)
    found: Pair | None = None
    source: MppSource | None = None
    if mpp is not None:
        found, source = (mpp, mpp), MppSource.USER
        _warn_if_user_differs(mpp, stated, warnings)
    elif stated is not None:
        found, source = stated
    elif power is not None:
        found, source = (UM_AT_1X / power,) * 2, MppSource.OBJECTIVE_POWER
        whose = "given" if objective_power is not None else "in the file"
        warnings.append(
            f"the file states no usable mpp, so {found[0]:.4g} um per pixel is taken "
            f"from the objective power {whose}, {power:g}"
        )
    else:
        warnings.append(
            f"the file states no usable mpp and no objective power, so its scale is unknown; give {SCALE_OPTIONS}"
        )
    if found is not None and source is not MppSource.OBJECTIVE_POWER:
        _warn_if_power_differs(found, power, warnings)
        _warn_if_not_square(found, warnings)
    return Scale(found, source, power, tuple(warnings))


def _check_range(option: str, value: float | None, allowed: Pair, example: str) -> None:
    if value is not None and not allowed[0] <= value <= allowed[1]:
        raise SlideError(f"{option} must be in [{allowed[0]:g}, {allowed[1]:g}], got {value:g}; give {example}")


def _ome(properties: Properties, width: int, height: int, warnings: list[str]) -> OmeScale:
    try:
        if properties.is_ome:
            return read_ome(properties.description, width, height)
    except ValueError as error:
        warnings.append(f"{error}, so it is ignored")
    return OmeScale(None, None, None)


def _stated(properties: Properties, ome: OmeScale, warnings: list[str]) -> tuple[Pair, MppSource] | None:
    """Return the first usable scale in the file; an unusable one on the way there becomes a warning."""
    for statement in _statements(properties, ome):
        found = _usable(statement, warnings)
        if found is not None:
            return found, statement.source
    return None


def _statements(properties: Properties, ome: OmeScale) -> Iterator[_Statement]:
    vendor = properties.vendor
    if vendor != GENERIC:
        x, y = properties.common("mpp-x"), properties.common("mpp-y")
        yield _Statement(MppSource.VENDOR, x, y, f"the {vendor} metadata")
    yield _Statement(MppSource.OME_XML, ome.mpp_x, ome.mpp_y, "the OME-XML")
    um = _UM_PER_UNIT.get((properties.text("tiff.ResolutionUnit") or "").lower())
    if um is not None:
        x, y = (_from_resolution(properties.text(f"tiff.{axis}Resolution"), um) for axis in "XY")
        yield _Statement(MppSource.TIFF_TAG, x, y, "the TIFF resolution tags")


def _from_resolution(text: str | None, um_per_unit: float) -> str | None:
    """Return micrometres per pixel for a resolution in pixels per unit; zero means that it was not set."""
    resolution = number(text)
    return f"{um_per_unit / resolution:.12g}" if resolution else None


def _usable(statement: _Statement, warnings: list[str]) -> Pair | None:
    texts = [text for text in (statement.x, statement.y) if text is not None]
    if not texts:
        return None
    low, high = MPP_RANGE_UM
    found = [value for value in map(number, texts) if value is not None and low <= value <= high]
    if len(found) < len(texts):
        said = " and ".join(dict.fromkeys(_short(text) for text in texts))
        warnings.append(
            f"{statement.name} state {said} um per pixel, which is not in [{low:g}, {high:g}], and are ignored"
        )
        return None
    if len(found) == 1:
        axis = "x" if statement.x is not None else "y"
        warnings.append(
            f"{statement.name} state the mpp along {axis} only, {found[0]:.4g}, which is used for both axes"
        )
    return found[0], found[-1]


def _short(text: str) -> str:
    value = number(text)
    return repr(text[:40]) if value is None else f"{value:.4g}"


def _power(properties: Properties, ome: OmeScale, given: float | None, warnings: list[str]) -> float | None:
    """Return the user's objective power, else the file's."""
    text = properties.common("objective-power") or ome.objective_power
    stated = number(text)
    if text is not None and (stated is None or not POWER_RANGE[0] <= stated <= POWER_RANGE[1]):
        warnings.append(
            f"the file states the objective power {text[:40]!r}, which is no power of a microscope, and is ignored"
        )
        stated = None
    if given is not None and stated is not None and _ratio(given, stated) > 1 + USER_TOLERANCE:
        warnings.append(f"the objective power given, {given:g}, differs from the file's, {stated:g}")
    return stated if given is None else given


def _ratio(first: float, second: float) -> float:
    return max(first / second, second / first)


def _warn_if_user_differs(mpp: float, stated: tuple[Pair, MppSource] | None, warnings: list[str]) -> None:
    if stated is None:
        return
    (x, y), source = stated
    if max(abs(mpp / x - 1), abs(mpp / y - 1)) > USER_TOLERANCE:
        warnings.append(
            f"--mpp {mpp:g} differs by more than {USER_TOLERANCE:.0%} from the {_both(x, y)} um "
            f"that the file states ({source}); --mpp decides"
        )


def _warn_if_power_differs(mpp: Pair, power: float | None, warnings: list[str]) -> None:
    mean = math.sqrt(mpp[0] * mpp[1])
    if power is not None and _ratio(mean, UM_AT_1X / power) > 1 + POWER_TOLERANCE:
        warnings.append(
            f"the objective power {power:g} would mean {UM_AT_1X / power:.4g} um per pixel, but the mpp is {mean:.4g}; "
            "the mpp decides"
        )


def _warn_if_not_square(mpp: Pair, warnings: list[str]) -> None:
    if _ratio(*mpp) > 1 + SQUARE_TOLERANCE:
        warnings.append(
            f"pixels are not square: {mpp[0]:.4g} um along x, {mpp[1]:.4g} um along y; each axis keeps its own"
        )


def _both(x: float, y: float) -> str:
    return f"{x:.4g}" if x == y else f"{x:.4g} x {y:.4g}"
