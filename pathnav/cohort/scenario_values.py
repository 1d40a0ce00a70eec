"""Values that a scenario may write in more than one way: agents, scorers, budgets and schedules."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pathnav.cohort.complaints import shown
from pathnav.cohort.limits import MAX_BUDGET
from pathnav.cohort.protocol import BUDGETS, budget_for


@dataclass(frozen=True, slots=True)
class Agent:
    """Who is asked: an agent, or a scorer.

    Args:
        spec: What `pathnav.plugins.load(kind, spec)` takes: a name, `file.py:Class` or `package.module:Class`.
        options: Keyword arguments of the class.
    """

    spec: str
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """What tells this agent from the scenario's others, e.g. `vlm(guides=false)`."""
        given = ", ".join(f"{key}={shown(value)}" for key, value in sorted(self.options.items()))
        return f"{self.spec}({given})" if given else self.spec


@dataclass(frozen=True, slots=True)
class Budget:
    """ROIs at (2.5x, 10x, 40x).

    Args:
        name: `tight`, `base`, `loose`, or the numbers, e.g. `4-3-2`.
        rois: One number a magnification.
    """

    name: str
    rois: tuple[int, int, int]

    @classmethod
    def named(cls, name: str) -> "Budget":
        """Return one of the protocol's budgets."""
        return cls(name, BUDGETS[name])

    def at(self, magnification: float) -> int:
        """Return the ROIs granted at a magnification."""
        return budget_for(magnification, self.rois)


def agents_from(value: Any) -> tuple[Agent, ...]:
    """Return the agents of a list whose items are a name or `{name: options}`.

    Raises:
        ValueError: If it is not such a list, or holds an agent twice.
    """
    return _listed(value, "an agent")


def scorers_from(value: Any) -> tuple[Agent, ...]:
    """Return the scorers of a list whose items are a name or `{name: options}`.

    Raises:
        ValueError: If it is not such a list, or holds a scorer twice.
    """
    return _listed(value, "a scorer")


def _listed(value: Any, what: str) -> tuple[Agent, ...]:
    if isinstance(value, str | Mapping) or not isinstance(value, Sequence) or not value:
        raise ValueError(f"must be a list of {what.split()[1]}s, got {shown(value)}")
    agents = tuple(_agent(item, what) for item in value)
    labels = [agent.label for agent in agents]
    double = sorted({label for label in labels if labels.count(label) > 1})
    if double:
        raise ValueError(f"must not hold {what} twice: {', '.join(double)}")
    return agents


def _agent(item: Any, what: str) -> Agent:
    if isinstance(item, Agent):
        return item
    if isinstance(item, str) and item.strip():
        return Agent(item)
    if isinstance(item, Mapping) and len(item) == 1:
        (spec, options), *_ = item.items()
        if isinstance(spec, str) and isinstance(options, Mapping | None):
            return Agent(spec, dict(options or {}))
    raise ValueError(f"{what} must be a name or {{name: options}}, got {shown(item)}")


def agents_to_json(agents: Sequence[Agent]) -> list[Any]:
    """Return the agents as a scenario writes them."""
    return [{agent.spec: dict(agent.options)} if agent.options else agent.spec for agent in agents]


def budgets_from(value: Any) -> tuple[Budget, ...]:
    """Return the budgets of a name, of three numbers, or of `{sweep: [...]}` of these.

    Raises:
        ValueError: If it is none of these, or a sweep holds a budget twice.
    """
    if isinstance(value, tuple) and all(isinstance(item, Budget) for item in value):
        return value
    if not isinstance(value, Mapping):
        return (_budget(value),)
    sweep = value.get("sweep")
    if list(value) != ["sweep"] or not isinstance(sweep, list) or not sweep:
        raise ValueError(f"must be a budget or {{sweep: [budget, ...]}}, got {shown(value)}")
    budgets = tuple(_budget(item) for item in sweep)
    if len({budget.rois for budget in budgets}) < len(budgets):
        raise ValueError(f"sweep must not hold a budget twice, got {shown(sweep)}")
    return budgets


def _budget(value: Any) -> Budget:
    if isinstance(value, str) and value in BUDGETS:
        return Budget.named(value)
    if isinstance(value, list) and len(value) == 3 and all(type(number) is int and number >= 1 for number in value):
        rois = (value[0], value[1], value[2])
        if max(rois) > MAX_BUDGET:
            raise ValueError(f"budget must be at most {MAX_BUDGET:,} ROIs, got {max(rois)}")
        name = next((name for name, numbers in BUDGETS.items() if numbers == rois), "-".join(map(str, rois)))
        return Budget(name, rois)
    raise ValueError(f"must be {', '.join(BUDGETS)} or three whole numbers of at least 1, got {shown(value)}")


def budgets_to_json(budgets: Sequence[Budget]) -> Any:
    """Return the budgets as a scenario writes them, in numbers."""
    numbers = [list(budget.rois) for budget in budgets]
    return numbers[0] if len(numbers) == 1 else {"sweep": numbers}


Keep = tuple[int, int, int]
"""K at 2.5x, 10x and 40x."""


def schedules_from(value: Any) -> tuple[Keep, ...]:
    """Return the schedules of three numbers, or of `{sweep: [...]}` of these.

    Raises:
        ValueError: If it is none of these, or a sweep holds a schedule twice.
    """
    if not isinstance(value, Mapping):
        return (_keep(value),)
    sweep = value.get("sweep")
    if list(value) != ["sweep"] or not isinstance(sweep, list) or not sweep:
        raise ValueError(f"must be a schedule such as [6, 3, 2] or {{sweep: [schedule, ...]}}, got {shown(value)}")
    schedules = tuple(_keep(item) for item in sweep)
    if len(set(schedules)) < len(schedules):
        raise ValueError(f"sweep must not hold a schedule twice, got {shown(sweep)}")
    return schedules


def _keep(value: Any) -> Keep:
    if isinstance(value, list | tuple) and len(value) == 3 and all(type(k) is int and k >= 1 for k in value):
        return value[0], value[1], value[2]
    raise ValueError(f"must be three whole numbers of at least 1 such as [6, 3, 2], got {shown(value)}")


def schedules_to_json(schedules: Sequence[Keep]) -> Any:
    """Return the schedules as a scenario writes them."""
    numbers = [list(keep) for keep in schedules]
    return numbers[0] if len(numbers) == 1 else {"sweep": numbers}
