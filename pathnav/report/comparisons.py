"""Each agent against `random` and `parent-centre`, on the queries that both answered (PROTOCOL.md, section 4)."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pathnav.cohort.protocol import MIN_SLIDES_FOR_INTERVAL
from pathnav.report.scores import SCORES, Group, Row, query_values
from pathnav.report.statistics import Interval, cluster_bootstrap, holm, paired_permutation_p

REFERENCES = ("random", "parent-centre")
CONTROL_AGENT = "oracle"
"""The harness's control is told the target: its difference would only use up a test of the table."""
_MIOU = SCORES[0]


@dataclass(frozen=True, slots=True)
class Comparison:
    """A paired difference of mean IoU.

    Args:
        group: The agent's row.
        reference: Name of the baseline.
        difference: Mean over shared queries of the agent's IoU minus the baseline's.
        interval: 95 % cluster-bootstrap interval of the difference.
        p: Two-sided paired permutation test by slide.
        p_holm: p adjusted over all comparisons of the table.
        n_slides: Slides with a shared query.
        n_queries: Shared queries.
    """

    group: Group
    reference: str
    difference: float
    interval: Interval | None
    p: float | None
    p_holm: float | None
    n_slides: int
    n_queries: int

    @property
    def is_thin(self) -> bool:
        """Whether fewer slides than PROTOCOL.md asks for stand behind the interval."""
        return self.n_slides < MIN_SLIDES_FOR_INTERVAL


def compare(rows: Sequence[Row]) -> list[Comparison]:
    """Return all comparisons of a table, with Holm's adjustment over all of them."""
    agents = [row for row in rows if row.group.agent != CONTROL_AGENT]
    pairs = [(row, reference) for row in agents for reference in _references(row, rows)]
    found = [comparison for row, reference in pairs if (comparison := _compare(row, reference))]
    adjusted = holm([comparison.p for comparison in found])
    return [
        Comparison(c.group, c.reference, c.difference, c.interval, c.p, p_holm, c.n_slides, c.n_queries)
        for c, p_holm in zip(found, adjusted, strict=True)
    ]


def _references(row: Row, rows: Sequence[Row]) -> Iterator[Row]:
    """Yield the row of each reference at this magnification: with the same budget and controls where there is one."""
    for name in REFERENCES:
        if row.group.agent == name or (name == REFERENCES[1] and row.group.agent == REFERENCES[0]):
            continue  # random against parent-centre is the mirror image of parent-centre against random
        same = [other for other in rows if other.group.agent == name and _is_comparable(row, other)]
        yield from sorted(same, key=lambda other: other.group.budget != row.group.budget)[:1]


def _is_comparable(row: Row, other: Row) -> bool:
    """Return whether two rows answer the same question: the same magnification under the same controls."""
    return row.group.magnification == other.group.magnification and row.group.controls == other.group.controls


def _compare(row: Row, reference: Row) -> Comparison | None:
    """Return the comparison on shared queries, None where there is none."""
    ours, theirs = query_values(_MIOU, row.episodes), query_values(_MIOU, reference.episodes)
    shared = sorted(ours.keys() & theirs.keys())
    if not shared:
        return None
    differences = [ours[key][0] - theirs[key][0] for key in shared]
    slides = [key[0] for key in shared]
    return Comparison(
        group=row.group,
        reference=reference.group.agent,
        difference=sum(differences) / len(differences),
        interval=cluster_bootstrap(differences, slides),
        p=paired_permutation_p(differences, slides),
        p_holm=None,
        n_slides=len(set(slides)),
        n_queries=len(shared),
    )
