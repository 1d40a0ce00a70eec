"""One search of one slide: what `pathnav explore` and a program of a few lines run.

result = explore_slide("slide.svs", annotation="slide.geojson", tumour_classes=["tumor"], scorer="nuclear-density")
print(result["levels"][0]["unconditional_hit"])
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from pathnav.cohort.protocol import SCHEDULE
from pathnav.errors import ConfigError, RecordError
from pathnav.explore.schedule import Schedule
from pathnav.localise.outcome import Outcome
from pathnav.model import ChatSettings
from pathnav.model.prices import load_prices
from pathnav.plugins import Plugin
from pathnav.records import JsonObject, utc_now
from pathnav.run.case import SlideSource
from pathnav.run.description import describe_run
from pathnav.run.endpoint import CONNECTIONS, endpoint
from pathnav.run.exploration import Search, TileSettings
from pathnav.run.exploration_result import printed
from pathnav.run.explorer import SearchJob
from pathnav.run.folder import EXPLORATION_FORMAT, RunFolder, kept_or_temporary
from pathnav.run.open_slides import OpenSlides
from pathnav.run.plugin_identity import uses_model
from pathnav.run.runner import OnProgress, Progress, run_plan
from pathnav.run.scorer_choice import ScorerChoice, loaded_scorer
from pathnav.run.stopped import Stopped
from pathnav.run.truth import TruthSource


@dataclass(frozen=True, slots=True)
class Searched:
    """What came of it.

    Args:
        result: The `pathnav-exploration-1` object.
        calls_now: Requests that this process made, failed ones included.
        out: The run folder, None where it was not kept.
    """

    result: JsonObject
    calls_now: int
    out: Path | None

    def printed(self) -> dict[str, Any]:
        """Return the object that `explore --json` prints."""
        return printed(self.result, self.calls_now, str(self.out) if self.out else None)


@dataclass(frozen=True, slots=True)
class ExploreRequest:
    """A slide, who scores its tiles, and how.

    Args:
        source: The slide.
        truth: Where its tumour is annotated.
        scorer: An installed name, `file.py:Class`, `package.module:Class`, or a class.
        options: Keyword arguments of the scorer's class.
        model: The chat endpoint of a scorer that asks one; default: the offline stub.
        schedule: K at 2.5x, 10x and 40x.
        tiles: Which tiles.
        seed: Seed of all that is drawn by chance.
        concurrency: Requests that may be in flight.
        out: Run folder; default: a temporary one that is removed.
        prices: File of prices; default: those that come with pathnav.
    """

    source: SlideSource
    truth: TruthSource = field(default_factory=TruthSource)
    scorer: str | type | Plugin = "vlm"
    options: Mapping[str, Any] = field(default_factory=dict)
    model: ChatSettings | None = None
    schedule: Schedule = field(default_factory=lambda: Schedule(SCHEDULE))
    tiles: TileSettings = field(default_factory=TileSettings)
    seed: int = 0
    concurrency: int = CONNECTIONS
    out: Path | None = None
    prices: Path | None = None

    def run(
        self,
        slides: OpenSlides,
        on_progress: OnProgress = lambda progress: None,
        notify: Callable[[str], None] = lambda line: None,
    ) -> Searched:
        """Search, and return what came of it.

        Args:
            slides: Where the slide is opened.
            on_progress: Is told at the beginning, while tiles are scored, and at the end.
            notify: Is told, in one line, what is odd about slide and annotation.

        Raises:
            PathnavError: If something in the request is wrong, a scorer that breaks its contract before it has scored a
                tile included; nothing is written then.
            Stopped: After Ctrl-C, once the search was recorded as interrupted; a KeyboardInterrupt.
        """
        folder = RunFolder(self.out) if self.out is not None else None
        if folder is not None:
            folder.check()
        plugin = loaded_scorer(self.scorer)
        if self.model is not None and not uses_model(plugin):
            sentence = f"scorer {plugin.name!r} asks no model, and one is named"
            raise ConfigError(sentence, remedy="leave out --model, or name a scorer that asks one")
        with endpoint(self.model, needed=uses_model(plugin)) as model:
            choice = ScorerChoice.of(plugin, self.options, model, seed=self.seed, concurrency=self.concurrency)
            search = self._search(choice, slides, notify)
            with kept_or_temporary(folder) as home:
                return self._made(search, home, slides, on_progress)

    def _made(self, search: Search, home: RunFolder, slides: OpenSlides, on_progress: OnProgress) -> Searched:
        """Run the search into a folder and return what came of it."""
        calls_now = 0

        def counted(progress: Progress) -> None:
            nonlocal calls_now
            calls_now = progress.calls_now
            on_progress(progress)

        key = search.keys[0]
        try:
            calls_now = run_plan(
                [SearchJob(search)], home, self._description(home.path.name, search), slides, counted
            ).calls_now
        except KeyboardInterrupt as stop:
            result = home.result(key, EXPLORATION_FORMAT)
            if result is None or result["outcome"] != Outcome.INTERRUPTED:
                raise
            raise Stopped(Searched(result, calls_now, self.out)) from stop
        result = home.result(key, EXPLORATION_FORMAT)
        if result is None:
            raise RecordError(f"the result of the search {key} is gone: something else removed it")
        return Searched(result, calls_now, self.out)

    def _search(self, scorer: ScorerChoice, slides: OpenSlides, notify: Callable[[str], None]) -> Search:
        facts = slides.facts(self.source)
        for warning in facts.warnings:
            notify(f"warning: {warning}")
        self.tiles.check(slides.get(self.source))
        truth = self.truth.read(slides.get(self.source), notify)
        what = self.source, facts, truth, scorer, (self.schedule,), self.tiles, self.seed
        return Search(*what, is_alone=True, prices=load_prices(self.prices))

    def _description(self, name: str, search: Search) -> JsonObject:
        """Return what `run.json` says of the search: the request as resolved, without a key."""
        scorer = search.scorer
        model = {"name": scorer.model.model, "base_url": self.model and self.model.base_url} if scorer.model else None
        told = {
            "slide": {**asdict(self.source), "path": self.source.place},
            "scorer": scorer.name,
            "options": scorer.settings,
            "model": model,
            "schedule": list(self.schedule.keep),
            **asdict(self.tiles),
        }
        started = utc_now().isoformat(timespec="seconds")
        return describe_run(
            name,
            {"explore": told},
            seed=self.seed,
            episodes=search.keys,
            started=started,
            explorations=[search.as_json()],
        )


def explore_slide(
    slide: str | Path | SlideSource,
    *,
    annotation: str | Path | None = None,
    tumour_classes: Sequence[str] = (),
    schedule: str | Sequence[int] = SCHEDULE,
    out: str | Path | None = None,
    **request: Any,
) -> dict[str, Any]:
    """Search one slide with one scorer.

    Args:
        slide: A slide file, or a `SlideSource` with its mpp, objective power or reader.
        annotation: File of tumour polygons; without one nothing is measured.
        tumour_classes: Its classes that are tumour.
        schedule: K at 2.5x, 10x and 40x.
        out: Run folder to keep record and scores in.
        request: Further fields of `ExploreRequest`: scorer, options, model, tiles, seed, concurrency, prices.

    Returns: What `pathnav explore --json` prints.

    Raises:
        PathnavError: If something in it is wrong; nothing is written then.
    """
    source = slide if isinstance(slide, SlideSource) else SlideSource(str(slide))
    truth = TruthSource(None if annotation is None else str(annotation), tuple(tumour_classes))
    place = None if out is None else Path(out)
    asked = ExploreRequest(source, truth, schedule=Schedule.of(schedule), out=place, **request)
    with OpenSlides() as slides:
        return asked.run(slides).printed()
