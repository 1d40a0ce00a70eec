"""Whether an annotation can be of a slide: what of its tumour lies where the slide was scanned."""

from typing import TYPE_CHECKING

import shapely

from pathnav.cohort.annotation import Annotation
from pathnav.cohort.complaints import shown
from pathnav.errors import AnnotationError
from pathnav.geometry import Box

if TYPE_CHECKING:
    from pathnav.slide import Slide

_TOLERATED_SHARE = 0.001
"""Pens slip over the edge by a few pixels; more than this of the tumour outside is told."""


def warnings_on_slide(annotation: Annotation, slide: "Slide") -> list[str]:
    """Return what is odd about an annotation on an open slide, one sentence each; the user may still go on.

    Raises:
        AnnotationError: If there is tumour, but none of it in the scanned area.
    """
    if annotation.region.is_empty:
        return []
    scanned = slide.bounds
    area = shapely.box(scanned.x, scanned.y, scanned.right, scanned.bottom)
    outside = 1 - float(shapely.intersection(annotation.region, area).area) / annotation.area_px2
    extent = shown([round(number) for number in Box.from_corners(*annotation.region.bounds).as_list()])
    told = f"the tumour of {annotation.path}, extent {extent},"
    where = f"the scanned area {shown(scanned.as_list())} of {slide.path}"
    advice = "is it of another slide or scan" + ", or relative to the scanned area" * bool(scanned.x or scanned.y)
    if outside >= 1:
        raise AnnotationError(f"{told} lies outside {where}: {advice}?")
    if outside > _TOLERATED_SHARE:
        return [f"{outside:.1%} of {told} lies outside {where}: {advice}?"]
    return []
