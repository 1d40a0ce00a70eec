"""Whether an annotation can be of a slide: what it draws must lie where the slide was scanned."""

from typing import TYPE_CHECKING

import shapely

from pathnav.cohort.annotation import Annotation
from pathnav.errors import AnnotationError
from pathnav.geometry import Box
from pathnav.settings import shown

if TYPE_CHECKING:
    from pathnav.slide import Slide

_TOLERATED_SHARE = 0.001
"""Pens slip over the edge by a few pixels; more than this of what is drawn outside is told."""


def warnings_on_slide(annotation: Annotation, slide: "Slide") -> list[str]:
    """Return what is odd about an annotation on an open slide, one sentence each; the user may still go on.

    Where there is no tumour, what the file says is none is looked at in its place: a file of another slide would make
    all tiles negative.

    Raises:
        AnnotationError: If there is tumour, but none of it in the scanned area.
    """
    has_tumour = not annotation.region.is_empty
    drawn = annotation.region if has_tumour else annotation.excluded
    if drawn.is_empty:
        return []
    scanned = slide.bounds
    area = shapely.box(scanned.x, scanned.y, scanned.right, scanned.bottom)
    outside = 1 - float(shapely.intersection(drawn, area).area) / float(drawn.area)
    extent = shown([round(number) for number in Box.from_corners(*drawn.bounds).as_list()])
    told = f"{'the tumour' if has_tumour else 'what is no tumour'} of {annotation.path}, extent {extent},"
    where = f"the scanned area {shown(scanned.as_list())} of {slide.path}"
    advice = "is it of another slide or scan" + ", or relative to the scanned area" * bool(scanned.x or scanned.y)
    if outside >= 1 and has_tumour:
        raise AnnotationError(f"{told} lies outside {where}: {advice}?")
    if outside > _TOLERATED_SHARE:
        return [f"{outside:.1%} of {told} lies outside {where}: {advice}?"]
    return []
