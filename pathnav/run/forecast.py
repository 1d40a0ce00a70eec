"""What a scenario would ask for, before anything is asked: `pathnav plan`, `pathnav-plan-1`."""

import dataclasses
import functools
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pathnav import __version__
from pathnav.cohort.scenario import Scenario
from pathnav.model.prices import load_prices
from pathnav.records import JsonObject
from pathnav.run.agent_choice import AgentChoice
from pathnav.run.case import SlideSource
from pathnav.run.episode import kept_result
from pathnav.run.estimate import Bound, Conversation, conversation, episode_bound, most_tiles, search_bound, total
from pathnav.run.exploration import Search, TileSettings
from pathnav.run.explorer import kept_exploration
from pathnav.run.folder import RunFolder
from pathnav.run.open_slides import OpenSlides
from pathnav.run.plan import Episode
from pathnav.run.scorer_choice import ScorerChoice
from pathnav.run.variants import RunPlan, VariantPlan, plan_run

if TYPE_CHECKING:
    from pathnav.model import ChatSettings

PLAN_FORMAT = "pathnav-plan-1"
_NO_ADDRESS = "http://127.0.0.1:9"  # of the stub, which a plan does not start; an address is in no key


@dataclass(frozen=True, slots=True)
class Row:
    """One agent or scorer in one combination.

    Args:
        combination: Number of the combination, from 0.
        mode: `localise` or `explore`.
        name: What the agent or scorer is called, with the options that tell it from others of that name.
        model: The model that it asks, None where it asks none.
        planned: Results asked for: episodes, or a slide's searches by schedule.
        done: Those of them that the run folder holds.
        bound: The most that the others ask for.
        conversation: The longest of them, None without a model, or where nobody can say.
    """

    combination: int
    mode: str
    name: str
    model: str | None
    planned: int
    done: int
    bound: Bound
    conversation: Conversation | None = None


@dataclass(frozen=True, slots=True)
class Forecast:
    """What a scenario would ask for.

    Args:
        scenario: The scenario.
        out: The run folder whose results count as done.
        plan: Its episodes and searches.
        rows: By combination, agents before scorers.
    """

    scenario: Scenario
    out: Path
    plan: RunPlan
    rows: Sequence[Row]

    @property
    def planned(self) -> int:
        """Results asked for."""
        return sum(row.planned for row in self.rows)

    @property
    def done(self) -> int:
        """Results that the run folder holds."""
        return sum(row.done for row in self.rows)

    @property
    def at_most(self) -> Bound:
        """The most that is left to ask for."""
        return total(row.bound for row in self.rows)

    @property
    def axes(self) -> list[tuple[str, list[Any], bool]]:
        """Every sweep by name with its values, and whether it makes combinations."""
        swept: list[tuple[str, list[Any], bool]] = [(axis.name, list(axis.values), True) for axis in self.scenario.axes]
        budgets = [list(budget.rois) for budget in self.scenario.localise.budget]
        schedules = [list(keep) for keep in self.scenario.explore.schedule] if self.scenario.explore else []
        own = (("localise.budget", budgets), ("explore.schedule", schedules))
        return [*swept, *((name, list(values), False) for name, values in own if len(values) > 1)]

    @property
    def warnings(self) -> list[str]:
        """What will or may go wrong, one sentence each."""
        return list(dict.fromkeys(text for row in self.rows if (text := _overflow(row))))

    def as_json(self) -> JsonObject:
        """Return the `pathnav-plan-1` object."""
        return {
            "format": PLAN_FORMAT,
            "pathnav": __version__,
            "name": self.scenario.name,
            "out": str(self.out),
            "prices_date": load_prices(self.scenario.prices).date.isoformat(),
            "axes": [{"name": name, "values": values, "combines": combines} for name, values, combines in self.axes],
            "combinations": [
                {"settings": dict(one.settings), "results": _results(one), "shared": one.shared}
                for one in self.plan.variants
            ],
            "rows": [_row_json(row) for row in self.rows],
            "planned": self.planned,
            "done": self.done,
            "left": self.planned - self.done,
            "at_most": self.at_most.as_json(),
            "warnings": self.warnings,
        }


def make_forecast(scenario: Scenario, out: Path, slides: OpenSlides, notify: Callable[[str], None]) -> Forecast:
    """Return what a scenario would ask for; no model is asked, and no run folder is written to.

    Args:
        scenario: The scenario; its slides are opened, and its phantoms made where they are not yet.
        out: The run folder whose results count as done; it may not exist.
        slides: Where the slides are opened.
        notify: Is told, in one line, when something that takes seconds begins, and what is odd about a slide.

    Raises:
        PathnavError: If something in the scenario is wrong, or the folder's records are damaged.
    """
    plan = plan_run(scenario, _stub(), slides, notify, with_key=False)
    desk = _Desk(RunFolder(out), slides)
    return Forecast(scenario, out, plan, [row for at, one in enumerate(plan.variants) for row in desk.rows(at, one)])


def _stub() -> "ChatSettings":
    """Return the settings of the offline stub, as a run without a model has them."""
    from pathnav.model import ChatSettings
    from pathnav.model.stub import STUB_MODEL

    return ChatSettings(base_url=_NO_ADDRESS, model=STUB_MODEL)


class _Desk:
    """Makes the rows of one combination after the other; counts the tiles of a slide once."""

    def __init__(self, folder: RunFolder, slides: OpenSlides) -> None:
        self._folder = folder if folder.run_json.exists() else None
        self._slides = slides
        self._most_tiles = functools.cache(self._count_tiles)

    def rows(self, number: int, variant: VariantPlan) -> Iterator[Row]:
        """Yield the rows of a combination."""
        asked: dict[str, list[Episode]] = defaultdict(list)
        for episode in variant.episodes:
            asked[episode.agent.configuration].append(episode)
        names = _names([episodes[0].agent for episodes in asked.values()])
        for name, episodes in zip(names, asked.values(), strict=True):
            yield self._of_agent(number, name, episodes)
        scored: dict[str, list[Search]] = defaultdict(list)
        for search in variant.searches:
            scored[search.scorer.configuration].append(search)
        names = _names([searches[0].scorer for searches in scored.values()])
        for name, searches in zip(names, scored.values(), strict=True):
            yield self._of_scorer(number, name, searches)

    def _of_agent(self, number: int, name: str, episodes: Sequence[Episode]) -> Row:
        model = episodes[0].agent.model
        left = [one for one in episodes if self._folder is None or kept_result(self._folder, one.key) is None]
        talks = [talk for one in left if (talk := conversation(one)) is not None]
        return Row(
            *(number, "localise", name, model.model if model else None),
            *(len(episodes), len(episodes) - len(left)),
            total(episode_bound(one) for one in left),
            max(talks, key=lambda talk: (talk.longest, talk.short), default=None),
        )

    def _of_scorer(self, number: int, name: str, searches: Sequence[Search]) -> Row:
        model, bounds, planned, left = searches[0].scorer.model, [], 0, 0
        for search in searches:
            due = [one for one in search.schedules if not self._is_done(search.key(one))]
            planned, left = planned + len(search.schedules), left + len(due)
            tiles = self._most_tiles(search.source, search.tiles, tuple(one.keep for one in due))
            bounds.append(search_bound(search, tiles))
        return Row(
            *(number, "explore", name, model.model if model else None),
            *(planned, planned - left),
            total(bounds),
        )

    def _is_done(self, key: str) -> bool:
        return self._folder is not None and kept_exploration(self._folder, key) is not None

    def _count_tiles(self, source: SlideSource, tiles: TileSettings, keeps: tuple[tuple[int, ...], ...]) -> int:
        from pathnav.explore import TileTree

        if not keeps:
            return 0
        tree = TileTree(self._slides.get(source), tiles.tile_px, tiles.min_tissue)
        return most_tiles(tree.nesting, [tree.eligible(level) for level in range(tree.levels)], keeps)


def _names(chosen: Iterable[AgentChoice | ScorerChoice]) -> list[str]:
    """Return what agents or scorers are called: those of one name with the settings that differ."""
    same: dict[tuple[str, str | None], list[Mapping[str, Any]]] = defaultdict(list)
    kept = [(one.name, one.model.model if one.model else None, one.settings) for one in chosen]
    for name, model, settings in kept:
        same[name, model].append(settings)
    told = []
    for name, model, settings in kept:
        others = same[name, model]
        differing = [key for key in settings if any(other.get(key) != settings[key] for other in others)]
        words = ", ".join(f"{key}={settings[key]}" for key in differing)
        told.append(f"{name}({words})" if words else name)
    return told


def _results(variant: VariantPlan) -> int:
    return len(variant.episodes) + sum(len(search.schedules) for search in variant.searches)


def _row_json(row: Row) -> JsonObject:
    bound = row.bound.as_json()
    talk = dataclasses.asdict(row.conversation) if row.conversation else None
    named = {"combination": row.combination, "mode": row.mode, "name": row.name, "model": row.model}
    return {**named, "planned": row.planned, "done": row.done, **bound, "conversation": talk}


def _overflow(row: Row) -> str | None:
    """Return whether a conversation gets longer than the model's context, as a sentence; None where it does not."""
    talk = row.conversation
    if talk is None or talk.context is None or talk.longest <= talk.context:
        return None
    told = f"the context of {row.model} holds {talk.context:,} tokens, and a conversation of {row.name}"
    mend = "take smaller images (localise.views.view_px), a smaller budget, or images_live in the profile"
    if talk.short > talk.context:
        return f"{told} with its whole budget takes {talk.short:,} or more: it will overflow; {mend}"
    return f"{told} may grow to {talk.longest:,} (with short answers {talk.short:,}); {mend}"
