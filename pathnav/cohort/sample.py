"""A seeded sample of a cohort: slides by stratum, then queries by magnification (docs/protocol.md, section 2).

What is chosen depends on the seed and on the names of slides and nodes, not on the order in which they were listed.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pathnav.cohort.scenario import SampleSpec
from pathnav.cohort.seeds import seeded_rank


@dataclass(frozen=True, slots=True)
class Candidate:
    """A slide that could be in the sample.

    Args:
        name: Unique in the cohort, and the same on every machine.
        organ: Its stratum; None is a stratum too.
        nodes: Ids of the nodes that could be asked for, by magnification.
    """

    name: str
    organ: str | None
    nodes: Mapping[float, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Selection:
    """What was chosen.

    Args:
        slides: Chosen candidates with their chosen nodes, sorted by name.
        notes: One sentence for everything that was asked for and is not there.
    """

    slides: tuple[Candidate, ...]
    notes: tuple[str, ...]


def select(candidates: Sequence[Candidate], spec: SampleSpec, magnifications: Sequence[float]) -> Selection:
    """Choose slides and queries.

    Args:
        candidates: The cohort; slides without a node at one of the magnifications are left out.
        spec: What is asked for.
        magnifications: Of the queries.
    """
    usable = sorted((one for one in candidates if any(one.nodes.get(m) for m in magnifications)), key=lambda o: o.name)
    notes = [f"slide {one.name} has no query and is left out" for one in candidates if one not in usable]
    chosen = sampled_slides(usable, spec)
    if spec.slides is not None and len(chosen) < spec.slides:
        notes.append(f"the sample asks for {spec.slides} slides, the cohort has {len(chosen)} with queries")
    slides = tuple(_with_nodes(one, spec, magnifications) for one in chosen)
    if spec.queries_per_magnification is not None:
        notes += _missing_queries(slides, spec.queries_per_magnification, magnifications)
    return Selection(slides, tuple(sorted(notes)))


def _missing_queries(slides: Sequence[Candidate], wanted: int, magnifications: Sequence[float]) -> list[str]:
    there = [
        (one.name, len(one.nodes[magnification]), magnification) for one in slides for magnification in magnifications
    ]
    return [f"slide {name} has {count} of {wanted} queries at {m:g}x" for name, count, m in there if count < wanted]


def sampled_slides(usable: Sequence[Candidate], spec: SampleSpec) -> list[Candidate]:
    """Return the slides of a sample, sorted by name; their queries are left to the caller."""
    total = len(usable) if spec.slides is None else min(spec.slides, len(usable))
    strata: dict[str, list[Candidate]] = defaultdict(list)
    for one in usable:
        strata[f"organ {one.organ}" if spec.stratify and one.organ is not None else ""].append(one)
    seats = allocate({name: len(members) for name, members in strata.items()}, total, spec.seed)
    chosen = []
    for name, members in strata.items():
        ranked = sorted(members, key=lambda one: (seeded_rank(spec.seed, "slide", one.name), one.name))
        chosen += ranked[: seats[name]]
    return sorted(chosen, key=lambda one: one.name)


def _with_nodes(one: Candidate, spec: SampleSpec, magnifications: Sequence[float]) -> Candidate:
    nodes = {}
    for magnification in magnifications:
        ids = one.nodes.get(magnification, ())
        ranked = sorted(ids, key=lambda node: (seeded_rank(spec.seed, "node", one.name, node), node))
        nodes[magnification] = tuple(sorted(ranked[: spec.queries_per_magnification]))
    return Candidate(one.name, one.organ, nodes)


def allocate(sizes: Mapping[str, int], total: int, seed: int) -> dict[str, int]:
    """Share out slides among strata in proportion to their sizes.

    One each where that is possible, then by the rule of Sainte-Lague (the next slide goes to the stratum with the
    highest size / (2 x given + 1)), so that no stratum is left out and none gets more than it has.

    Args:
        sizes: Slides of each stratum, at least 1.
        total: Slides to share out, at most the sum of the sizes.
        seed: Decides between equals.
    """
    given = dict.fromkeys(sizes, 1 if total >= len(sizes) else 0)
    for _ in range(total - sum(given.values())):
        open_strata = [name for name in sizes if given[name] < sizes[name]]
        first = min(
            open_strata,
            key=lambda name: (-sizes[name] / (2 * given[name] + 1), seeded_rank(seed, "stratum", name), name),
        )
        given[first] += 1
    return given
