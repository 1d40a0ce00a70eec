"""Pixels: open a slide, read any box at any magnification, find tissue.

with open_slide("slide.svs") as slide:
    rgb = slide.read(Box(1000, 2000, 4096, 4096), magnification=10)
"""

from pathnav.slide.pixels import encode_jpeg
from pathnav.slide.scale import MppSource
from pathnav.slide.slide import Reading, Slide, open_slide
from pathnav.slide.tissue import TissueMask, TissueStatus

__all__ = ["MppSource", "Reading", "Slide", "TissueMask", "TissueStatus", "encode_jpeg", "open_slide"]
