"""Pixels: open a slide, read any box at any magnification, find tissue.

with open_slide("slide.svs") as slide:
    rgb = slide.read(Box(1000, 2000, 4096, 4096), magnification=10)
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathnav.slide.metadata import MppSource
    from pathnav.slide.open import open_slide
    from pathnav.slide.slide import Reading, Slide
    from pathnav.slide.tissue import TissueMask, TissueStatus

__all__ = ["MppSource", "Reading", "Slide", "TissueMask", "TissueStatus", "open_slide"]

_HOMES = {
    "MppSource": "metadata",
    "Reading": "slide",
    "Slide": "slide",
    "TissueMask": "tissue",
    "TissueStatus": "tissue",
    "open_slide": "open",
}


def __getattr__(name: str) -> Any:
    """Import an exported name when it is first used: numpy and the slide libraries take 0.8 s together."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = found
    return found
