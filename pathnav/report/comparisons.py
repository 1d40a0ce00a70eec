"""Each agent against `random` and `parent-centre`, on the queries that both answered (docs/protocol.md, section 4)."""

from collections import defaultdict
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, replace

from pathnav.cohort.protocol import MIN_SLIDES_FOR_INTERVAL
from pathnav.report.names import is_control
from pathnav.report.scores import JITTERED_PARENT, SCORES, Group, Row, query_values
from pathnav.report.statistics import Interval, cluster_bootstrap, holm, paired_permutation_p

PARENTS = ("parent-centre", JITTERED_PARENT)
REFERENCES = ("random", *PARENTS)
"""Pathnav's own agents of these names; another class of the same name is an agent like any other."""
_MIOU = SCORES[0]


@dataclass(frozen=True, slots=True)
class Comparison:
    """A paired difference of mean IoU.

    Args:
        group: The agent's row.
        reference: Name of the baseline.
        budgets: The budgets for which this is the comparison: several for an agent that no budget changes.
        difference: Mean over shared queries of the agent's IoU minus the baseline's.
        interval: 95 % cluster-bootstrap interval of the difference.
        p: Two-sided paired permutation test by slide.
        p_holm: p adjusted over all comparisons of the table.
        n_slides: Slides with a shared query.
        n_queries: Shared queries.
    """

    group: Group
    reference: str
    budgets: tuple[int, ...]
    difference: float
    interval: Interval | None
    p: float | None
    p_holm: float | None
    n_slides: int
    n_queries: int

    @property
    def is_thin(self) -> bool:
        """Whether fewer slides than docs/protocol.md asks for stand behind the interval."""
        return self.n_slides < MIN_SLIDES_FOR_INTERVAL


def compare(rows: Sequence[Row]) -> list[Comparison]:
    """Return all comparisons of a table, with Holm's adjustment over all of them; each test is made once.

    The harness's control is not tested: it is told the target, and would only use up a test.
    """
    agents = [same for same in _tested(rows) if not is_control(same[0].group)]
    pairs = [(same, reference) for same in agents for reference in _references(same[0], rows)]
    found = [comparison for same, reference in pairs if (comparison := _compare(same, reference))]
    adjusted = holm([comparison.p for comparison in found])
    return [replace(comparison, p_holm=p_holm) for comparison, p_holm in zip(found, adjusted, strict=True)]


def _tested(rows: Sequence[Row]) -> list[list[Row]]:
    """Return the rows to test, each with those that ask the same again.

    An agent that asks no model and looks at no ROI is the same experiment at every budget: of its rows the one with
    most queries is tested, and comes first. Tested at each budget it would inflate the number of tests.
    """
    alike: dict[Hashable, list[Row]] = defaultdict(list)
    for row in rows:
        same = replace(row.group, budget=0)
        alike[same if _ignores_budget(row) else row.group].append(row)
    return [sorted(same, key=lambda row: (-row.n_queries, row.group.budget)) for same in alike.values()]


def _ignores_budget(row: Row) -> bool:
    return row.group.model is None and not any(episode.rois_used for episode in row.episodes)


def _references(row: Row, rows: Sequence[Row]) -> Iterator[Row]:
    """Yield the row of each reference at this magnification: with the same seed and budget where there is one."""
    for name in REFERENCES:
        if row.group.is_own(name) or (name in PARENTS and row.group.is_own("random")):
            continue  # random against parent-centre is the mirror image of parent-centre against random
        same = [other for other in rows if other.group.is_own(name) and _is_comparable(row, other)]
        yield from sorted(same, key=lambda other: _distance(row, other))[:1]


def _distance(row: Row, other: Row) -> tuple[bool, bool]:
    return other.group.seed != row.group.seed, other.group.budget != row.group.budget


def _is_comparable(row: Row, other: Row) -> bool:
    """Return whether two rows answer the same question: the same magnification under the same controls."""
    return row.group.magnification == other.group.magnification and row.group.controls == other.group.controls


def _compare(same: Sequence[Row], reference: Row) -> Comparison | None:
    """Return the comparison of a tested row on shared queries, None where there is none."""
    row = same[0]
    ours, theirs = query_values(_MIOU, row.episodes), query_values(_MIOU, reference.episodes)
    shared = sorted(ours.keys() & theirs.keys())
    if not shared:
        return None
    differences = [ours[key][0] - theirs[key][0] for key in shared]
    slides = [key[0] for key in shared]
    return Comparison(
        group=row.group,
        reference=reference.group.agent,
        budgets=tuple(sorted(row.group.budget for row in same)),
        difference=sum(differences) / len(differences),
        interval=cluster_bootstrap(differences, slides),
        p=paired_permutation_p(differences, slides),
        p_holm=None,
        n_slides=len(set(slides)),
        n_queries=len(shared),
    )
