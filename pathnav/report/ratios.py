"""Scores of Mode B: ratios of counts that add up over slides, and effort per slide (docs/protocol.md, section 3).

A ratio is micro-averaged: the sum of its parts over the slides divided by the sum of its wholes. Its interval resamples
whole slides, so it is that of the ratio and not of a mean of ratios.
"""

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from pathnav.cohort.protocol import MIN_SLIDES_FOR_INTERVAL
from pathnav.report.exploration_record import ExplorationResult, LevelRecord
from pathnav.report.statistics import Interval, cluster_bootstrap


@dataclass(frozen=True, slots=True)
class Ratio:
    """A share of tiles at one magnification.

    Args:
        name: Its name in JSON and CSV.
        label: Its heading.
        part: The numerator of one slide.
        whole: The denominator of one slide.
        counts: Whether a finished slide is among those that the ratio speaks of.
        needs_truth: Whether its counts take an annotation.
    """

    name: str
    label: str
    part: Callable[[LevelRecord], int | None]
    whole: Callable[[LevelRecord], int | None]
    counts: Callable[[ExplorationResult], bool] = lambda slide: slide.has_tumour
    needs_truth: bool = True


CONDITIONAL = Ratio("conditional_hit", "conditional", lambda c: c.kept_positives, lambda c: c.reachable)
UNCONDITIONAL = Ratio("unconditional_hit", "unconditional", lambda c: c.kept_positives, lambda c: c.positives)
HITS = (CONDITIONAL, UNCONDITIONAL)
REACH = (
    Ratio("optimum_hit", "optimum", lambda c: c.optimum_positives, lambda c: c.positives),
    Ratio("oracle_normalised", "oracle-normalised", lambda c: c.kept_positives, lambda c: c.optimum_positives),
    Ratio("reachable_share", "reachable", lambda c: c.reachable, lambda c: c.positives),
)
PRECISION = Ratio("precision", "precision", lambda c: c.kept_positives, lambda c: c.kept, lambda slide: slide.has_truth)
ANSWERS = (
    Ratio("yes_rate", "yes rate", lambda c: c.yes, lambda c: c.scored, lambda slide: True, needs_truth=False),
    Ratio(
        "tie_rate",
        "tie rate",
        lambda c: c.tied,
        lambda c: c.candidates,
        lambda slide: slide.has_truth,
        needs_truth=False,
    ),
)
RATIOS = (*HITS, *REACH, PRECISION, *ANSWERS)


@dataclass(frozen=True, slots=True)
class MeanCell:
    """A mean over slides, each of which counts the same.

    Args:
        value: Mean over the slides that have a value; None where none has.
        interval: 95 % bootstrap interval by slide; None for fewer than two slides.
        n_slides: Slides with a value.
        n_unknown: Slides that should have a value, which nobody knows.
    """

    value: float | None
    interval: Interval | None
    n_slides: int
    n_unknown: int = 0

    @classmethod
    def of(cls, values: Mapping[str, float], n_unknown: int = 0) -> "MeanCell":
        """Return the mean of a value by slide."""
        if not values:
            return cls(None, None, 0, n_unknown)
        known = list(values.values())
        return cls(statistics.fmean(known), cluster_bootstrap(known, list(values)), len(known), n_unknown)

    @property
    def is_thin(self) -> bool:
        """Whether fewer slides than docs/protocol.md asks for stand behind the interval."""
        return self.n_slides < MIN_SLIDES_FOR_INTERVAL


@dataclass(frozen=True, slots=True)
class RatioCell:
    """One ratio over some slides.

    Args:
        value: Sum of parts / sum of wholes; None where the sum of wholes is 0.
        interval: 95 % cluster-bootstrap interval of the ratio; None for fewer than two slides.
        n_slides: Slides whose whole is not 0.
        part: Sum of the numerators.
        whole: Sum of the denominators: the n of tiles.
        macro: Mean over those slides of each one's own ratio.
    """

    value: float | None
    interval: Interval | None
    n_slides: int
    part: int
    whole: int
    macro: MeanCell

    @property
    def is_thin(self) -> bool:
        """Whether fewer slides than docs/protocol.md asks for stand behind the interval."""
        return self.n_slides < MIN_SLIDES_FOR_INTERVAL


def ratio_cell(ratio: Ratio, level: int, slides: Sequence[ExplorationResult]) -> RatioCell:
    """Return a ratio at one level over finished slides.

    Slides without a whole keep their place among those that the bootstrap draws, since another sample of slides would
    hold such slides as well; a resample of nothing else is left out.

    Args:
        ratio: The ratio.
        level: 0 is the coarsest.
        slides: Finished explorations, one a slide.
    """
    counts = [
        (one.slide.fingerprint, ratio.part(one.levels[level]) or 0, ratio.whole(one.levels[level]) or 0)
        for one in slides
        if ratio.counts(one)
    ]
    own = {slide: part / whole for slide, part, whole in counts if whole}
    parts, wholes = sum(part for _, part, _ in counts), sum(whole for _, _, whole in counts)
    interval = cluster_bootstrap(
        [own.get(slide, 0.0) for slide, _, _ in counts],
        [slide for slide, _, _ in counts],
        weights=[whole for _, _, whole in counts],
    )
    return RatioCell(parts / wholes if wholes else None, interval, len(own), parts, wholes, MeanCell.of(own))


@dataclass(frozen=True, slots=True)
class Effort:
    """What a slide took, over all magnifications.

    Args:
        name: Its name in JSON and CSV.
        label: Its heading.
        of: The value of one slide; None is unknown.
        digits: Decimals in print.
        models_only: Whether it applies to scorers that ask a model alone.
        unit: What is divided by in print, as the heading says; JSON and CSV keep the value.
        is_printed: Whether it stands in a table; what another table tells stands in JSON and CSV alone.
    """

    name: str
    label: str
    of: Callable[[ExplorationResult], float | None]
    digits: int = 1
    models_only: bool = False
    unit: float = 1
    is_printed: bool = True


EFFORTS = (
    Effort("tiles_scored", "tiles scored", lambda e: e.scored),
    Effort("tiles_kept", "tiles kept", lambda e: sum(level.kept for level in e.levels)),
    Effort("unparsed", "unparsed", lambda e: e.unparsed, is_printed=False),
    Effort("calls", "calls", lambda e: e.calls),
    Effort("images_sent", "images sent", lambda e: e.images_sent, models_only=True),
    Effort("bytes_sent", "MB sent", lambda e: e.bytes_sent, models_only=True, unit=1e6),
    Effort("tokens_input", "tokens in", lambda e: e.tokens.input if e.tokens else None, 0, models_only=True),
    Effort("tokens_output", "tokens out", lambda e: e.tokens.output if e.tokens else None, 0, models_only=True),
    Effort("cost_usd", "USD", lambda e: e.cost_usd, 4, models_only=True),
    Effort("seconds", "seconds", lambda e: e.seconds),
)


def effort_cell(effort: Effort, slides: Sequence[ExplorationResult]) -> MeanCell:
    """Return an effort per finished slide."""
    due = [slide for slide in slides if slide.model is not None or not effort.models_only]
    known = {slide.slide.fingerprint: value for slide in due if (value := effort.of(slide)) is not None}
    return MeanCell.of(known, len(due) - len(known))
