"""Where the tumour of a slide is, as its annotation says: read, checked against the slide, laid over its tiles."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pathnav.cohort.annotations import Annotation, load_annotation, overlap_fractions, warnings_on_slide
from pathnav.errors import AnnotationError
from pathnav.geometry import Floats

if TYPE_CHECKING:
    from pathnav.explore import TileTree
    from pathnav.slide import Slide


@dataclass(frozen=True, slots=True)
class TruthSource:
    """Where to read it.

    Args:
        annotation: The annotation file; None for a slide without one.
        classes: The classes of the file that are tumour.
        relative_to_bounds: Whether the file's coordinates count from the corner of the scanned area.
        tumour_free: Whether the user says that the slide has no tumour, so that there is no file.
    """

    annotation: str | None = None
    classes: tuple[str, ...] = ()
    relative_to_bounds: bool = False
    tumour_free: bool = False

    def read(self, slide: "Slide", notify: Callable[[str], None] = lambda line: None) -> "Truth | None":
        """Return the truth about an open slide, None where nobody knows.

        Args:
            slide: The open slide.
            notify: Is told, in one line, what is odd about the annotation.

        Raises:
            AnnotationError: If the file cannot be used, or cannot be this slide's.
        """
        if self.annotation is None:
            return Truth(self, None, None) if self.tumour_free else None
        bounds = slide.bounds
        offset = (bounds.x, bounds.y) if self.relative_to_bounds else (0.0, 0.0)
        found = load_annotation(self.annotation, classes=self.classes, offset=offset)
        for warning in warnings_on_slide(found, slide):
            notify(f"warning: {warning}")
        return Truth(self, found, _digest(self.annotation))


@dataclass(frozen=True, slots=True)
class Truth:
    """Where the tumour of a slide is.

    Args:
        source: Where it was read.
        annotation: The tumour; None where the user says that there is none.
        sha256: Of the annotation file's bytes; None without a file.
    """

    source: TruthSource
    annotation: Annotation | None
    sha256: str | None

    def key_fields(self) -> dict[str, Any]:
        """Return all of it that can change a result; not where the file lies."""
        return {
            "annotation": self.sha256,
            "classes": list(self.annotation.chosen) if self.annotation else [],
            "relative_to_bounds": self.source.relative_to_bounds,
        }

    def as_json(self) -> dict[str, Any]:
        """Return what a record says about it: areas in square level-0 pixels."""
        found = self.annotation
        return {
            "path": str(Path(self.source.annotation).absolute()) if self.source.annotation else None,
            "sha256": self.sha256,
            "file_format": str(found.file_format) if found else None,
            "classes": list(found.chosen) if found else [],
            "relative_to_bounds": self.source.relative_to_bounds,
            "area_px2": found.area_px2 if found else 0.0,
            "repaired": found.repaired if found else 0,
            "dropped": found.dropped if found else 0,
        }

    def overlaps(self, tree: "TileTree") -> tuple[Floats, ...]:
        """Return per level the share of each tile that is tumour: float64, shape (count,)."""
        if self.annotation is None:
            return tuple(np.zeros(tree.count(level)) for level in range(tree.levels))
        return tuple(overlap_fractions(self.annotation, tree.grid(level)) for level in range(tree.levels))


def _digest(path: str) -> str:
    try:
        return hashlib.sha256(Path(path).read_bytes()).hexdigest()
    except OSError as error:
        raise AnnotationError(f"{path}: cannot be read: {error.strerror or error}") from error
