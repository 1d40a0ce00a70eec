"""Mode B as tables: hit rates beside the paper's, the K sweep, what limits a search, what was kept, and effort.

Every table is one ground's: rows whose denominators are the same. Rates are percent.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence

from pathnav.cohort.protocol import MAGNIFICATIONS
from pathnav.report.explorations import SearchRow
from pathnav.report.grounds import Explorations, Ground
from pathnav.report.paper_searches import PaperSearch, PaperTable, paper_hits, paper_sweep
from pathnav.report.ratios import (
    ANSWERS,
    CONDITIONAL,
    EFFORTS,
    HITS,
    PRECISION,
    REACH,
    UNCONDITIONAL,
    Effort,
    MeanCell,
    Ratio,
    RatioCell,
)
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
    """Return the tables of a ground; each has at most three rates with interval and n, to be read at 160 columns."""
    tables: list[Table] = []
    if ground.has_rates:
        tables += [_hit_table(found, ground, schedule, ratio) for schedule in ground.schedules for ratio in HITS]
        tables += [_sweep_table(found, ground, ground.swept)] if ground.swept else []
        tables.append(_reach_table(found, ground))
    tables += [_kept_table(found, ground), _answer_table(found, ground)]
    return [*tables, *_effort_tables(found, ground)]


def _hit_table(found: Explorations, ground: Ground, schedule: tuple[int, ...], ratio: Ratio) -> Table:
    """Return half of the paper's Table I: a line a scorer, one of the hit rates at three magnifications."""
    rows = [row for row in ground.rows if row.group.schedule == schedule]

    def ours(row: SearchRow) -> tuple[Entry, ...]:
        return _label(found, row), *map(_ratio, row.ratios[ratio.name])

    def theirs(row: PaperSearch) -> tuple[Entry, ...]:
        return _papers(row, (row.conditional if ratio is CONDITIONAL else row.unconditional) or (), paper_hits())

    header = ("scorer", *(f"{ratio.label} at {magnification:g}x" for magnification in MAGNIFICATIONS))
    lines = _beside(rows, ours, papers_of(found, ground, paper_hits().at([schedule])), theirs)
    title = f"Mode B at K = {_k(schedule)}: {ratio.label} hit rates in %, {ground.rated_label}"
    return Table(title, header, lines, key_columns=1)


def _sweep_table(found: Explorations, ground: Ground, rows: Rows) -> Table:
    """Return the paper's Table IV: a line a scorer and schedule, unconditional hit rates."""

    def ours(row: SearchRow) -> tuple[Entry, ...]:
        return _label(found, row), Entry(_k(row.group.schedule)), *map(_ratio, row.ratios[UNCONDITIONAL.name])

    def theirs(row: PaperSearch) -> tuple[Entry, ...]:
        name, *cells = _papers(row, row.unconditional, paper_sweep(), DOUBTED)
        return name, Entry(_k(row.schedule)), *cells

    header = ("scorer", "K", *(f"unconditional at {magnification:g}x" for magnification in MAGNIFICATIONS))
    papers = paper_sweep().at(sorted({row.group.schedule for row in rows}))
    lines = _beside(rows, ours, papers_of(found, ground, papers), theirs)
    return Table(f"K sweep: unconditional hit rates in %, {ground.rated_label}", header, lines, key_columns=2)


def papers_of(found: Explorations, ground: Ground, papers: Sequence[PaperSearch]) -> Sequence[PaperSearch]:
    """Return the paper's rows for a ground; of several grounds its models stand only in those with a model of ours."""
    has_models = len(found.grounds) == 1 or any(row.group.model is not None for row in ground.rows)
    names = {row.group.scorer for row in ground.rows if row.group.is_shipped}
    return [paper for paper in papers if (names & set(paper.beside) if paper.beside else has_models)]


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


def _reach_table(found: Explorations, ground: Ground) -> Table:
    """Return what limits a search: the optimum of its schedule, the share of it, what was in reach."""

    def cells(row: SearchRow, level: int) -> Iterator[Entry]:
        yield from (_ratio(row.ratios[ratio.name][level]) for ratio in REACH)

    title = f"Reach of the search: rates in %, {ground.rated_label}"
    return _by_level(found, ground, title, [ratio.label for ratio in REACH], cells)


def _kept_table(found: Explorations, ground: Ground) -> Table:
    """Return how many tiles were kept and, as far as the truth is known, how well: by tile and by slide."""
    ratios = [PRECISION] if ground.has_truth else []
    means = HITS if ground.has_rates else ()

    def cells(row: SearchRow, level: int) -> Iterator[Entry]:
        yield Entry(f"{row.total(lambda one: one.levels[level].kept):,}")
        yield from (_ratio(row.ratios[ratio.name][level]) for ratio in ratios)
        yield from (_mean_of_slides(row.ratios[ratio.name][level]) for ratio in means)

    header = ["kept", *(one.label for one in ratios), *(f"{one.label}, mean of slides" for one in means)]
    title = f"Kept tiles: counts{', rates in %' * ground.has_truth}, {ground.rated_label}"
    return _by_level(found, ground, title, header, cells)


def _answer_table(found: Explorations, ground: Ground) -> Table:
    """Return how scorers answered; slides without truth count as well."""

    def cells(row: SearchRow, level: int) -> Iterator[Entry]:
        yield from (_ratio(row.ratios[ratio.name][level]) for ratio in ANSWERS)
        for count in (
            row.total(lambda one: one.levels[level].tiles),
            row.total(lambda one: one.levels[level].scored),
            row.total(lambda one: one.levels[level].unparsed),
        ):
            yield Entry(f"{count:,}")

    header = [*(ratio.label for ratio in ANSWERS), "tiles", "scored", "unparsed"]
    return _by_level(found, ground, f"Answers: rates in %, counts of tiles, {ground.label}", header, cells)


def _by_level(
    found: Explorations,
    ground: Ground,
    title: str,
    header: Sequence[str],
    cells: Callable[[SearchRow, int], Iterable[Entry]],
) -> Table:
    """Return a table with a line a magnification and row: those of one magnification stand together."""

    def line(row: SearchRow, level: int) -> Line:
        named = Entry(f"{MAGNIFICATIONS[level]:g}x"), _label(found, row), Entry(_k(row.group.schedule))
        return Line((*named, *cells(row, level)))

    lines = tuple(line(row, level) for level in range(len(MAGNIFICATIONS)) for row in ground.rows)
    return Table(title, ("at", "scorer", "K", *header), lines, key_columns=3)


def _effort_tables(found: Explorations, ground: Ground) -> list[Table]:
    """Return what a slide took, and what models were sent and answered, where there are any."""
    printed = [effort for effort in EFFORTS if effort.is_printed]
    work = [effort for effort in printed if not effort.models_only]
    tables = [_effort_table(found, ground.rows, f"Effort, mean per slide, {ground.label}", work)]
    asking = [row for row in ground.rows if row.group.model is not None]
    sent = [effort for effort in printed if effort.models_only]
    title = f"Models: what they were sent and answered, mean per slide, {ground.label}"
    return [*tables, *([_effort_table(found, asking, title, sent)] if asking else [])]


def _effort_table(found: Explorations, rows: Rows, title: str, efforts: Sequence[Effort]) -> Table:
    def line(row: SearchRow) -> Line:
        cells = (_effort(row.efforts[effort.name], effort, len(row.slides)) for effort in efforts)
        n = Entry(f"{len(row.slides)}/{len(row.lost)}")
        return Line((_label(found, row), Entry(_k(row.group.schedule)), n, *cells))

    header = ("scorer", "K", "n slides/lost", *(effort.label for effort in efforts))
    return Table(title, header, tuple(map(line, rows)), key_columns=3)


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
