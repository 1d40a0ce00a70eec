"""Mode B in JSON and CSV: one object a row, one line a score. Rates are shares; unknown is null, or empty in CSV."""

import json
from collections.abc import Iterator
from typing import Any

from pathnav.cohort.protocol import MAGNIFICATIONS
from pathnav.report.circumstances import told, told_in_a_line
from pathnav.report.explorations import SearchRow
from pathnav.report.grounds import Explorations, Ground
from pathnav.report.paper_searches import PaperSearch, PaperTable, paper_hits, paper_sweep, sweep_footnote
from pathnav.report.ratios import MeanCell, RatioCell
from pathnav.report.statistics import Interval

COLUMNS = (
    *("scorer", "schedule", "fill_to_k", "tile_px", "min_tissue", "set", "numerator", "denominator"),
    *("mean_of_slides", "reader", "mpp_um", "annotation", "annotation_sha256", "annotation_classes"),
)
"""What a CSV with explorations has beside the columns of Mode A; `set` is the number of the lines to compare with."""


def explorations_document(found: Explorations) -> dict[str, Any]:
    """Return Mode B as JSON: rows of one set may be compared, rows of different ones may not."""
    return {
        "planned": found.planned,
        "answered": sum(one.is_finished for one in found.run.explorations),
        "lost": found.lost,
        "sets": [_ground(ground) for ground in found.grounds],
        "rows": [_row(found, row) for row in found.rows],
        "broken_invariants": list(found.broken_invariants),
        "paper": {
            "hits": _paper_table(paper_hits(), found),
            "sweep": {**_paper_table(paper_sweep(), found), "note": sweep_footnote()},
        },
    }


def _ground(ground: Ground) -> dict[str, Any]:
    return {
        "set": ground.number,
        "tile_px": ground.rows[0].group.tile_px,
        "slides": [one.slide.fingerprint for one in ground.slides],
        "missing": dict(ground.missing),
        "without_annotation": [one.slide.fingerprint for one in ground.slides if not one.has_truth],
        "without_tumour": [one.slide.fingerprint for one in ground.slides if one.has_truth and not one.has_tumour],
    }


def set_of(found: Explorations, row: SearchRow) -> int | None:
    """Return the number of a row's set; None for a row without a finished slide."""
    return next((ground.number for ground in found.grounds if any(one is row for one in ground.rows)), None)


def _facts(found: Explorations, row: SearchRow) -> dict[str, Any]:
    group = row.group
    return {
        "scorer": group.scorer,
        "pathnavs_own": group.is_shipped,
        "origin": row.origin,
        "model": group.model,
        "configuration": group.configuration,
        "schedule": list(group.schedule),
        "fill_to_k": group.fill_to_k,
        "tile_px": group.tile_px,
        "min_tissue": group.min_tissue,
        "seed": group.seed,
        **row.variant,
        "set": set_of(found, row),
    }


def _row(found: Explorations, row: SearchRow) -> dict[str, Any]:
    return {
        **_facts(found, row),
        **told((*row.slides, *row.lost)),
        "n_slides": len(row.slides),
        "n_slides_with_tumour": len(row.rated),
        "n_phantoms": sum(one.slide.phantom for one in row.slides),
        "n_infra": len(row.lost),
        "levels": [_level(row, level) for level in range(len(MAGNIFICATIONS))],
        "effort_per_slide": {name: _mean(cell) for name, cell in row.efforts.items()},
    }


def _level(row: SearchRow, level: int) -> dict[str, Any]:
    return {
        "magnification": MAGNIFICATIONS[level],
        "tiles": row.total(lambda one: one.levels[level].tiles),
        "scored": row.total(lambda one: one.levels[level].scored),
        "unparsed": row.total(lambda one: one.levels[level].unparsed),
        "kept": row.total(lambda one: one.levels[level].kept),
        "filled": row.total(lambda one: one.levels[level].filled),
        "calls": row.total(lambda one: one.levels[level].calls),
        "rates": {name: _ratio(cells[level]) for name, cells in row.ratios.items()},
    }


def _ratio(cell: RatioCell) -> dict[str, Any]:
    return {
        "value": cell.value,
        "interval": _interval(cell.interval),
        "n_slides": cell.n_slides,
        "numerator": cell.part,
        "denominator": cell.whole,
        "few_slides": cell.is_thin,
        "mean_of_slides": _mean(cell.macro),
    }


def _mean(cell: MeanCell) -> dict[str, Any]:
    return {
        "value": cell.value,
        "interval": _interval(cell.interval),
        "n_slides": cell.n_slides,
        "n_unknown": cell.n_unknown,
        "few_slides": cell.is_thin,
    }


def _interval(interval: Interval | None) -> list[float] | None:
    return [interval.low, interval.high] if interval else None


def _schedules(found: Explorations) -> list[tuple[int, ...]]:
    """Return the schedules at which ours have a hit rate, so that the paper's can stand beside them."""
    return sorted({schedule for ground in found.grounds if ground.has_rates for schedule in ground.schedules})


def _paper_table(table: PaperTable, found: Explorations) -> dict[str, Any]:
    rows = [
        {
            "name": row.name,
            "schedule": list(row.schedule),
            "beside": list(row.beside),
            **{name: [_share(percent) for percent in values] or None for name, values in _paper_values(row)},
        }
        for row in table.at(_schedules(found))
    ]
    return {"source": table.source, "n_slides": table.n_slides, "rows": rows}


def _paper_values(row: PaperSearch) -> Iterator[tuple[str, tuple[float, ...]]]:
    if row.conditional is not None:
        yield "conditional_hit", row.conditional
    yield "unconditional_hit", row.unconditional


def _share(percent: float) -> float:
    return round(percent / 100, 6)


def csv_lines(found: Explorations) -> Iterator[dict[str, object]]:
    """Yield the lines of Mode B in a CSV, one a score: ours, then the paper's."""
    for row in found.rows:
        facts = _csv_facts(found, row)
        for level, magnification in enumerate(MAGNIFICATIONS):
            at = facts | {"magnification": f"{magnification:g}"}
            yield from (at | _csv_ratio(name, cells[level]) for name, cells in row.ratios.items())
        yield from (facts | _csv_mean(f"{name}_per_slide", cell) for name, cell in row.efforts.items())
    yield from (line for row in paper_hits().at(_schedules(found)) for line in _csv_paper(row, paper_hits(), None))
    note = sweep_footnote()
    yield from (line for row in paper_sweep().at(_schedules(found)) for line in _csv_paper(row, paper_sweep(), note))


def _csv_facts(found: Explorations, row: SearchRow) -> dict[str, object]:
    facts = _facts(found, row)
    texts = {name: json.dumps(facts[name], sort_keys=True) for name in ("settings", "decoding")}
    schedule = ",".join(map(str, row.group.schedule))
    return {"source": "run", **facts, **texts, "schedule": schedule, **_of_slides(row)}


def _of_slides(row: SearchRow) -> dict[str, object]:
    return {**told_in_a_line((*row.slides, *row.lost)), "n_infra": len(row.lost)}


def _csv_ratio(name: str, cell: RatioCell) -> dict[str, object]:
    counts = {"numerator": cell.part, "denominator": cell.whole, "mean_of_slides": cell.macro.value}
    return {"metric": name, **_csv_value(cell), **counts}


def _csv_mean(name: str, cell: MeanCell) -> dict[str, object]:
    return {"metric": name, **_csv_value(cell), "n_unknown": cell.n_unknown}


def _csv_value(cell: RatioCell | MeanCell) -> dict[str, object]:
    ends = {"low": cell.interval.low, "high": cell.interval.high} if cell.interval else {}
    return {"value": cell.value, **ends, "n_slides": cell.n_slides, "few_slides": cell.is_thin}


def _csv_paper(row: PaperSearch, table: PaperTable, note: str | None) -> Iterator[dict[str, object]]:
    for metric, percents in _paper_values(row):
        for magnification, percent in zip(MAGNIFICATIONS, percents or (None,) * len(MAGNIFICATIONS), strict=True):
            yield {
                "source": "paper",
                "scorer": row.name,
                "schedule": ",".join(map(str, row.schedule)),
                "magnification": f"{magnification:g}",
                "metric": metric,
                "value": None if percent is None else _share(percent),
                "n_slides": table.n_slides,
                "note": note,
            }
