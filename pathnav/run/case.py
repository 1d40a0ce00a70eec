"""A question about a slide, with what is true where somebody knows: what every agent of a run is given alike."""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pathnav.cohort.query import Query, Target
from pathnav.geometry import Box

if TYPE_CHECKING:
    from pathnav.slide import Slide


UPSAMPLING_TOLERANCE = 0.02
"""An mpp of 0.2527 counts as 40x; the same as in `pathnav inspect`."""


@dataclass(frozen=True, slots=True)
class SlideSource:
    """How a slide is opened; the arguments of `open_slide`.

    Args:
        path: File or URL.
        mpp: Micrometres per level-0 pixel, where the user says so.
        objective_power: Objective power, where the user says so.
        reader: `openslide` or `tiffslide`, where the user insists.
    """

    path: str
    mpp: float | None = None
    objective_power: float | None = None
    reader: str | None = None

    @property
    def place(self) -> str:
        """The path as records have it: the same from every folder; a URL as it is."""
        return self.path if "://" in self.path else str(Path(self.path).absolute())

    def open(self) -> "Slide":
        """Return the open slide.

        Raises:
            SlideError: If it cannot be opened.
        """
        from pathnav.slide import open_slide

        return open_slide(self.path, mpp=self.mpp, objective_power=self.objective_power, reader=self.reader)


@dataclass(frozen=True, slots=True)
class SlideFacts:
    """What a record says about a slide, and what of it can change a result.

    Args:
        fingerprint: Stable across copies and paths.
        mpp_um: Micrometres per level-0 pixel, (x, y), as used.
        reader: The library that reads it: two of them decode a JPEG to slightly different pixels.
        whole: The scanned area in level-0 pixels.
        phantom: Whether it is a phantom of pathnav's.
        objective_power: As used; None where unknown. Models are told it.
        warnings: What was odd on opening, and damaged tiles, each one sentence.
    """

    fingerprint: str
    mpp_um: tuple[float, float]
    reader: str
    whole: Box
    phantom: bool
    objective_power: float | None = None
    warnings: tuple[str, ...] = ()

    @classmethod
    def of(cls, slide: "Slide") -> "SlideFacts":
        """Return the facts of an open slide; looks at both ends of each of its tiles for damage.

        Raises:
            SlideError: If it has no physical scale, or its file cannot be read.
        """
        from pathnav.slide.files import find_damage

        damage = (found.warning for found in find_damage(slide.path))
        return cls(
            fingerprint=slide.fingerprint,
            mpp_um=slide.mpp_um,
            reader=slide.reader,
            whole=slide.bounds,
            phantom=slide.is_phantom,
            objective_power=slide.objective_power,
            warnings=(*slide.warnings, *damage),
        )

    @property
    def native_magnification(self) -> float:
        """10 / um per level-0 pixel, geometric mean of the axes."""
        return 10 / math.sqrt(self.mpp_um[0] * self.mpp_um[1])

    def upsampled(self, magnification: float) -> float | None:
        """Return how often a magnification enlarges native pixels, the larger of both axes; None where it does not."""
        factor = magnification * max(self.mpp_um) / 10
        return factor if factor > 1 + UPSAMPLING_TOLERANCE else None


@dataclass(frozen=True, slots=True)
class Case:
    """One question about one slide.

    Args:
        source: How to open the slide.
        slide: What is known about it.
        query: What is asked.
        target: What is true; None where nobody knows.
        query_id: The node's id in its diagnostic tree; None for a user's own words.
        target_cut: Whether the target is larger than the whole slide on a side.
        controls: Controls of the protocol that were applied, e.g. `{"jitter": 0.25}`.
    """

    source: SlideSource
    slide: SlideFacts
    query: Query
    target: Target | None = None
    query_id: str | None = None
    target_cut: bool = False
    controls: Mapping[str, Any] = field(default_factory=dict)

    @property
    def scored_target(self) -> Box | None:
        """The target as it is scored: shifted into the scanned area, as every final box is; None where unknown."""
        return self.target.box.shifted_into(self.slide.whole) if self.target else None

    def as_json(self) -> dict[str, Any]:
        """Return what `run.json` keeps about the case; it holds the target, so no agent may see it."""
        return {
            "slide": self.source.place,
            "fingerprint": self.slide.fingerprint,
            "node": self.query_id,
            "magnification": self.query.magnification,
            "finding": self.query.finding,
            "region": self.query.region.as_list(),
            "budget": self.query.budget,
            "target": self.target.box.as_list() if self.target else None,
            "target_cut": self.target_cut,
        }

    def key_fields(self) -> dict[str, Any]:
        """Return all of the case that can change a result: the target too, since a result holds its IoU."""
        return {
            "slide": self.slide.fingerprint,
            "mpp_um": self.slide.mpp_um,
            "reader": self.slide.reader,
            "objective_power": self.slide.objective_power,
            "query": asdict(self.query),
            "target": asdict(self.target) if self.target else None,
            "controls": dict(self.controls),
        }
