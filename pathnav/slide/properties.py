"""A reader's properties under names that do not depend on the reader, and numbers as scanners write them."""

import math
from collections.abc import Mapping

from pathnav.slide.ome import is_ome

PHANTOM_MARK = "pathnav phantom"  # the phantom generator writes it into the ImageDescription
GENERIC = "generic-tiff"


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


def number(text: str | None) -> float | None:
    """Return a finite number written with a decimal point or a decimal comma; None for anything else."""
    if text is None:
        return None
    try:
        found = float(text.replace(",", ".") if text.count(",") == 1 and "." not in text else text)
    except ValueError:
        return None
    return found if math.isfinite(found) else None
