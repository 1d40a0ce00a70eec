"""Which rows may stand in one table: those over the same slides, cut into the same tiles, with the same positives."""

from collections import defaultdict
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import PurePath

from pathnav.report.exploration_record import ExplorationResult
from pathnav.report.explorations import SearchGroup, SearchRow, search_rows, search_words
from pathnav.report.load import RunRecord

LOST, UNFINISHED, NOT_ASKED = "lost to infrastructure", "not finished", "not asked"
_NAMED = 3
"""So many slides are named in a title; a note has them all."""


@dataclass(frozen=True, slots=True)
class Ground:
    """Rows with the same denominators.

    Args:
        number: 1 for the ground with most rows, and so on.
        rows: The rows, in the order of print.
        missing: Slides of the run that these rows lack, by name, each with why.
        label: Over which slides and tiles, as titles say it.
        rated_label: The same for hit rates, which speak of slides with positive tiles alone.
    """

    number: int
    rows: tuple[SearchRow, ...]
    missing: Mapping[str, str]
    label: str = ""
    rated_label: str = ""

    @property
    def slides(self) -> tuple[ExplorationResult, ...]:
        """One finished exploration a slide: what all rows have in common can be read from it."""
        return self.rows[0].slides

    @property
    def has_truth(self) -> bool:
        """Whether any slide has an annotation."""
        return any(slide.has_truth for slide in self.slides)

    @property
    def has_rates(self) -> bool:
        """Whether any slide has a positive tile, so that there is a hit rate."""
        return any(slide.has_tumour for slide in self.slides)

    @property
    def schedules(self) -> list[tuple[int, ...]]:
        """The schedules of its rows, ascending."""
        return sorted({row.group.schedule for row in self.rows})

    @property
    def swept(self) -> list[SearchRow]:
        """The rows of scorers with at least two schedules."""
        groups = [row.group.sweep for row in self.rows]
        return [row for row in self.rows if groups.count(row.group.sweep) > 1]


@dataclass(frozen=True)
class Explorations:
    """All that a report says of Mode B.

    Args:
        run: The run folder's record.
        rows: All rows, also those without a finished slide.
        grounds: The rows with a finished slide, by what may be compared.
    """

    run: RunRecord
    rows: tuple[SearchRow, ...]
    grounds: tuple[Ground, ...]

    @cached_property
    def words(self) -> dict[SearchGroup, tuple[str, ...]]:
        """What is said beside each scorer's name."""
        return search_words(self.rows)

    @cached_property
    def broken_invariants(self) -> tuple[str, ...]:
        """A sentence for each invariant of docs/protocol.md, section 3, that rows of one ground break."""
        return tuple(sentence for ground in self.grounds for sentence in self._broken(ground))

    @property
    def planned(self) -> int:
        """How many explorations the run has in all, as far as its folder says."""
        listed = sum(len(search.schedules) for search in self.run.searches)
        return max(listed, len(self.run.explorations) + len(self.run.interrupted))

    @property
    def lost(self) -> int:
        """Explorations lost to infrastructure."""
        return sum(not found.is_finished for found in self.run.explorations)

    def label(self, row: SearchRow) -> str:
        """Return a row's scorer with what sets it apart, without its schedule."""
        said = self.words[row.group.sweep]
        return row.group.scorer + (f" ({'; '.join(said)})" if said else "")

    def _broken(self, ground: Ground) -> list[str]:
        # pathnav.explore takes 0.9 s to import (shapely, skimage), which a report of Mode A does without
        from pathnav.explore.hit_rates import HitCounts, micro
        from pathnav.explore.invariants import Row, broken_invariants
        from pathnav.explore.schedule import Schedule

        def counts(found: ExplorationResult) -> list[HitCounts]:
            return [
                HitCounts(c.positives or 0, c.reachable or 0, c.kept, c.kept_positives or 0, c.optimum_positives or 0)
                for c in found.levels
            ]

        return broken_invariants(
            [
                Row(
                    self.label(row),
                    frozenset(found.slide.fingerprint for found in row.rated),
                    Schedule(row.group.schedule),
                    micro(counts(found) for found in row.rated),
                )
                for row in ground.rows
                if row.rated
            ]
        )


def explorations_of(run: RunRecord) -> Explorations | None:
    """Return what a run's explorations came to; None where it has none."""
    if not (run.explorations or run.interrupted or run.searches):
        return None
    rows = search_rows(run.explorations)
    alike: dict[frozenset[object], list[SearchRow]] = defaultdict(list)
    for row in rows:
        if row.slides:
            alike[frozenset((found.slide.fingerprint, found.denominators) for found in row.slides)].append(row)
    known, otherwise = names(run), UNFINISHED if run.unfinished and not run.is_of_requests else NOT_ASKED
    halted = {found.slide.fingerprint for found in run.interrupted}
    if run.unfinished:  # nothing is written of a search that was killed, but that it was planned
        halted |= {search.fingerprint for search in run.searches} - {one.slide.fingerprint for one in run.explorations}
    most_first = sorted(alike.values(), key=lambda same: (-len(same), -len(same[0].slides)))
    grounds = [
        Ground(place, tuple(same), _missing(same, known, halted, otherwise))
        for place, same in enumerate(most_first, start=1)
    ]
    return Explorations(run, tuple(rows), _labelled(grounds, len(known)))


def names(run: RunRecord) -> dict[str, str]:
    """Return the name of each slide of a run by its fingerprint: the file's, or the path where names are not unique."""
    paths = {found.slide.fingerprint: found.slide.path for found in (*run.explorations, *run.interrupted)}
    paths |= {search.fingerprint: search.slide for search in run.searches}
    short = {fingerprint: PurePath(path).name for fingerprint, path in paths.items()}
    is_unique = len(set(short.values())) == len(short)
    return short if is_unique else paths


def _missing(rows: Sequence[SearchRow], known: Mapping[str, str], halted: Set[str], otherwise: str) -> dict[str, str]:
    """Return which of a run's slides the rows of a ground lack, and why; rows may lack one for different reasons."""
    lost = {found.slide.fingerprint for row in rows for found in row.lost}
    found = rows[0].fingerprints
    return {
        known[slide]: LOST if slide in lost else UNFINISHED if slide in halted else otherwise
        for slide in sorted(known, key=lambda slide: known[slide])
        if slide not in found
    }


def _labelled(grounds: Sequence[Ground], n_slides: int) -> tuple[Ground, ...]:
    """Return the grounds with what their titles say: tiles and set only where there are several."""
    several_tiles = len({ground.rows[0].group.tile_px for ground in grounds}) > 1
    labelled = []
    for ground in grounds:
        over = _over(ground, n_slides)
        parts = [f"tiles of {ground.rows[0].group.tile_px} px"] if several_tiles else []
        parts += [f"set {ground.number}"] if len(grounds) > 1 else []
        rated = ", ".join([over, *_rated(ground), *parts])
        labelled.append(replace(ground, label=", ".join([over, *parts]), rated_label=rated))
    return tuple(labelled)


def _rated(ground: Ground) -> list[str]:
    """Return how many slides of a ground its hit rates speak of, where these are not all."""
    n = sum(slide.has_tumour for slide in ground.slides)
    return [f"{n} of them with positive tiles"] if 0 < n < len(ground.slides) else []


def _over(ground: Ground, n_slides: int) -> str:
    n = len(ground.slides)
    if not ground.missing:
        return f"over {slides_text(n)}"
    by_reason: dict[str, list[str]] = defaultdict(list)
    for name, why in ground.missing.items():
        by_reason[why].append(name)
    without = "; ".join(f"{_some(missing)} {why}" for why, missing in sorted(by_reason.items()))
    return f"over {n} of {n_slides} slides ({without})"


def _some(slides: Sequence[str]) -> str:
    return (
        ", ".join(slides) if len(slides) <= _NAMED else f"{', '.join(slides[:_NAMED])} and {len(slides) - _NAMED} more"
    )


def slides_text(n: int) -> str:
    """Return `1 slide` or `12 slides`."""
    return f"{n} slide" + ("" if n == 1 else "s")
