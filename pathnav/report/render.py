"""A report in the forms in which it is read: text, Markdown, CSV, and a terminal."""

import csv
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING

from pathnav.report import exploration_document
from pathnav.report.comparisons import Comparison
from pathnav.report.document import group_facts
from pathnav.report.exploration_tables import LEGEND as LEGEND_B
from pathnav.report.paper import PaperRow, paper
from pathnav.report.scores import METRICS, Group, Row
from pathnav.report.statistics import Interval
from pathnav.report.summary import Report
from pathnav.report.table import Line, Table
from pathnav.report.tables import tables

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table as RichTable

LEGEND = (
    "value [95 % interval, cluster bootstrap by slide]; n = slides/queries/episodes lost to infrastructure, "
    "and stands in a cell where it differs there"
)
_GAP = "  "
_EMPTY = "No episode has a result yet."


class Form(StrEnum):
    """Forms of a report without a terminal; `json` is `Report.as_json`."""

    TEXT = "text"
    MARKDOWN = "markdown"
    CSV = "csv"


def render(report: Report, form: Form = Form.TEXT) -> str:
    """Return a report as text of the given form, as wide as it needs."""
    return {Form.TEXT: text, Form.MARKDOWN: markdown, Form.CSV: comma_separated}[form](report)


def text(report: Report) -> str:
    """Return a report as plain text."""
    parts = [report.title, *report.standing]
    if report.is_empty:
        return "\n".join([*parts, _EMPTY]) + "\n"
    parts += [*_legends(report), *(f"\n{table.title}\n{_aligned(table)}" for table in tables(report)), ""]
    return "\n".join([*parts, *report.notes]) + "\n"


def markdown(report: Report) -> str:
    """Return a report as Markdown."""
    parts = [f"# {report.title}", *(f"{sentence}." for sentence in report.standing)]
    if report.is_empty:
        return "\n\n".join([*parts, _EMPTY]) + "\n"
    parts += [f"{legend[0].upper()}{legend[1:]}." for legend in _legends(report)]
    parts += [f"## {table.title}\n\n{_piped(table)}" for table in tables(report)]
    notes = "\n".join(f"- {note.replace('*', chr(92) + '*', 1) if note[0] == '*' else note}" for note in report.notes)
    return "\n\n".join([*parts, notes]) + "\n"


def _legends(report: Report) -> list[str]:
    """Return what a cell says, for each mode that has rows; each is named where there are two."""
    if not report.explorations or not report.explorations.grounds:
        return [LEGEND] if report.rows else []
    return [f"Mode A: {LEGEND}", f"Mode B: {LEGEND_B}"] if report.rows else [LEGEND_B]


def _aligned(table: Table) -> str:
    rows = [table.header, *(tuple(str(entry) for entry in line.entries) for line in table.lines)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(table.header))]
    ruled = [rows[0], tuple("-" * width for width in widths), *rows[1:]]
    return "\n".join(
        _GAP.join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in ruled
    )


def _piped(table: Table) -> str:
    def piped(cells: Sequence[str]) -> str:
        return "| " + " | ".join(cell.strip().replace("|", "\\|").replace("*", "\\*") for cell in cells) + " |"

    lines = []
    for line in table.lines:
        cells = [str(entry).strip() for entry in line.entries]
        lines.append(piped([f"_{cells[0]}_", *cells[1:]] if line.is_papers else cells))
    return "\n".join([piped(table.header), "|" + " --- |" * len(table.header), *lines])


COLUMNS = (
    *("source", "magnification", "agent", "pathnavs_own", "origin", "model", "budget", "budget_name", "configuration"),
    *("controls", "seed", "version", "settings", "decoding", "unbudgeted", "metric", "value", "low", "high"),
    *("n_slides", "n_queries", "n_infra", "n_unknown", "few_slides", "sd_repeats", "reference", "p", "p_holm", "note"),
)


def comma_separated(report: Report) -> str:
    """Return a report as CSV, one score a line; unknown is empty. The paper's lines have the source `paper`."""
    out = io.StringIO()
    columns = (*COLUMNS, *exploration_document.COLUMNS) if report.explorations else COLUMNS
    writer = csv.DictWriter(out, columns, lineterminator="\n", restval="")
    writer.writeheader()
    facts = {row.group: _csv_row(row, report) for row in report.rows}
    for row in report.rows:
        writer.writerows(facts[row.group] | _csv_cell(row, metric.name) for metric in METRICS)
    writer.writerows(_csv_comparison(found, facts) for found in report.comparisons)
    writer.writerows(_csv_paper(row) for row in report.paper_rows())
    writer.writerows(exploration_document.csv_lines(report.explorations) if report.explorations else ())
    return out.getvalue()


def _csv_row(row: Row, report: Report) -> dict[str, object]:
    """Return what all lines of a row have in common."""
    return {
        "source": "run",
        **group_facts(row.group, report.budget_names),
        "magnification": f"{row.group.magnification:g}",
        "origin": row.origin,
        **{part: json.dumps(chosen, sort_keys=True) for part, chosen in row.variant.items()},
        "version": row.variant["version"],
        "unbudgeted": row.unbudgeted,
    }


def _csv_cell(row: Row, metric: str) -> dict[str, object]:
    cell = row.cells[metric]
    return {
        "metric": metric,
        "value": cell.value,
        **_csv_interval(cell.interval),
        "n_slides": cell.n_slides,
        "n_queries": cell.n_queries,
        "n_infra": row.n_infra,
        "n_unknown": cell.n_unknown,
        "few_slides": cell.is_thin,
        "sd_repeats": cell.sd_repeats,
    }


def _csv_comparison(found: Comparison, facts: Mapping[Group, dict[str, object]]) -> dict[str, object]:
    return {
        **facts[found.group],
        "metric": "miou_difference",
        "value": found.difference,
        **_csv_interval(found.interval),
        "n_slides": found.n_slides,
        "n_queries": found.n_queries,
        "few_slides": found.is_thin,
        "reference": found.reference,
        "p": found.p,
        "p_holm": found.p_holm,
    }


def _csv_interval(interval: Interval | None) -> dict[str, object]:
    return {"low": interval.low, "high": interval.high} if interval else {}


def _csv_paper(row: PaperRow) -> dict[str, object]:
    facts = paper()
    return {
        "source": "paper",
        "magnification": f"{row.magnification:g}",
        "agent": row.name,
        "budget": row.rois,
        "budget_name": row.budget,
        "metric": "miou",
        "value": row.miou,
        "n_slides": facts.n_slides,
        "n_queries": facts.n_queries,
        "note": facts.sweep_footnote() if row.doubted else None,
    }


def print_report(report: Report, console: "Console") -> None:
    """Print a report on a terminal: tables are cut into parts that fit its width, intervals stand under values."""
    from rich.text import Text

    console.print(Text(report.title, style="bold"))
    for sentence in report.standing:
        console.print(Text(sentence))
    if report.is_empty:
        console.print(Text(_EMPTY))
        return
    for legend in _legends(report):
        console.print(Text(legend, style="dim"))
    for table in tables(report):
        for part in _parts(table, console.width):
            console.print()
            console.print(Text(table.title, style="bold"))
            console.print(_rich(part))
    console.print()
    for note in report.notes:
        console.print(Text(note, style="dim"))


def _parts(table: Table, width: int) -> Iterator[Table]:
    """Yield a table as parts that fit a terminal, each with the columns that name a line."""
    widths = [_rich_width(table, column) for column in range(len(table.header))]
    keys = list(range(table.key_columns))
    taken: list[int] = []
    for column in range(table.key_columns, len(table.header)):
        if taken and sum(widths[i] + 2 for i in (*keys, *taken, column)) > width:
            yield _columns(table, [*keys, *taken])
            taken = []
        taken.append(column)
    yield _columns(table, [*keys, *taken])


def _rich_width(table: Table, column: int) -> int:
    entries = [line.entries[column] for line in table.lines]
    return max(len(table.header[column]), *(max(len(entry.value), len(entry.detail)) for entry in entries))


def _columns(table: Table, columns: Sequence[int]) -> Table:
    lines = tuple(Line(tuple(line.entries[i] for i in columns), line.is_papers) for line in table.lines)
    return Table(table.title, tuple(table.header[i] for i in columns), lines, table.key_columns)


def _rich(table: Table) -> "RichTable":
    from rich import box
    from rich.table import Table as RichTable
    from rich.text import Text

    drawn = RichTable(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1))
    for column, heading in enumerate(table.header):
        drawn.add_column(Text(heading), overflow="fold", no_wrap=column >= table.key_columns)  # names give way first
    for line in table.lines:
        cells = []
        for entry in line.entries:
            cell = Text(entry.value)
            cell.append(f"\n{entry.detail}" if entry.detail else "", style="dim")
            cells.append(cell)
        drawn.add_row(*cells, style="dim" if line.is_papers else None)
    return drawn
