"""A run's report: rows, comparisons, the paper's values, and the sentences without which they would mislead."""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pathnav.model.stub import STUB_MODEL
from pathnav.report.comparisons import CONTROL_AGENT, Comparison, compare
from pathnav.report.load import RunRecord, load_run
from pathnav.report.paper import BASE, PaperRow, budget_name, paper
from pathnav.report.scores import Cell, Group, Row, score_rows

REPORT_FORMAT = "pathnav-report-1"
_FIRST = ("random", "grid-centroid", "tissue-density", "tissue-weighted", "parent-centre", "clip-retrieval")
"""The paper's order of its baselines; other agents follow by name, the harness's control comes last."""


@dataclass(frozen=True, slots=True)
class Report:
    """All that a report says.

    Args:
        run: The run folder's record.
        rows: Our rows, by magnification and then in the order of print.
        comparisons: Agents against baselines.
        notes: Sentences that stand under the tables.
    """

    run: RunRecord
    rows: tuple[Row, ...]
    comparisons: tuple[Comparison, ...]
    notes: tuple[str, ...]

    @property
    def magnifications(self) -> list[float]:
        """The magnifications that the run asked at, ascending."""
        return sorted({row.group.magnification for row in self.rows})

    @property
    def has_scores(self) -> bool:
        """Whether a target was known anywhere, so that there is something to print beside the paper's values."""
        return any(episode.is_scored for episode in self.run.results)

    @property
    def progress(self) -> str:
        """One sentence on how much of the run is done."""
        lost, missing = sum(row.n_infra for row in self.rows), len(self.run.unfinished)
        parts = [f"{len(self.run.results) - lost} of {self.run.planned} episodes answered"]
        parts += [f"{lost} lost to infrastructure"] if lost else []
        parts += [f"{missing} not finished"] if missing else []
        again = "; run the scenario again to go on" if lost or missing else ""
        return ", ".join(parts) + again

    def paper_models(self, magnification: float) -> list[PaperRow]:
        """Return the paper's models to print at one magnification: with the budgets that this run used."""
        rows = [row for row in self.rows if row.group.magnification == magnification]
        used = {name for row in rows if (name := budget_name(magnification, row.group.budget))}
        return paper().models(magnification, used or {BASE})

    def as_json(self) -> dict[str, Any]:
        """Return the report as one JSON object of the format `pathnav-report-1`; unknown is null."""
        facts = paper()
        return {
            "format": REPORT_FORMAT,
            "folder": str(self.run.folder),
            "name": self.run.name,
            "episodes": {
                "planned": self.run.planned,
                "answered": sum(episode.outcome.is_agents for episode in self.run.results),
                "lost": sum(row.n_infra for row in self.rows),
                "unfinished": list(self.run.unfinished),
            },
            "rows": [_row_json(row) for row in self.rows],
            "comparisons": [_comparison_json(comparison) for comparison in self.comparisons],
            "paper": {
                "source": facts.source,
                "n_slides": facts.n_slides,
                "n_queries": facts.n_queries,
                "rows": [asdict(row) | {"doubted": row.doubted} for row in self._paper_rows()],
            },
            "notes": list(self.notes),
        }

    def _paper_rows(self) -> Iterator[PaperRow]:
        """Yield the paper's values at this run's magnifications, each once."""
        for magnification in self.magnifications:
            yield from (row for row in paper().rows if row.magnification == magnification and row.budget is None)
            yield from self.paper_models(magnification)


def make_report(folder: str | Path) -> Report:
    """Return the report of a run folder, also of one that is not finished.

    Raises:
        RecordError: If the folder is not a run's, or one of its files is damaged or foreign.
    """
    run = load_run(folder)
    rows = tuple(sorted(score_rows(run.results), key=lambda row: (row.group.magnification, _place(row.group))))
    report = Report(run, rows, tuple(compare(rows)), ())
    return Report(run, rows, report.comparisons, tuple(_notes(report)))


def _place(group: Group) -> tuple[int, tuple[float, str, str, int, str, str]]:
    known = _FIRST.index(group.agent) if group.agent in _FIRST else len(_FIRST)
    return (len(_FIRST) + 1 if group.agent == CONTROL_AGENT else known), group.sort_key


def _notes(report: Report) -> Iterator[str]:
    yield from _notes_on_the_run(report)
    yield from _notes_on_statistics(report)
    yield from _notes_on_the_paper(report)


def _notes_on_the_run(report: Report) -> Iterator[str]:
    results, rows = report.run.results, report.rows
    if any(episode.model == STUB_MODEL for episode in results):
        yield f"{STUB_MODEL} is pathnav's offline stub, not a model: its rows show that the harness works, no more."
    slides = {episode.slide.fingerprint: episode.slide.phantom for episode in results}
    if phantoms := sum(slides.values()):
        yield (
            f"{phantoms} of {len(slides)} slides {_are(phantoms)} generated by pathnav (phantoms): "
            "scores on them say nothing about real tissue."
        )
    if any(row.group.agent == CONTROL_AGENT for row in rows):
        yield "oracle is a control of the harness that is told the target; it must score 1."
    if any(row.unbudgeted for row in rows):
        yield "Unbudgeted agents survey the whole search region; 'mm2 read' is how much they read a query."
    if any(episode.draws for episode in results):
        yield "Agents that declare a distribution of boxes (random, tissue-weighted) are scored by its expectation."
    if any(row.n_infra for row in rows):
        yield "Episodes lost to infrastructure are the third number of n and are not scored."
    if untold := sum(episode.outcome.is_agents and episode.iou is None for episode in results):
        yield f"{untold} episode{_s(untold)} without a known target {_are(untold)} not scored."


def _notes_on_statistics(report: Report) -> Iterator[str]:
    cells = [cell for row in report.rows for cell in row.cells.values()]
    if any(cell.is_thin and cell.n_slides for cell in cells):
        yield "* Fewer than 5 slides: the interval is too narrow to rely on; [-] is one slide, which has none."
    if any(cell.sd_repeats is not None for cell in cells):
        yield "sd: standard deviation of the score over repeats; n counts queries, not repeats."
    most = max((comparison.n_slides for comparison in report.comparisons), default=0)
    if 0 < most < 6:
        yield f"With {most} slide{_s(most)} no permutation test by slide can reach p below {2 / 2**most:g}."


def _notes_on_the_paper(report: Report) -> Iterator[str]:
    if not report.has_scores:
        return
    facts = paper()
    yield f"Rows marked 'paper' are printed values of {facts.source} ({facts.n_note}), on its slides, not on these."
    if any(row.group.agent in ("tissue-density", "tissue-weighted") for row in report.rows):
        yield (
            "The paper's tissue row stands beside both of ours, since its section IV-F calls that baseline "
            "tissue-weighted sampling."
        )
    if any(row.doubted for magnification in report.magnifications for row in report.paper_models(magnification)):
        yield f"† {facts.sweep_footnote()}"


def differing_settings(rows: Sequence[Row]) -> dict[Group, dict[str, Any]]:
    """Return for each row the settings by which it differs from others of the same agent and model."""
    told: dict[Group, dict[str, Any]] = {}
    for row in rows:
        group = row.group
        alike = [o.variant for o in rows if (o.group.agent, o.group.model) == (group.agent, group.model)]
        told[group] = {name: row.variant.get(name) for name in _differing(alike)}
    return told


def _differing(variants: Iterable[dict[str, Any]]) -> list[str]:
    known = list(variants)
    names = sorted({name for variant in known for name in variant})
    return [name for name in names if any(variant.get(name) != known[0].get(name) for variant in known)]


def _row_json(row: Row) -> dict[str, Any]:
    group = row.group
    return {
        "agent": group.agent,
        "model": group.model,
        "magnification": group.magnification,
        "budget": group.budget,
        "budget_name": budget_name(group.magnification, group.budget),
        "settings": row.variant,
        "unbudgeted": row.unbudgeted,
        "n_slides": row.n_slides,
        "n_phantoms": row.n_phantoms,
        "n_queries": row.n_queries,
        "n_infra": row.n_infra,
        "repeats": row.repeats,
        "scores": {name: _cell_json(cell) for name, cell in row.cells.items()},
    }


def _cell_json(cell: Cell) -> dict[str, Any]:
    return {
        "value": cell.value,
        "interval": [cell.interval.low, cell.interval.high] if cell.interval else None,
        "n_slides": cell.n_slides,
        "n_queries": cell.n_queries,
        "n_unknown": cell.n_unknown,
        "few_slides": cell.is_thin,
        "sd_repeats": cell.sd_repeats,
    }


def _comparison_json(found: Comparison) -> dict[str, Any]:
    group = found.group
    return {
        "agent": group.agent,
        "model": group.model,
        "magnification": group.magnification,
        "budget": group.budget,
        "settings": json.loads(group.variant),
        "reference": found.reference,
        "difference": found.difference,
        "interval": [found.interval.low, found.interval.high] if found.interval else None,
        "p": found.p,
        "p_holm": found.p_holm,
        "n_slides": found.n_slides,
        "n_queries": found.n_queries,
    }


def _s(count: int) -> str:
    return "" if count == 1 else "s"


def _are(count: int) -> str:
    return "is" if count == 1 else "are"
