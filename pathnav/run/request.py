"""One question about one slide: what `pathnav locate` and a program of a few lines run.

result = locate("slide.svs", "dense infiltrate", magnification=10, agent="my_agent.py:MyAgent")
print(result["outcome"], result["box"])
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from pathnav.errors import ConfigError, RecordError
from pathnav.localise.outcome import Outcome
from pathnav.localise.vlm import VlmAgent
from pathnav.model import ChatSettings
from pathnav.model.prices import load_prices
from pathnav.plugins import Plugin
from pathnav.records import JsonObject, utc_now
from pathnav.run.agent_choice import AgentChoice, loaded
from pathnav.run.case import Case, SlideSource
from pathnav.run.description import describe_run
from pathnav.run.endpoint import endpoint
from pathnav.run.episode import EpisodeJob
from pathnav.run.folder import RunFolder, kept_or_temporary
from pathnav.run.open_slides import OpenSlides
from pathnav.run.plan import Episode
from pathnav.run.plugin_identity import uses_model
from pathnav.run.question import Question
from pathnav.run.result import printed, query_facts
from pathnav.run.runner import OnProgress, run_plan
from pathnav.run.stopped import Stopped


@dataclass(frozen=True, slots=True)
class Located:
    """What came of it.

    Args:
        result: The `pathnav-result-1` object.
        case: What was asked.
        out: The run folder, None where it was not kept.
    """

    result: JsonObject
    case: Case
    out: Path | None

    def printed(self) -> dict[str, Any]:
        """Return the object that `locate --json` prints."""
        return printed(self.result, str(self.out) if self.out else None)


@dataclass(frozen=True, slots=True)
class Request:
    """A question, who is asked, and how.

    Args:
        source: The slide.
        question: What is looked for.
        agent: An installed name, `file.py:Class`, `package.module:Class`, or a class.
        options: Keyword arguments of the agent's class.
        model: The chat endpoint of an agent that asks one; default: the offline stub.
        seed: Seed of all that is drawn by chance.
        out: Run folder; default: a temporary one that is removed.
        prices: File of prices; default: those that come with pathnav.
    """

    source: SlideSource
    question: Question
    agent: str | type | Plugin = VlmAgent.name
    options: Mapping[str, Any] = field(default_factory=dict)
    model: ChatSettings | None = None
    seed: int = 0
    out: Path | None = None
    prices: Path | None = None

    def run(self, slides: OpenSlides, on_progress: OnProgress = lambda progress: None) -> Located:
        """Ask, and return what came of it.

        Args:
            slides: Where the slide is opened.
            on_progress: Is told at the beginning and at the end.

        Raises:
            PathnavError: If something in the request is wrong; nothing is written then.
            Stopped: After Ctrl-C, once the episode was recorded as interrupted; a KeyboardInterrupt.
        """
        folder = RunFolder(self.out) if self.out is not None else None
        if folder is not None:
            folder.check()
        plugin = loaded(self.agent)
        if self.model is not None and not uses_model(plugin):
            sentence = f"agent {plugin.name!r} asks no model, and one is named"
            raise ConfigError(sentence, remedy="leave out --model, or name an agent that asks one")
        with endpoint(self.model, needed=uses_model(plugin)) as model:
            agent = AgentChoice.of(plugin, self.options, model)
            case = self.question.pose(self.source, slides)
            episode = Episode(case, agent, self.seed, prices=load_prices(self.prices))
            with kept_or_temporary(folder) as home:
                try:
                    run_plan(
                        [EpisodeJob(episode)], home, self._description(home.path.name, episode), slides, on_progress
                    )
                except KeyboardInterrupt as stop:
                    result = home.result(episode.key)
                    if result is None or result["outcome"] != Outcome.INTERRUPTED:
                        raise
                    raise Stopped(Located(result, case, self.out)) from stop
                result = home.result(episode.key)
        if result is None:
            raise RecordError(f"the result of episode {episode.key} is gone: something else removed it")
        return Located(result, episode.case, self.out)

    def _description(self, name: str, episode: Episode) -> JsonObject:
        """Return what `run.json` says of the episode: the request as resolved, without a key."""
        agent = episode.agent
        asked = {
            "slide": {**asdict(episode.case.source), "path": episode.case.source.place},
            "query": {"id": episode.case.query_id, **query_facts(episode.case)},
            "agent": agent.name,
            "options": agent.settings,
            "model": {"name": agent.model.model, "base_url": self.model and self.model.base_url}
            if agent.model
            else None,
        }
        started = utc_now().isoformat(timespec="seconds")
        cases = [episode.case.as_json()]
        return describe_run(
            name, {"locate": asked}, seed=self.seed, episodes=[episode.key], started=started, cases=cases
        )


def locate(
    slide: str | Path | SlideSource,
    finding: str | None = None,
    magnification: float | None = None,
    *,
    agent: str | type = VlmAgent.name,
    options: Mapping[str, Any] | None = None,
    model: ChatSettings | None = None,
    seed: int = 0,
    out: str | Path | None = None,
    prices: str | Path | None = None,
    **question: Any,
) -> dict[str, Any]:
    """Ask one agent one question about one slide.

    Args:
        slide: A slide file, or a `SlideSource` with its mpp, objective power or reader.
        finding: What to look for; left out with `tree`.
        magnification: 2.5, 10 or 40; left out with `tree`.
        agent: An installed name, `file.py:Class`, `package.module:Class`, or a class.
        options: Keyword arguments of the agent's class.
        model: The chat endpoint; default: the offline stub, for agents that ask one.
        seed: Seed of all that is drawn by chance.
        out: Run folder to keep the record in.
        prices: File of prices; default: those that come with pathnav.
        question: Further fields of `Question`: region, target_size, budget, or tree and query_id.

    Returns: What `pathnav locate --json` prints.

    Raises:
        PathnavError: If something in it is wrong; nothing is written then.
    """
    source = slide if isinstance(slide, SlideSource) else SlideSource(str(slide))
    place, price_file = (None if path is None else Path(path) for path in (out, prices))
    asked = Question(finding, magnification, **question)
    with OpenSlides() as slides:
        located = Request(source, asked, agent, options or {}, model, seed, place, price_file).run(slides)
    return located.printed()
