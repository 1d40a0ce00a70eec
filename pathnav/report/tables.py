"""A report as tables: what each line and cell says, whatever it is printed with."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pathnav.model.stub import STUB_MODEL
from pathnav.report.comparisons import CONTROL_AGENT, Comparison
from pathnav.report.paper import BASE, PaperRow, budget_name, paper
from pathnav.report.scores import EFFORT, METRICS, SCORES, Cell, Group, Metric, Row
from pathnav.report.statistics import Interval
from pathnav.report.summary import Report, differing_settings

NOTHING = "-"
"""Printed where a score does not apply; a value nobody knows prints as `unknown`."""

Told = Mapping[Group, Mapping[str, Any]]
_MIOU = METRICS[0]


@dataclass(frozen=True, slots=True)
class Entry:
    """One cell of a table.

    Args:
        value: What it says.
        detail: What it rests on: interval, deviating n, unknown values; may be empty.
    """

    value: str
    detail: str = ""

    def __str__(self) -> str:
        return f"{self.value} {self.detail}".rstrip()


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a table.

    Args:
        entries: One a column.
        is_papers: Whether it repeats the paper's values.
    """

    entries: tuple[Entry, ...]
    is_papers: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """A table with a title.

    Args:
        title: One line above it.
        header: Headings, one a column.
        lines: Its lines.
        key_columns: So many columns name a line; they are repeated where a table is cut into parts.
    """

    title: str
    header: tuple[str, ...]
    lines: tuple[Line, ...]
    key_columns: int


def tables(report: Report) -> list[Table]:
    """Return all tables of a report: mean IoU beside the paper's, scores and effort per magnification, comparisons."""
    told = differing_settings(report.rows)
    found = [_overview(report, told)] if report.has_scores else []
    for magnification in report.magnifications:
        rows = [row for row in report.rows if row.group.magnification == magnification]
        found.append(_metric_table(f"Scores at {magnification:g}x", SCORES, rows, told))
        found.append(_metric_table(f"Effort at {magnification:g}x, mean per query", EFFORT, rows, told))
    return found + ([_comparison_table(report.comparisons, told)] if report.comparisons else [])


def _overview(report: Report, told: Told) -> Table:
    """Return mean IoU: a line per agent and budget, a column per magnification, the paper's lines among them."""
    columns = report.magnifications
    by_line: dict[tuple[str, str | None, str, str], dict[float, Row]] = {}
    for row in report.rows:
        group = row.group
        by_line.setdefault((group.agent, group.model, group.variant, _budget_key(group)), {})[group.magnification] = row
    lines: list[Line] = []
    agents = [key[0] for key in by_line]
    for place, rows in enumerate(by_line.values()):
        lines.append(_overview_line(rows, columns, told))
        if agents[place] not in agents[place + 1 :]:
            lines += _paper_lines([r for r in paper().rows if agents[place] in r.beside], columns)
    models = [theirs for magnification in columns for theirs in report.paper_models(magnification)]
    header = ("agent", "budget", *(f"mIoU at {magnification:g}x" for magnification in columns))
    return Table("Mean IoU beside the paper's", header, (*lines, *_paper_lines(models, columns)), key_columns=2)


def _budget_key(group: Group) -> str:
    return budget_name(group.magnification, group.budget) or str(group.budget)


def _overview_line(rows: Mapping[float, Row], columns: Sequence[float], told: Told) -> Line:
    ours = [rows[magnification] for magnification in sorted(rows)]
    budgets = "/".join(str(row.group.budget) for row in ours)
    name = _budget_key(ours[0].group)
    budget = Entry(budgets) if name == budgets else Entry(name, budgets)
    cells = [
        _overview_entry(rows[magnification]) if magnification in rows else Entry(NOTHING) for magnification in columns
    ]
    return Line((_label(ours, told[ours[0].group]), budget, *cells))


def _overview_entry(row: Row) -> Entry:
    entry = _entry(row.cells[_MIOU.name], row, _MIOU)
    return Entry(entry.value, f"{entry.detail} n {_n(row)}".strip())


def _paper_lines(theirs: Sequence[PaperRow], columns: Sequence[float]) -> list[Line]:
    """Return the paper's values, one line a name and budget."""
    by_line: dict[tuple[str, str | None], dict[float, PaperRow]] = {}
    for row in theirs:
        by_line.setdefault((row.name, row.budget), {})[row.magnification] = row
    n = f"n {paper().n_slides}/{paper().n_queries}/?"
    lines = []
    for (name, budget), rows in sorted(by_line.items(), key=lambda item: _paper_place(*item[0])):
        shown = [rows.get(magnification) for magnification in columns]
        rois = "/".join(str(row.rois) for row in shown if row)
        cells = [Entry(f"{row.miou:.3f}{'†' if row.doubted else ''}", n) if row else Entry(NOTHING) for row in shown]
        label = f"  paper: {name}"
        lines.append(Line((Entry(label), Entry(budget, rois) if budget else Entry(NOTHING), *cells), is_papers=True))
    return lines


def _paper_place(name: str, budget: str | None) -> tuple[int, int]:
    """Return where a line stands: in the paper's order."""
    names = list(dict.fromkeys(row.name for row in paper().rows))
    return names.index(name), (None, "tight", BASE, "loose").index(budget)


def _metric_table(title: str, metrics: Sequence[Metric], rows: Sequence[Row], told: Told) -> Table:
    lines = []
    for row in rows:
        name = budget_name(row.group.magnification, row.group.budget)
        budget = Entry(name, str(row.group.budget)) if name else Entry(str(row.group.budget))
        cells = [_entry(row.cells[metric.name], row, metric) for metric in metrics]
        lines.append(Line((_label([row], told[row.group]), budget, Entry(_n(row)), *cells)))
    header = ("agent", "budget", "n", *(metric.label for metric in metrics))
    return Table(title, header, tuple(lines), key_columns=3)


def _label(rows: Sequence[Row], settings: Mapping[str, Any]) -> Entry:
    """Return the name of one agent's rows: with its model, the settings that set it apart, and how it looked."""
    group = rows[0].group
    told = _names(group, settings)
    if group.agent == CONTROL_AGENT:
        told.append("control")
    elif any(row.unbudgeted for row in rows):
        areas = sorted(area for row in rows if (area := row.cells["examined_mm2"].value) is not None)
        span = "-".join(dict.fromkeys(f"{area:.3g}" for area in areas[:1] + areas[-1:]))
        told.append(f"unbudgeted, {span} mm2 read" if areas else "unbudgeted")
    return Entry(group.agent, f"({'; '.join(told)})" if told else "")


def _names(group: Group, settings: Mapping[str, Any]) -> list[str]:
    """Return the model, and the settings in which the row differs from others of its agent."""
    model = [f"{group.model}, not a model" if group.model == STUB_MODEL else group.model] if group.model else []
    return model + [f"{name}={value}" for name, value in settings.items() if value is not None]


def _n(row: Row) -> str:
    return f"{row.n_slides}/{row.n_queries}/{row.n_infra}"


def _entry(cell: Cell, row: Row, metric: Metric) -> Entry:
    """Return one score as text; its n is the row's unless it says otherwise."""
    if cell.value is None:
        return Entry("unknown" if cell.n_unknown else NOTHING)
    detail = [_interval(cell.interval, metric) + ("*" if cell.is_thin else "")]
    if cell.sd_repeats is not None:
        detail.append(f"sd {_number(cell.sd_repeats, metric)}")
    if (cell.n_slides, cell.n_queries) != (row.n_slides, row.n_queries):
        detail.append(f"n {cell.n_slides}/{cell.n_queries}")
    if cell.n_unknown:
        detail.append(f"({cell.n_unknown} unknown)")
    return Entry(_number(cell.value, metric), " ".join(detail))


def _interval(interval: Interval | None, metric: Metric, sign: str = "") -> str:
    if interval is None:
        return "[-]"
    return f"[{_number(interval.low, metric, sign)}, {_number(interval.high, metric, sign)}]"


def _number(value: float, metric: Metric, sign: str = "") -> str:
    return f"{value / metric.unit:{sign},.{metric.digits}f}"


def _comparison_table(comparisons: Sequence[Comparison], told: Told) -> Table:
    header = ("agent", "at", "budget", "against", "n", "mIoU difference", "p", "p (Holm)")
    lines = []
    for found in comparisons:
        group = found.group
        names = _names(group, told[group])
        interval = _interval(found.interval, _MIOU, "+") + ("*" if found.is_thin else "")
        cells = (
            Entry(group.agent, f"({'; '.join(names)})" if names else ""),
            Entry(f"{group.magnification:g}x"),
            Entry(str(group.budget)),
            Entry(found.reference),
            Entry(f"{found.n_slides}/{found.n_queries}"),
            Entry(_number(found.difference, _MIOU, "+"), interval),
            Entry(_p(found.p)),
            Entry(_p(found.p_holm)),
        )
        lines.append(Line(cells))
    title = f"Against baselines on the same queries (paired permutation test by slide, {len(comparisons)} tests)"
    return Table(title, header, tuple(lines), key_columns=4)


def _p(p: float | None) -> str:
    return NOTHING if p is None else f"{p:.4f}"
