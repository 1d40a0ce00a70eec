"""What one episode looks for: a finding in the user's own words, or a node of a diagnostic tree."""

from dataclasses import dataclass, replace
from pathlib import Path

from pathnav.cohort.query import query_of_user
from pathnav.cohort.tree import load_tree
from pathnav.errors import ConfigError
from pathnav.run.case import Case, SlideSource
from pathnav.run.open_slides import OpenSlides


@dataclass(frozen=True, slots=True)
class Question:
    """What is looked for: a finding in the user's words, or a node of a tree.

    Args:
        finding: A sentence about the region; None with a tree.
        magnification: 2.5, 10 or 40; None with a tree.
        region: Search region [x, y, w, h] in level-0 pixels; default: the whole slide.
        target_size: Width and height of the target in level-0 pixels; default: 1,024 px at the magnification.
        tree: File of diagnostic trees.
        query_id: Id of a node in it.
        budget: ROIs; default: the protocol's base budget at the magnification.

    Raises:
        ConfigError: If it is neither of the two, or something of both.
    """

    finding: str | None = None
    magnification: float | None = None
    region: tuple[float, ...] | None = None
    target_size: tuple[float, ...] | None = None
    tree: Path | None = None
    query_id: str | None = None
    budget: int | None = None

    def __post_init__(self) -> None:
        if self.tree is None and self.query_id is not None:
            raise ConfigError(f"query {self.query_id} needs its diagnostic tree", remedy="give the file with --tree")
        if self.tree is not None and self.query_id is None:
            raise ConfigError(f"tree {self.tree} holds many queries", remedy="name one with --query ID")
        own_words = {
            "finding": self.finding,
            "magnification": self.magnification,
            "region": self.region,
            "target size": self.target_size,
        }
        given = [name for name, value in own_words.items() if value is not None]
        if self.tree is not None and given:
            raise ConfigError(f"{' and '.join(given)} cannot be given with a tree, which says it all")
        missing = [name for name in ("finding", "magnification") if own_words[name] is None]
        if self.tree is None and missing:
            remedy = "give --finding and --magnification, or --tree and --query"
            raise ConfigError(f"a question needs a {' and a '.join(missing)}", remedy=remedy)

    def pose(self, source: SlideSource, slides: OpenSlides) -> Case:
        """Return the question about a slide.

        Raises:
            SlideError: If the slide cannot be opened or has no physical scale.
            AnnotationError: If the tree is not one, or has no such node, or does not fit the slide.
            ConfigError: If the question cannot be asked.
        """
        if self.tree is not None and self.query_id is not None:
            tree = load_tree(self.tree)
            entry = tree.entry(source.path)
            slide = slides.get(source)
            if not slide.has_mpp and source.mpp is None and entry.mpp is not None:
                source = replace(source, mpp=entry.mpp)
                slide = slides.get(source)
            query, target = tree.case(self.query_id, slide, self.budget)
            return Case(source, slides.facts(source), query, target, self.query_id, target.cut)
        slide = slides.get(source)
        facts = slides.facts(source)
        query, cut = query_of_user(
            slide,
            self.finding or "",
            self.magnification or 0.0,
            region=self.region,
            target_size=self.target_size,
            budget=self.budget,
        )
        return Case(source, facts, query, target_cut=cut)
