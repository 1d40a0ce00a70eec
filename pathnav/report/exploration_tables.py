"""Mode B as tables: hit rates beside the paper's, the K sweep, what limits a search, and effort.

Every table is one ground's: rows whose denominators are the same. Rates are percent.
"""

from collections.abc import Callable, Sequence

from pathnav.cohort.protocol import MAGNIFICATIONS
from pathnav.report.explorations import SearchRow
from pathnav.report.grounds import Explorations, Ground
from pathnav.report.paper_searches import PaperSearch, PaperTable, paper_hits, paper_sweep
from pathnav.report.ratios import CONDITIONAL, EFFORTS, HITS, SEARCH, UNCONDITIONAL, Effort, MeanCell, Ratio, RatioCell
from pathnav.report.statistics import Interval
from pathnav.report.table import NOTHING, Entry, Line, Table

LEGEND = (
    "rates in percent [95 % interval, cluster bootstrap by slide] over the cohort's tiles; n = slides/tiles that the "
    "rate is a share of: for a conditional hit rate the positives within reach, for an unconditional one all positives"
)
DOUBTED = "‡"
"""Marks the paper's K sweep."""

Rows = Sequence[SearchRow]


def exploration_tables(found: Explorations) -> list[Table]:
    """Return all tables of Mode B, ground by ground."""
    return [table for ground in found.grounds for table in _tables(found, ground)]


def _tables(found: Explorations, ground: Ground) -> list[Table]:
    tables = [_hit_table(found, ground, schedule) for schedule in ground.schedules if ground.has_rates]
    tables += [_sweep_table(found, ground, ground.swept)] if ground.swept and ground.has_rates else []
    tables += [_search_table(found, ground, level) for level in range(len(MAGNIFICATIONS))]
    return [*tables, _effort_table(found, ground)]


def _hit_table(found: Explorations, ground: Ground, schedule: tuple[int, ...]) -> Table:
    """Return the paper's Table I: a line a scorer, conditional and unconditional hit rates at three magnifications."""
    rows = [row for row in ground.rows if row.group.schedule == schedule]

    def ours(row: SearchRow) -> tuple[Entry, ...]:
        return (_label(found, row), *(_ratio(cell) for ratio in HITS for cell in row.ratios[ratio.name]))

    def theirs(row: PaperSearch) -> tuple[Entry, ...]:
        return _papers(row, [*(row.conditional or ()), *row.unconditional], paper_hits())

    header = ("scorer", *(f"{ratio.label} at {m:g}x" for ratio in (CONDITIONAL, UNCONDITIONAL) for m in MAGNIFICATIONS))
    lines = _beside(rows, ours, _papers_of(found, ground, paper_hits().at([schedule])), theirs)
    return Table(f"Mode B at K = {_k(schedule)}: hit rates in %, {ground.label}", header, lines, key_columns=1)


def _sweep_table(found: Explorations, ground: Ground, rows: Rows) -> Table:
    """Return the paper's Table IV: a line a scorer and schedule, unconditional hit rates."""

    def ours(row: SearchRow) -> tuple[Entry, ...]:
        return _label(found, row), Entry(_k(row.group.schedule)), *map(_ratio, row.ratios[UNCONDITIONAL.name])

    def theirs(row: PaperSearch) -> tuple[Entry, ...]:
        name, *cells = _papers(row, row.unconditional, paper_sweep(), DOUBTED)
        return name, Entry(_k(row.schedule)), *cells

    header = ("scorer", "K", *(f"unconditional at {magnification:g}x" for magnification in MAGNIFICATIONS))
    papers = paper_sweep().at(sorted({row.group.schedule for row in rows}))
    lines = _beside(rows, ours, _papers_of(found, ground, papers), theirs)
    return Table(f"K sweep: unconditional hit rates in %, {ground.label}", header, lines, key_columns=2)


def _papers_of(found: Explorations, ground: Ground, papers: Sequence[PaperSearch]) -> Sequence[PaperSearch]:
    """Return the paper's rows for a ground; of several grounds its models stand only in those with a model of ours."""
    has_models = len(found.grounds) == 1 or any(row.group.model is not None for row in ground.rows)
    return [paper for paper in papers if paper.beside or has_models]


def _beside(
    rows: Rows,
    ours: Callable[[SearchRow], tuple[Entry, ...]],
    papers: Sequence[PaperSearch],
    theirs: Callable[[PaperSearch], tuple[Entry, ...]],
) -> tuple[Line, ...]:
    """Return our lines, the paper's baselines under the last one of the same name, and its models below."""
    lines: list[Line] = []
    names = [row.group.scorer if row.group.is_shipped else None for row in rows]
    for place, row in enumerate(rows):
        lines.append(Line(ours(row)))
        if names[place] not in names[place + 1 :]:
            lines += [Line(theirs(paper), is_papers=True) for paper in papers if names[place] in paper.beside]
    return (*lines, *(Line(theirs(paper), is_papers=True) for paper in papers if not paper.beside))


def _papers(row: PaperSearch, percents: Sequence[float], table: PaperTable, mark: str = "") -> tuple[Entry, ...]:
    n = f"n {table.n_slides}/?"
    cells = [Entry(f"{percent:.2f}{mark} {n}") for percent in percents] or [Entry(NOTHING)] * len(MAGNIFICATIONS)
    return Entry(f"  paper: {row.name}"), *cells


def _search_table(found: Explorations, ground: Ground, level: int) -> Table:
    """Return what limits a search at one magnification: the optimum, what was in reach, how scorers answered."""
    ratios = [ratio for ratio in SEARCH if ground.has_rates or not ratio.needs_truth or ratio.name == "precision"]
    ratios = [ratio for ratio in ratios if ground.has_truth or not ratio.needs_truth]
    means: list[Ratio] = list(HITS) if ground.has_rates else []

    def line(row: SearchRow) -> Line:
        cells = [_ratio(row.ratios[ratio.name][level]) for ratio in ratios]
        cells += [_mean_of_slides(row.ratios[ratio.name][level]) for ratio in means]
        counts = [
            row.total(lambda one: one.levels[level].tiles),
            row.total(lambda one: one.levels[level].scored),
            row.total(lambda one: one.levels[level].unparsed),
            row.total(lambda one: one.levels[level].kept),
        ]
        return Line(
            (_label(found, row), Entry(_k(row.group.schedule)), *cells, *(Entry(f"{count:,}") for count in counts))
        )

    slide_means = (f"{ratio.label}, mean of slides" for ratio in means)
    header = ("scorer", "K", *(ratio.label for ratio in ratios), *slide_means, "tiles", "scored", "unparsed", "kept")
    title = f"Search at {MAGNIFICATIONS[level]:g}x: rates in %, counts of tiles, {ground.label}"
    return Table(title, header, tuple(map(line, ground.rows)), key_columns=2)


def _effort_table(found: Explorations, ground: Ground) -> Table:
    asks_models = any(row.group.model is not None for row in ground.rows)
    efforts = [effort for effort in EFFORTS if asks_models or not effort.models_only]

    def line(row: SearchRow) -> Line:
        cells = (_effort(row.efforts[effort.name], effort, len(row.slides)) for effort in efforts)
        n = Entry(f"{len(row.slides)}/{len(row.lost)}")
        return Line((_label(found, row), Entry(_k(row.group.schedule)), n, *cells))

    header = ("scorer", "K", "n slides/lost", *(effort.label for effort in efforts))
    return Table(f"Effort, mean per slide, {ground.label}", header, tuple(map(line, ground.rows)), key_columns=3)


def _label(found: Explorations, row: SearchRow) -> Entry:
    said = found.words[row.group.sweep]
    return Entry(row.group.scorer, f"({'; '.join(said)})" if said else "")


def _k(schedule: Sequence[int]) -> str:
    return ",".join(map(str, schedule))


def _ratio(cell: RatioCell) -> Entry:
    n = f"n {cell.n_slides}/{cell.whole}"
    return Entry(NOTHING, n) if cell.value is None else Entry(_percent(cell.value), f"{_percents(cell)} {n}")


def _mean_of_slides(cell: RatioCell) -> Entry:
    mean = cell.macro
    n = f"n {mean.n_slides}"
    return Entry(NOTHING, n) if mean.value is None else Entry(_percent(mean.value), f"{_percents(mean)} {n}")


def _percents(cell: RatioCell | MeanCell) -> str:
    return _interval(cell.interval, _percent) + ("*" if cell.is_thin else "")


def _percent(share: float) -> str:
    return f"{100 * share:.2f}"


def _effort(cell: MeanCell, effort: Effort, n_slides: int) -> Entry:
    """Return an effort as text; its n is the row's unless it says otherwise."""
    if cell.value is None:
        return Entry("unknown" if cell.n_unknown else NOTHING)

    def number(value: float) -> str:
        return f"{value / effort.unit:,.{effort.digits}f}"

    detail = [_interval(cell.interval, number) + ("*" if cell.is_thin else "")]
    detail += [f"n {cell.n_slides}"] if cell.n_slides != n_slides else []
    detail += [f"({cell.n_unknown} unknown)"] if cell.n_unknown else []
    return Entry(number(cell.value), " ".join(detail))


def _interval(interval: Interval | None, number: Callable[[float], str]) -> str:
    return f"[{number(interval.low)}, {number(interval.high)}]" if interval else "[-]"
