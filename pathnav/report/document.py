"""A report as one JSON object of the format `pathnav-report-1`; unknown is null."""

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from pathnav.report.comparisons import Comparison
from pathnav.report.exploration_document import explorations_document
from pathnav.report.names import BudgetNames
from pathnav.report.paper import paper
from pathnav.report.scores import Cell, Group, Row
from pathnav.report.statistics import Interval

if TYPE_CHECKING:
    from pathnav.report.summary import Report

REPORT_FORMAT = "pathnav-report-1"


def document(report: "Report") -> dict[str, Any]:
    """Return a report as JSON."""
    facts, run, names = paper(), report.run, report.budget_names
    variants = {row.group: row.variant for row in report.rows}
    return {
        "format": REPORT_FORMAT,
        "folder": str(run.folder),
        "name": run.name,
        "episodes": {
            "planned": run.planned,
            "answered": report.answered,
            "lost": report.lost,
            "unfinished": list(run.unfinished),
            "earlier": run.n_earlier,
        },
        "controls": list(report.controls),
        "rows": [_row(row, names) for row in report.rows],
        "comparisons": [_comparison(c, variants[c.group], names) for c in report.comparisons],
        "paper": {
            "source": facts.source,
            "n_slides": facts.n_slides,
            "n_queries": facts.n_queries,
            "rows": [asdict(row) | {"doubted": row.doubted} for row in report.paper_rows()],
        },
        "explorations": explorations_document(report.explorations) if report.explorations else None,
        "notes": list(report.notes),
    }


def group_facts(group: Group, names: BudgetNames) -> dict[str, Any]:
    """Return whose row it is, by the names of JSON and CSV; controls as one JSON text."""
    return {
        "agent": group.agent,
        "pathnavs_own": group.is_shipped,
        "model": group.model,
        "magnification": group.magnification,
        "budget": group.budget,
        "budget_name": names.get((group.magnification, group.budget)),
        "configuration": group.configuration,
        "controls": group.controls,
        "seed": group.seed,
    }


def _row(row: Row, names: BudgetNames) -> dict[str, Any]:
    return {
        **group_facts(row.group, names),
        "controls": row.controls,
        "origin": row.origin,
        **row.variant,
        "unbudgeted": row.unbudgeted,
        "n_slides": row.n_slides,
        "n_phantoms": row.n_phantoms,
        "n_queries": row.n_queries,
        "n_infra": row.n_infra,
        "repeats": row.repeats,
        "scores": {name: _cell(cell) for name, cell in row.cells.items()},
    }


def _cell(cell: Cell) -> dict[str, Any]:
    return {
        "value": cell.value,
        "interval": _interval(cell.interval),
        "n_slides": cell.n_slides,
        "n_queries": cell.n_queries,
        "n_unknown": cell.n_unknown,
        "few_slides": cell.is_thin,
        "sd_repeats": cell.sd_repeats,
    }


def _comparison(found: Comparison, variant: dict[str, Any], names: BudgetNames) -> dict[str, Any]:
    return {
        **group_facts(found.group, names),
        **variant,
        "budgets": list(found.budgets),
        "reference": found.reference,
        "difference": found.difference,
        "interval": _interval(found.interval),
        "p": found.p,
        "p_holm": found.p_holm,
        "n_slides": found.n_slides,
        "n_queries": found.n_queries,
    }


def _interval(interval: Interval | None) -> list[float] | None:
    return [interval.low, interval.high] if interval else None
