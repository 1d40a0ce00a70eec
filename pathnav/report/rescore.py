"""Scores made anew from records alone, for the day on which a metric changes: no slide is opened.

Of questions (Mode A) all scores follow from the reported box or draws, the query, the target and the scanned area. Of
searches (Mode B) the rates follow from the counts, as in every report.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from pathnav.cohort.query import Query, Target
from pathnav.explore.hit_rates import HitCounts
from pathnav.geometry import Box, ious
from pathnav.localise.outcome import DRAWS_WRITTEN_OUT
from pathnav.localise.outcome import Report as Answer
from pathnav.records import read_events, read_json
from pathnav.report.load import EpisodeResult, RunRecord
from pathnav.run.folder import EXPLORATION_FORMAT, RESULT_FILE, RESULT_FORMAT, RunFolder
from pathnav.run.scoring import score

SAME = 1e-9
"""Sums over draws may differ by so much from one computer to another."""

_NAMED = 5
"""So many results are named in a sentence."""
_WRITTEN = f"of which up to {DRAWS_WRITTEN_OUT:,} are written out"
_SCORES = ("iou", "hit_share", "iou_fallback", "iou_any")
_RATES = ("conditional_hit", "unconditional_hit", "optimum_hit")


@dataclass(frozen=True, slots=True)
class Rescored:
    """What came of it.

    Args:
        run: The run's record with the scores of now.
        differences: Scores that are not the recorded ones, one line each.
        lacking: Scores that stay as recorded since a record lacks what they follow from, one line a field.
        n_scores: How many scores of questions, and rates of searches, were made anew from something that was answered
            and can be judged; 0 means that nothing was proven.
    """

    run: RunRecord
    differences: tuple[str, ...]
    lacking: tuple[str, ...]
    n_scores: int = 0


def rescored(run: RunRecord) -> Rescored:
    """Return a run's record with its scores made anew.

    Raises:
        RecordError: If a file of the run is damaged.
    """
    home = RunFolder(run.folder)
    differences: list[str] = []
    lacking: dict[str, list[EpisodeResult]] = {}
    results, n_scores = [], 0
    for result in run.results:
        scores, missing = _scores(result, home)
        results.append(result.model_copy(update=scores))
        n_scores += sum(value is not None for value in scores.values())
        differences += [
            f"{result.key}.{name}: recorded {_text(getattr(result, name))}, now {_text(value)}"
            for name, value in scores.items()
            if not _same(getattr(result, name), value)
        ]
        for field, names in missing.items():
            lacking.setdefault(f"{field}, from which {names} follow", []).append(result)
    rates = list(_of_searches(run, home))
    differences += [said for said in rates if said is not None]
    told = [
        f"{len(found)} of {len(results)} results lack {what}: as recorded ({_whose(found)})"
        for what, found in lacking.items()
    ]
    return Rescored(replace(run, results=tuple(results)), tuple(differences), tuple(told), n_scores + len(rates))


def _whose(results: Sequence[EpisodeResult]) -> str:
    """Return the keys of results, each with its agent; of many the first."""
    named = [f"{result.agent} {result.key}" for result in results[:_NAMED]]
    more = [f"and {len(results) - _NAMED} more"] if len(results) > _NAMED else []
    return ", ".join([*named, *more])


def _scores(result: EpisodeResult, home: RunFolder) -> tuple[dict[str, float | None], dict[str, str]]:
    """Return the scores that can be made anew, and the fields that others would need."""
    if not result.outcome.is_agents or result.target is None:
        return dict.fromkeys(_SCORES), {}
    document = read_json(home.episode(result.key) / RESULT_FILE, RESULT_FORMAT)
    same_text = [Box.from_list(box) for box in document.get("equivalents") or ()]
    missing = {} if same_text or not result.has_valid_box else {"equivalents": ["iou_any"]}
    whole = document["slide"].get("whole")
    answer = _answer(result, home)
    if whole is None:
        known = _without_whole(result)
        missing["slide.whole"] = [name for name in _SCORES[:3] if name not in known]
    elif answer is None and result.has_valid_box:
        known, missing = {}, {f"the draws of the report, {_WRITTEN}": list(_SCORES)}
    else:
        target = Target(Box.from_list(result.target), tuple(same_text))
        known = asdict(score(answer, _query(result), target, Box.from_list(whole)))
    left_out = {name for names in missing.values() for name in names}
    return (
        {name: value for name, value in known.items() if name not in left_out},
        {field: " and ".join(names) for field, names in missing.items() if names},
    )


def _without_whole(result: EpisodeResult) -> dict[str, float | None]:
    """Return the scores that follow from the boxes that were compared, which lie inside of the scanned area already."""
    if not result.has_valid_box:
        return {"iou": 0.0, "hit_share": None, "iou_any": 0.0}
    if result.draws is not None or result.box is None or result.scored_target is None:
        return {}
    found = ious(np.array([result.box]), Box.from_list(result.scored_target))
    return {"iou": float(found[0]), "hit_share": None, "iou_fallback": float(found[0])}


def _answer(result: EpisodeResult, home: RunFolder) -> Answer | None:
    """Return what was reported; None without a valid report, and where its draws were not written out."""
    if not result.has_valid_box or result.reported is None:
        return None
    if result.draws is None:
        return Answer(Box.from_list(result.reported))
    reports = [e for e in read_events(home.episode(result.key) / "events.jsonl") if e["kind"] == "report"]
    draws = reports[-1].get("draw_boxes") if reports else None
    if draws is None:
        return None
    weights = np.array(reports[-1]["draw_weights"])
    return Answer(Box.from_list(result.reported), draws=np.array(draws, dtype=np.float64), weights=weights)


def _query(result: EpisodeResult) -> Query:
    asked = result.query
    width, height = asked.target_size
    region = Box.from_list(asked.region)
    return Query(asked.handle, asked.magnification, asked.finding, region, width, height, asked.budget)


def _of_searches(run: RunRecord, home: RunFolder) -> Iterator[str | None]:
    """Yield for each rate of a search None where it follows from the counts beside it, else what differs.

    Tables are made of the counts.
    """
    for result in run.explorations:
        document = read_json(home.episode(result.key) / RESULT_FILE, EXPLORATION_FORMAT)
        for level in document["levels"]:
            at = f"{result.key}, {level['magnification']:g}x"
            yield from (said if said is None else f"{at}, {said}" for said in _rates(level))


def _rates(level: Mapping[str, Any]) -> Iterator[str | None]:
    names = ("positives", "reachable", "kept", "kept_positives", "optimum_positives")
    if any(level.get(name) is None for name in names):
        return
    counts = HitCounts(*(level[name] for name in names))
    for name in _RATES:
        now = getattr(counts, name)
        if name in level and (level[name], now) != (None, None):
            is_same = _same(level[name], now)
            yield None if is_same else f"{name}: recorded {_text(level[name])}, now {_text(now)}"


def _same(then: float | None, now: float | None) -> bool:
    if then is None or now is None:
        return then is now
    return abs(then - now) <= SAME


def _text(value: float | None) -> str:
    return "null" if value is None else f"{value:.6g}"
