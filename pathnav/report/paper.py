"""The paper's Mode A values, to be printed beside ours and never mixed with them; they stand in paper.json."""

import json
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

BASE = "base"


@dataclass(frozen=True, slots=True)
class PaperRow:
    """One value of the paper.

    Args:
        name: The paper's name of the row.
        magnification: 2.5, 10 or 40.
        budget: `tight`, `base` or `loose`; None for a baseline, which looks at no ROI.
        rois: ROIs of that budget at this magnification; None for a baseline.
        miou: Mean IoU as printed, three decimals.
        beside: Names of our agents it is printed under; none for a model.
    """

    name: str
    magnification: float
    budget: str | None
    rois: int | None
    miou: float
    beside: tuple[str, ...] = ()

    @property
    def doubted(self) -> bool:
        """Whether this is a cell of the budget sweep, which carries the footnote."""
        return self.budget not in (None, BASE)


@dataclass(frozen=True, slots=True)
class Paper:
    """The paper's Mode A table and budget sweep.

    Args:
        source: Where the values stand.
        n_slides: Slides behind each value.
        n_queries: Queries behind each value.
        n_note: The same in words.
        rows: All values, baselines first, in the paper's order.
    """

    source: str
    n_slides: int
    n_queries: int
    n_note: str
    rows: tuple[PaperRow, ...]

    def baseline(self, agent: str, magnification: float) -> PaperRow | None:
        """Return the row to print beside one of our agents, None where the paper has none."""
        found = [row for row in self.rows if agent in row.beside and row.magnification == magnification]
        return found[0] if found else None

    def models(self, magnification: float, budgets: set[str]) -> list[PaperRow]:
        """Return the paper's models at one magnification, with the named budgets only."""
        return [row for row in self.rows if row.magnification == magnification and row.budget in budgets]

    def sweep_footnote(self) -> str:
        """Return what a reader must know about the tight and loose cells (docs/protocol.md, section 2)."""
        random = {row.magnification: row.miou for row in self.rows if "random" in row.beside}
        doubted = [row for row in self.rows if row.doubted]
        below = sum(row.miou < random[row.magnification] for row in doubted)
        return (
            f"{below} of the paper's {len(doubted)} tight and loose cells lie below its random row, which a valid box "
            "drawn at random would not; most of those runs must have ended without a box."
        )


@cache
def paper() -> Paper:
    """Return the paper's values."""
    facts = json.loads(files("pathnav.report").joinpath("paper.json").read_text("utf-8"))
    magnifications: list[float] = facts["magnifications"]
    rows = [
        PaperRow(entry["name"], magnification, None, None, miou, tuple(entry["beside"]))
        for entry in facts["baselines"]
        for magnification, miou in zip(magnifications, entry["miou"], strict=True)
    ]
    rows += [
        PaperRow(entry["name"], magnification, budget, rois, miou)
        for entry in facts["models"]
        for budget, all_rois in facts["budgets"].items()
        if budget in entry
        for magnification, rois, miou in zip(magnifications, all_rois, entry[budget], strict=True)
    ]
    return Paper(facts["source"], facts["n_slides"], facts["n_queries"], facts["n_note"], tuple(rows))


def budget_name(magnification: float, rois: int) -> str | None:
    """Return the paper's name of a budget at one magnification, None where it has none."""
    named = {row.budget for row in paper().rows if row.magnification == magnification and row.rois == rois}
    return named.pop() if named else None
