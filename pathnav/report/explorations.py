"""Rows of Mode B: one scorer with one configuration and one schedule, over the slides that it has finished."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pathnav.cohort.protocol import MAGNIFICATIONS
from pathnav.report.circumstances import Circumstances
from pathnav.report.exploration_record import SHIPPED_SCORERS, ExplorationResult
from pathnav.report.names import HASH_DIGITS, differing, flat_variant, model_words, settings_words
from pathnav.report.ratios import EFFORTS, RATIOS, MeanCell, RatioCell, effort_cell, ratio_cell

_FIRST = ("random", "tissue-density", "nuclear-density", "clip-retrieval")
"""The paper's order of its baselines; other scorers follow by name, the control comes last."""
CONTROL_SCORER = "oracle"


@dataclass(frozen=True, slots=True)
class SearchGroup:
    """What the explorations of one row have in common.

    Args:
        scorer: Its name.
        is_shipped: Whether it is pathnav's own, so that its name means what the protocol says.
        model: The model it asked; None for a scorer that asks none.
        configuration: Hash of the scorer's code, options, model and decoding.
        schedule: K by level; empty for what the rows of a sweep have in common.
        fill_to_k: Whether No fills up where fewer than K say Yes.
        tile_px: Side of a tile's image in pixels.
        min_tissue: Least share of tissue of a tile that is scored.
        seed: Orders the equals.
        apart: Reader, scale and annotation in words, where one slide of the report has several.
        take: 0; a second exploration of the same slide that differs in nothing of this is another row's: 1, and so on.
    """

    scorer: str
    is_shipped: bool
    model: str | None
    configuration: str
    schedule: tuple[int, ...]
    fill_to_k: bool
    tile_px: int
    min_tissue: float
    seed: int
    apart: tuple[str, ...] = ()
    take: int = 0

    @classmethod
    def of(cls, found: ExplorationResult) -> "SearchGroup":
        """Return the group of an exploration."""
        scorer = found.scorer, found.is_shipped, found.model, found.experiment
        return cls(*scorer, found.schedule, found.fill_to_k, found.tile_px, found.min_tissue, found.seed)

    def is_own(self, name: str) -> bool:
        """Return whether this is pathnav's own scorer of that name."""
        return self.is_shipped and self.scorer == name

    @property
    def sweep(self) -> "SearchGroup":
        """The group without its schedule: rows of one sweep rest on the same scores."""
        return replace(self, schedule=())

    @property
    def sort_key(self) -> tuple[int, tuple[Any, ...]]:
        """A full order: the paper's, then by name, the control last; schedules of one scorer side by side."""
        place = _FIRST.index(self.scorer) if self.scorer in _FIRST else len(_FIRST) + self.is_own(CONTROL_SCORER)
        named = self.scorer, not self.is_shipped, self.model or "", self.configuration
        tiles = self.tile_px, self.min_tissue, self.fill_to_k, self.seed
        return place, (*named, *tiles, self.apart, self.take, self.schedule)


@dataclass(frozen=True, slots=True)
class SearchRow:
    """All scores of one group.

    Args:
        group: Scorer, model, configuration, schedule, tiles and seed.
        variant: Version, settings and decoding, each under its name.
        origin: Where the scorer's class came from.
        slides: The finished explorations, by fingerprint.
        lost: Those lost to infrastructure.
        ratios: By the ratio's name one cell a level, coarsest first.
        efforts: By the effort's name.
    """

    group: SearchGroup
    variant: dict[str, Any]
    origin: str | None
    slides: tuple[ExplorationResult, ...]
    lost: tuple[ExplorationResult, ...]
    ratios: Mapping[str, tuple[RatioCell, ...]]
    efforts: Mapping[str, MeanCell]

    @property
    def rated(self) -> tuple[ExplorationResult, ...]:
        """The finished explorations of slides with tumour."""
        return tuple(found for found in self.slides if found.has_tumour)

    @property
    def fingerprints(self) -> frozenset[str]:
        """The finished slides."""
        return frozenset(found.slide.fingerprint for found in self.slides)

    def total(self, count: Callable[[ExplorationResult], int]) -> int:
        """Return the sum of a count over the finished slides."""
        return sum(count(found) for found in self.slides)


def search_rows(found: Iterable[ExplorationResult]) -> list[SearchRow]:
    """Return one row a group, in the order of print."""
    groups: dict[SearchGroup, list[ExplorationResult]] = defaultdict(list)
    takes: Counter[tuple[SearchGroup, str]] = Counter()
    all_found = list(found)
    circumstances = Circumstances(all_found)
    for one in all_found:
        group = replace(SearchGroup.of(one), apart=circumstances.words(one))
        slide = one.slide.fingerprint
        groups[replace(group, take=takes[group, slide])].append(one)
        takes[group, slide] += 1
    return [_row(group, groups[group]) for group in sorted(groups, key=lambda group: group.sort_key)]


def _row(group: SearchGroup, found: Sequence[ExplorationResult]) -> SearchRow:
    slides = tuple(sorted((one for one in found if one.is_finished), key=lambda one: one.slide.fingerprint))
    levels = range(len(MAGNIFICATIONS))
    return SearchRow(
        group,
        found[0].variant,
        found[0].origin,
        slides,
        tuple(one for one in found if not one.is_finished),
        {ratio.name: tuple(ratio_cell(ratio, level, slides) for level in levels) for ratio in RATIOS},
        {effort.name: effort_cell(effort, slides) for effort in EFFORTS},
    )


def search_words(rows: Sequence[SearchRow]) -> dict[SearchGroup, tuple[str, ...]]:
    """Return by `sweep` what is said beside a scorer's name: its model, and what sets it apart from its namesakes."""
    alike: dict[tuple[str, str | None], dict[SearchGroup, SearchRow]] = defaultdict(dict)
    for row in rows:
        alike[row.group.scorer, row.group.model].setdefault(row.group.sweep, row)
    return {group: words for same in alike.values() for group, words in _apart(list(same.values())).items()}


def _apart(rows: Sequence[SearchRow]) -> dict[SearchGroup, tuple[str, ...]]:
    """Return what tells rows of one name and model apart, with a hash where settings do not."""
    variants = [flat_variant(row.variant) for row in rows]
    paths = [path for path in differing(variants) if path != ("settings", "seed")]  # the row's own seed says that
    mixed = len({row.group.is_shipped for row in rows}) > 1
    groups = [row.group for row in rows]
    said = {
        row.group.sweep: (
            *model_words(row.group.model),
            *_origin(row, mixed),
            *settings_words(variant, paths),
            *_search(row.group, groups),
        )
        for row, variant in zip(rows, variants, strict=True)
    }
    doubled = Counter(said.values())
    return {
        group: (*words, *([f"configuration {group.configuration[:HASH_DIGITS]}"] if doubled[words] > 1 else []))
        for group, words in said.items()
    }


def _origin(row: SearchRow, mixed: bool) -> list[str]:
    """Return where a scorer comes from, for one that has the name of pathnav's own, and for that one beside it."""
    if row.group.is_shipped:
        return ["pathnav's own"] if mixed else []
    if row.group.scorer not in SHIPPED_SCORERS:
        return []
    return [f"not pathnav's: {row.origin.replace(chr(92), '/').split('/')[-1]}" if row.origin else "not pathnav's"]


def _search(group: SearchGroup, among: Sequence[SearchGroup]) -> list[str]:
    """Return how the tiles were searched, where rows differ in it; filling up is said wherever it was on."""
    said = ["control"] if group.is_own(CONTROL_SCORER) else []
    said += [f"tiles of {group.tile_px} px"] if len({one.tile_px for one in among}) > 1 else []
    said += [f"min tissue {group.min_tissue:g}"] if len({one.min_tissue for one in among}) > 1 else []
    said += ["filled to K"] if group.fill_to_k else []
    said += [f"seed {group.seed}"] if len({one.seed for one in among}) > 1 else []
    has_takes = any(one.take and replace(one, take=0) == replace(group, take=0) for one in among)
    return [*said, *group.apart, *([f"search {group.take + 1}"] if has_takes else [])]
