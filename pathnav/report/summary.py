"""A run's report: rows, comparisons, the paper's values, and the sentences without which they would mislead."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pathnav.report.comparisons import PARENTS, Comparison, compare
from pathnav.report.document import document
from pathnav.report.exploration_notes import exploration_notes
from pathnav.report.grounds import Explorations, explorations_of
from pathnav.report.load import RunRecord, load_run
from pathnav.report.names import BudgetNames, budget_names, controls_of, is_control
from pathnav.report.notes import notes
from pathnav.report.paper import BASE, PaperRow, paper
from pathnav.report.scores import Row, score_rows

_FIRST = ("random", "grid-centroid", "tissue-density", "tissue-weighted", *PARENTS, "clip-retrieval")
"""The paper's order of its baselines; other agents follow by name, the harness's control comes last."""


@dataclass(frozen=True, slots=True)
class Report:
    """All that a report says.

    Args:
        run: The run folder's record.
        rows: Our rows, by magnification and then in the order of print.
        comparisons: Agents against baselines.
        notes: Sentences that stand under the tables.
        explorations: What Mode B came to; None where the run has none.
    """

    run: RunRecord
    rows: tuple[Row, ...]
    comparisons: tuple[Comparison, ...]
    notes: tuple[str, ...]
    explorations: Explorations | None = None

    @property
    def magnifications(self) -> list[float]:
        """The magnifications that the run asked at, ascending."""
        return sorted({row.group.magnification for row in self.rows})

    @property
    def has_scores(self) -> bool:
        """Whether a target was known anywhere, so that there is something to print beside the paper's values."""
        return any(episode.is_scored for episode in self.run.results)

    @property
    def controls(self) -> tuple[str, ...]:
        """The combinations of controls that were on, each as text; empty without any."""
        return tuple(text for text in controls_of(self.rows) if text)

    @property
    def has_paper(self) -> bool:
        """Whether the paper's values can stand beside ours: it used no control."""
        return self.has_scores and not self.controls

    @property
    def budget_names(self) -> BudgetNames:
        """The names of this run's budgets, where they have one."""
        return budget_names(self.rows)

    @property
    def title(self) -> str:
        """The line above a report: the run's modes, its name and its controls."""
        modes = "Mode A" if not self.explorations else "Modes A and B" if self.rows else "Mode B"
        return f"{modes}: {self.run.name}" + (f", under {' or '.join(self.controls)}" if self.controls else "")

    @property
    def answered(self) -> int:
        """Episodes of both modes that have a result of their own."""
        explored = sum(found.is_finished for found in self.run.explorations)
        return sum(episode.outcome.is_agents for episode in self.run.results) + explored

    @property
    def lost(self) -> int:
        """Episodes of both modes that were lost to infrastructure."""
        return sum(row.n_infra for row in self.rows) + (self.explorations.lost if self.explorations else 0)

    @property
    def is_empty(self) -> bool:
        """Whether no episode has a result yet."""
        return not (self.rows or self.run.explorations)

    @property
    def progress(self) -> str:
        """One sentence on how much of the run is done."""
        lost, missing, searched = self.lost, len(self.run.unfinished), len(self.run.explorations)
        done = len(self.run.results) + searched - lost
        finished = sum(found.is_finished for found in self.run.explorations)
        of_both = f" ({finished} of them searches)" if searched and self.rows else ""
        has_searches = bool(searched or self.explorations)
        units = "episodes and searches" if has_searches and self.rows else "searches" if has_searches else "episodes"
        parts = [f"{done} of {self.run.planned} {units} answered{of_both}"]
        parts += [f"{lost} lost to infrastructure"] if lost else []
        parts += [f"{missing} not finished"] if missing else []
        command = "run their commands" if self.run.is_of_requests else "run the scenario"
        again = f"; {command} again to go on" if lost or missing else ""
        return ", ".join(parts) + again

    @property
    def standing(self) -> tuple[str, ...]:
        """How much of the run is done, and what else the folder holds: one sentence each."""
        earlier = self.run.n_earlier
        if not earlier:
            return (self.progress,)
        results, are = ("result", "is") if earlier == 1 else ("results", "are")
        return (
            self.progress,
            f"The folder also holds {earlier} {results} of earlier plans, which {are} not shown here",
        )

    def paper_models(self, magnification: float) -> list[PaperRow]:
        """Return the paper's models to print at one magnification: with the budgets that this run used."""
        if not self.has_paper:
            return []
        return paper().models(magnification, set(self.budget_names.values()) or {BASE})

    def paper_rows(self) -> Iterator[PaperRow]:
        """Yield the paper's values at this run's magnifications, each once; none where they cannot stand beside."""
        for magnification in self.magnifications if self.has_paper else ():
            yield from (row for row in paper().rows if row.magnification == magnification and row.budget is None)
            yield from self.paper_models(magnification)

    def as_json(self) -> dict[str, Any]:
        """Return the report as one JSON object of the format `pathnav-report-1`; unknown is null."""
        return document(self)


def make_report(folder: str | Path) -> Report:
    """Return the report of a run folder's latest plan, also of one that is not finished.

    Raises:
        RecordError: If the folder is not a run's, or one of its files is damaged or foreign.
    """
    return report_of(load_run(folder))


def report_of(run: RunRecord) -> Report:
    """Return the report of a run's record."""
    rows = tuple(sorted(score_rows(run.results), key=_place))
    explorations = explorations_of(run)
    report = Report(run, rows, tuple(compare(rows)), (), explorations)
    said = [*notes(report), *(exploration_notes(explorations) if explorations else ())]
    return replace(report, notes=tuple(dict.fromkeys(said)))  # both modes explain the same stub and the same mark


def _place(row: Row) -> tuple[float, int, tuple[Any, ...]]:
    """Return where a row stands: by magnification, in the paper's order, the harness's control last."""
    group = row.group
    place = _FIRST.index(group.agent) if group.agent in _FIRST else len(_FIRST) + is_control(group)
    return group.magnification, place, group.sort_key
