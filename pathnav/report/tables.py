"""A report as tables: what each line and cell says, whatever it is printed with."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from pathnav.report.comparisons import Comparison
from pathnav.report.exploration_tables import exploration_tables
from pathnav.report.names import BudgetNames, Words, is_control, words
from pathnav.report.paper import BASE, PaperRow, paper
from pathnav.report.scores import EFFORT, METRICS, SCORES, Cell, Group, Metric, Row
from pathnav.report.statistics import Interval
from pathnav.report.summary import Report
from pathnav.report.table import NOTHING, Entry, Line, Table

_MIOU = METRICS[0]


def tables(report: Report) -> list[Table]:
    """Return all tables of a report, those of Mode A first."""
    return _localisation_tables(report) + (exploration_tables(report.explorations) if report.explorations else [])


def _localisation_tables(report: Report) -> list[Table]:
    """Return those of Mode A: mean IoU beside the paper's, scores and effort per magnification, comparisons."""
    told, names = words(report.rows), report.budget_names
    found = [_overview(report, told)] if report.has_scores else []
    for magnification in report.magnifications:
        rows = [row for row in report.rows if row.group.magnification == magnification]
        for title, metrics in (("Scores at {:g}x", SCORES), ("Effort at {:g}x, mean per query", EFFORT)):
            lines = tuple(_metric_line(row, metrics, told, names) for row in rows)
            header = ("agent", "budget", "n", *(metric.label for metric in metrics))
            found.append(Table(title.format(magnification), header, lines, key_columns=3))
    found += [_comparison_table(report.comparisons, told)] if report.comparisons else []
    if not report.controls:
        return found
    under = f", under {' or '.join(report.controls)}"
    return [replace(table, title=table.title + under) for table in found]


def _overview(report: Report, told: Words) -> Table:
    """Return mean IoU: a line per agent and budget, a column per magnification, the paper's lines among them."""
    columns = report.magnifications
    lines: list[Line] = []
    ours = _overview_lines(report)
    agents = [_agent_of(rows) for rows in ours]
    for place, rows in enumerate(ours):
        lines.append(_overview_line(rows, columns, told, report.budget_names))
        if report.has_paper and agents[place] not in agents[place + 1 :]:
            lines += _paper_lines([row for row in paper().rows if agents[place] in row.beside], columns)
    models = [theirs for magnification in columns for theirs in report.paper_models(magnification)]
    header = ("agent", "budget", *(f"mIoU at {magnification:g}x" for magnification in columns))
    title = "Mean IoU beside the paper's" if report.has_paper else "Mean IoU"
    return Table(title, header, (*lines, *_paper_lines(models, columns)), key_columns=2)


def _overview_lines(report: Report) -> list[dict[float, Row]]:
    """Return the rows of each line by magnification: those of one agent with one budget.

    A record holds the budget of its magnification alone. Where that has no name, rows belong together if there is but
    one of them at each magnification; else only those with the same number do.
    """
    by_agent: dict[tuple[Group, str | None], list[Row]] = {}
    for row in report.rows:
        group = row.group
        name = report.budget_names.get((group.magnification, group.budget))
        by_agent.setdefault((replace(group, magnification=0, budget=0), name), []).append(row)
    lines = []
    for rows in by_agent.values():
        unique = len({row.group.magnification for row in rows}) == len(rows)
        for budget in [None] if unique else sorted({row.group.budget for row in rows}):
            lines.append({row.group.magnification: row for row in rows if budget in (None, row.group.budget)})
    return lines


def _agent_of(rows: Mapping[float, Row]) -> str | None:
    """Return the name of pathnav's own agent of these rows, None for another's."""
    group = next(iter(rows.values())).group
    return group.agent if group.is_shipped else None


def _overview_line(rows: Mapping[float, Row], columns: Sequence[float], told: Words, names: BudgetNames) -> Line:
    ours = [rows[magnification] for magnification in sorted(rows)]
    budgets = "/".join(str(rows[m].group.budget) if m in rows else NOTHING for m in columns)
    name = names.get((ours[0].group.magnification, ours[0].group.budget))
    budget = Entry(name, budgets) if name else Entry(budgets)
    cells = [
        _overview_entry(rows[magnification]) if magnification in rows else Entry(NOTHING) for magnification in columns
    ]
    return Line((_label(ours, told), budget, *cells))


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


def _metric_line(row: Row, metrics: Sequence[Metric], told: Words, names: BudgetNames) -> Line:
    name = names.get((row.group.magnification, row.group.budget))
    budget = Entry(name, str(row.group.budget)) if name else Entry(str(row.group.budget))
    return Line((_label([row], told), budget, Entry(_n(row)), *(_entry(row.cells[m.name], row, m) for m in metrics)))


def _label(rows: Sequence[Row], told: Words) -> Entry:
    """Return the name of one agent's rows: with its model, what sets it apart, and how it looked."""
    group = rows[0].group
    said = list(told[group])
    if is_control(group):
        said.append("control")
    elif any(row.unbudgeted for row in rows):
        areas = sorted(area for row in rows if (area := row.cells["examined_mm2"].value) is not None)
        span = "-".join(dict.fromkeys(f"{area:.3g}" for area in areas[:1] + areas[-1:]))
        said.append(f"unbudgeted, {span} mm2 read" if areas else "unbudgeted")
    return Entry(group.agent, f"({'; '.join(said)})" if said else "")


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
    return f"{value / metric.unit:{sign}z,.{metric.digits}f}"


def _comparison_table(comparisons: Sequence[Comparison], told: Words) -> Table:
    header = ("agent", "at", "budget", "against", "n", "mIoU difference", "p", "p (Holm)")
    lines = []
    for found in comparisons:
        group = found.group
        said = told[group]
        interval = _interval(found.interval, _MIOU, "+") + ("*" if found.is_thin else "")
        cells = (
            Entry(group.agent, f"({'; '.join(said)})" if said else ""),
            Entry(f"{group.magnification:g}x"),
            Entry("/".join(str(budget) for budget in found.budgets)),
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
