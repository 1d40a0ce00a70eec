"""What rows are called: what sets them apart, the controls that were on, and the names of budgets."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import PurePath
from typing import Any

from pathnav.cohort.protocol import BUDGETS
from pathnav.model.stub import STUB_MODEL
from pathnav.report.load import SHIPPED_AGENTS
from pathnav.report.paper import budget_name
from pathnav.report.scores import Group, Row

CONTROL_AGENT = "oracle"
"""The harness's control, which is told the target."""
HASH_DIGITS = 7

Words = Mapping[Group, tuple[str, ...]]
"""By row: its model, and whatever else sets it apart from rows of the same name."""
BudgetNames = Mapping[tuple[float, int], str]
"""By magnification and ROIs; what has no entry is a budget of the user's own."""


def is_control(group: Group) -> bool:
    """Return whether this is the harness's control, not an agent that only has its name."""
    return group.is_own(CONTROL_AGENT)


def budget_names(rows: Iterable[Row]) -> dict[tuple[float, int], str]:
    """Return the names of a run's budgets: a record knows one magnification's, a name belongs to all of them.

    A budget has a name only where all magnifications of the run have one of that name.
    """
    used: dict[float, set[int]] = defaultdict(set)
    for row in rows:
        used[row.group.magnification].add(row.group.budget)
    named = {
        name: [(m, rois) for m, all_rois in used.items() for rois in all_rois if budget_name(m, rois) == name]
        for name in BUDGETS
    }
    return {place: name for name, places in named.items() if len(places) == len(used) for place in places}


def controls_text(controls: Mapping[str, Any]) -> str:
    """Return the controls as a reader calls them: `jitter 0.25, swapped findings`; empty where none is on."""
    return ", ".join(
        name.replace("_", " ") if value is True else f"{name.replace('_', ' ')} {value}"
        for name, value in sorted(controls.items())
    )


def controls_of(rows: Iterable[Row]) -> tuple[str, ...]:
    """Return the controls of all rows as text, each combination once; empty text is a row without any."""
    return tuple(sorted({controls_text(row.controls) for row in rows}))


def words(rows: Sequence[Row]) -> Words:
    """Return for each row what is said beside its agent's name."""
    alike: dict[tuple[str, str | None], list[Row]] = defaultdict(list)
    for row in rows:
        alike[row.group.agent, row.group.model].append(row)
    name_controls = len(controls_of(rows)) > 1
    told = {row.group: said for same in alike.values() for row, said in _apart(same, name_controls)}
    return {row.group: told[row.group] for row in rows}


def _apart(rows: Sequence[Row], name_controls: bool) -> Iterator[tuple[Row, tuple[str, ...]]]:
    """Yield rows of one name and model with what tells them apart: settings, origin, and a hash where those do not."""
    settings = differing([flat_variant(row.variant) for row in rows])
    mixed_origins = len({row.group.is_shipped for row in rows}) > 1
    mixed_seeds = len({row.group.seed for row in rows}) > 1
    said = [
        (
            *model_words(row.group.model),
            *([controls_text(row.controls) or "no control"] if name_controls else []),
            *settings_words(flat_variant(row.variant), settings),
            *([f"seed {row.group.seed}"] if mixed_seeds else []),
            *_origin(row, mixed_origins),
        )
        for row in rows
    ]
    configurations = defaultdict(set)
    for row, text in zip(rows, said, strict=True):
        configurations[text].add(row.group.configuration)
    for row, text in zip(rows, said, strict=True):
        ambiguous = len(configurations[text]) > 1
        yield row, (*text, *([f"configuration {row.group.configuration[:HASH_DIGITS]}"] if ambiguous else []))


def model_words(model: str | None) -> list[str]:
    """Return what is said of a row's model; nothing where it asks none."""
    if model is None:
        return []
    return [f"{model}, not a model" if model == STUB_MODEL else model]


def _origin(row: Row, mixed: bool) -> list[str]:
    """Return where an agent comes from, for one that has the name of pathnav's own, and for that one beside it."""
    if row.group.is_shipped:
        return ["pathnav's own"] if mixed else []
    if row.group.agent not in SHIPPED_AGENTS:
        return []
    return [f"not pathnav's: {PurePath(row.origin).name}" if row.origin else "not pathnav's"]


def settings_words(variant: Mapping[tuple[str, ...], Any], paths: Sequence[tuple[str, ...]]) -> list[str]:
    """Return `name=value` of the settings at the given paths; with their part where two have the same name."""
    names = Counter(path[-1] for path in paths)
    return [
        f"{path[-1] if names[path[-1]] == 1 else '.'.join(path)}={variant[path]}"
        for path in paths
        if variant.get(path) is not None
    ]


def flat_variant(variant: Mapping[str, Any]) -> dict[tuple[str, ...], Any]:
    """Return the variant by path: `("settings", "guides")`."""
    flat: dict[tuple[str, ...], Any] = {}
    for part, chosen in variant.items():
        if isinstance(chosen, Mapping):
            flat |= {(part, name): value for name, value in chosen.items()}
        else:
            flat[part,] = chosen
    return flat


def differing(variants: Sequence[Mapping[tuple[str, ...], Any]]) -> list[tuple[str, ...]]:
    """Return the paths at which variants differ, sorted."""
    paths = sorted({path for variant in variants for path in variant})
    return [path for path in paths if any(variant.get(path) != variants[0].get(path) for variant in variants)]
