"""CAMELYON16 annotations in the JSON of NCRF: what is tumour, and what inside or beside it is not."""

from typing import Any

from pathnav.cohort.annotation_drawing import AnnotationFormat, Drawing, Drawings, Role, ring
from pathnav.errors import AnnotationError
from pathnav.settings import shown

POSITIVE, NEGATIVE = "positive", "negative"


def is_ncrf(document: Any) -> bool:
    """Return whether a JSON document has the two lists of NCRF, or one of them."""
    return isinstance(document, dict) and not {POSITIVE, NEGATIVE}.isdisjoint(document)


def read_ncrf(document: Any) -> Drawings:
    """Read a document for which `is_ncrf` holds: class `positive`, with what is negative excluded.

    The class is there even where its list is empty: so these files say that a slide has no tumour.

    Raises:
        AnnotationError: If a list does not hold objects with vertices.
    """
    drawings: list[Drawing] = []
    for name, role in ((POSITIVE, Role.REGION), (NEGATIVE, Role.EXCLUSION)):
        outlines = document.get(name, [])
        if not isinstance(outlines, list):
            raise AnnotationError(f"{name} must be a list, got {shown(outlines)}")
        for index, outline in enumerate(outlines):
            place = f"{name}.{index}"
            if not isinstance(outline, dict) or not isinstance(outline.get("vertices"), list):
                raise AnnotationError(f"{place} must be an object with a list of vertices, got {shown(outline)}")
            drawings.append(Drawing(name, ((ring(outline["vertices"], f"{place}.vertices"),),), role))
    return Drawings(AnnotationFormat.NCRF, tuple(drawings), {}, declared=(POSITIVE,))
