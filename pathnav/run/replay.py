"""Run a recorded episode again and tell what differs; nothing is asked of a model and nothing is written.

What is run again depends on what the record holds:

- `tools`: of the vlm agent, the overview, every call with the arguments that the model sent, and the report;
- `model`: with `model_from_record`, the agent itself, whose model gives the recorded replies;
- `agent`: of an agent without a model, the agent itself with the recorded seed;
- `actions`: of a user's agent with a model, the overview, the looks that were paid for, and the report;
- `schedule`: of a search, its schedule over the stored scores.
"""

import contextlib
import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pathnav.errors import ConfigError, ContextOverflow, RecordError
from pathnav.geometry import Box
from pathnav.localise.agent import Oracle, recalled
from pathnav.localise.conversation import MemoryRecorder, RecordedChat, reply_of
from pathnav.localise.coordinates import Coordinates
from pathnav.localise.environment import Environment
from pathnav.localise.graph import EpisodeState, Nodes, first_state
from pathnav.localise.outcome import Outcome, final_box
from pathnav.localise.tool import DEFAULT_TOOLS, OfferedTools, load_tools
from pathnav.localise.views import ViewSettings
from pathnav.parallel import caught
from pathnav.records import JsonObject
from pathnav.run.job import sentence
from pathnav.run.plan import Episode
from pathnav.run.replay_agent import recorded_agent
from pathnav.run.replay_chat import RecordedModel, recorded_settings
from pathnav.run.replay_compare import Pictures, Replayed, asked_otherwise, compared_events, compared_fields
from pathnav.run.replay_record import EpisodeRecord, load_record
from pathnav.run.scoring import score

if TYPE_CHECKING:
    from pathnav.slide import Slide

_LOOKS = ("view", "roi", "report")
_KINDS = {
    "tools": (*_LOOKS, "tool"),
    "model": (*_LOOKS, "tool", "request", "reply", "hints"),
    "agent": (*_LOOKS, "retrieval"),
}
_VIEW_OPTIONS = ("guides", "view_px", "jpeg_quality")
_ANSWER = ("box", "reported", "draws", "conclusion", "confidence", "iou", "hit_share", "iou_fallback")


def replay_episode(folder: Path, slide: str | None = None, *, model_from_record: bool = False) -> Replayed:
    """Run a recorded episode again and return what differs.

    Args:
        folder: `RUN/episodes/KEY`.
        slide: Where the slide lies now; default: where the record says.
        model_from_record: Run the agent itself, with the recorded replies in the place of its model.

    Raises:
        RecordError: If the record cannot be replayed: no result, another format, a part that is not there.
        SlideError: If the slide is not there, or is another one.
        PluginError: If the agent or one of its tools is not there.
        ConfigError: If replies are to be taken from a record without any.
    """
    record = load_record(folder)
    if model_from_record and (record.is_search or not record.result.get("model")):
        why = "is a search, whose answers are scores" if record.is_search else "asked no model"
        raise ConfigError(f"{folder} {why}", remedy="leave out --model-from-record")
    if record.is_search:
        from pathnav.run.replay_search import replay_search

        return replay_search(record, slide)
    outcome = Outcome(record.field("outcome"))
    if not outcome.is_agents:
        raise RecordError(f"{folder} ended as {outcome}, which is no answer: continue its run first")
    with contextlib.closing(record.open_slide(slide)) as opened:
        return _Replay(record, opened, model_from_record).to_the_end()


class _Replay:
    """One replay of an episode of Mode A."""

    def __init__(self, record: EpisodeRecord, slide: "Slide", model_from_record: bool) -> None:
        self.record, self.case = record, record.case(slide)
        self.slide, self.recorder = slide, MemoryRecorder()
        self.mode = self._mode(model_from_record)
        self.not_compared: list[str] = []

    def _mode(self, model_from_record: bool) -> str:
        if model_from_record:
            return "model"
        if self.record.result.get("model") is None:
            return "agent"
        return "tools" if self.record.asks_in_turns else "actions"

    def to_the_end(self) -> Replayed:
        """Run it and compare."""
        works: dict[str, Callable[[], tuple[Environment, Outcome | None, list[str]]]] = {
            "tools": self._tools,
            "actions": self._actions,
            "agent": self._agent,
            "model": self._agent,
        }
        environment, outcome, lines = works[self.mode]()
        kinds = _KINDS.get(self.mode, _LOOKS)
        then, pictures = self.record.of_kind(*kinds), Pictures(self.record.images, self.recorder.images)
        lines += compared_events(then, self.recorder.events, kinds, pictures)
        lines += self._compared_result(environment, outcome)
        lines += asked_otherwise(self.record)
        images = sum("sha256" in event for event in then)
        key = str(self.record.field("key"))
        return Replayed(key, self.mode, tuple(lines), len(then), images, tuple(self.not_compared))

    def _environment(self, views: ViewSettings, model: RecordedModel | None = None, seed: int = 0) -> Environment:
        blank = bool(self.case.controls.get("blank_images"))
        return Environment(
            self.slide,
            self.case.query,
            seed=seed,
            unbudgeted=bool(self.record.result.get("unbudgeted")),
            views=dataclasses.replace(views, blank_images=True) if blank else views,
            recorder=self.recorder,
            chat=model.as_client() if model else None,
        )

    def _tools(self) -> tuple[Environment, Outcome | None, list[str]]:
        """Answer every recorded call of the vlm agent."""
        model, settings = RecordedModel(self.record), self.record.result.get("settings") or {}
        views = ViewSettings(**{name: settings[name] for name in _VIEW_OPTIONS if name in settings})
        environment = self._environment(views, model)
        tools = load_tools([*DEFAULT_TOOLS, *settings.get("tools", ())])
        offered = OfferedTools(tools, Coordinates.of(model.settings.profile))
        nodes = Nodes(environment, RecordedChat(model.as_client(), self.recorder), offered)
        if (hints := self.record.event("hints")) is not None:
            recalled(environment, hints)
        state: EpisodeState = {**first_state(), **nodes.brief(first_state())}  # type: ignore[typeddict-item]
        for turn, reply in enumerate(self.record.of_kind("reply")):
            request = self.record.event(f"request:{turn}") or {}
            state["forced"] += request.get("required_tool") is not None
            state["pending"], state["turn"] = reply_of(reply).calls, turn + 1
            if reply["refused"] and not reply["calls"]:
                state["ending"] = Outcome.REFUSED
                environment._set_steps(environment.steps + 1)
                break
            state = {**state, **nodes.act(state)}  # type: ignore[typeddict-item]
        overflowed = self.record.result["outcome"] in (Outcome.CONTEXT_OVERFLOW, Outcome.STEP_LIMIT)
        return environment, None if overflowed else nodes.close(state)["ending"], []

    def _actions(self) -> tuple[Environment, Outcome | None, list[str]]:
        """Look where the record says that was looked, and report what it says was reported."""
        agent = caught(lambda: recorded_agent(self.record).create())
        if isinstance(agent, BaseException):
            self.not_compared.append(f"views: the default ones are used, for {sentence(agent)}")
        environment = self._environment(_views_of(agent), RecordedModel(self.record))
        self.not_compared.append("steps: the record of this agent does not hold refused calls")
        for event in self.record.of_kind(*_LOOKS):
            if event["kind"] == "view":
                environment.overview()
            elif event["kind"] == "roi":
                environment.extract_roi(Box.from_list(event["requested"]), event["reason"])
            else:
                _report(environment, event)
        return environment, None, []

    def _agent(self) -> tuple[Environment, Outcome | None, list[str]]:
        """Run the agent itself."""
        model = RecordedModel(self.record) if self.mode == "model" else None
        choice = recorded_agent(self.record, recorded_settings(self.record) if model else None)
        episode = Episode(self.case, choice, self.record.field("seed"), self.record.result.get("repeat") or 0)
        agent, said = choice.create(), []
        if model is None and choice.configuration != self.record.result.get("configuration"):
            said.append("agent: its code, version or settings are not those of the record")
        environment = self._environment(_views_of(agent), model, episode.own_seed)
        if type(agent) is Oracle and self.case.target is not None:
            agent.accept_target(self.case.target)
        ended = caught(lambda: agent.run(environment))
        if isinstance(ended, BaseException):
            return environment, None, said + self._failure(ended)
        if reason := self.record.result.get("reason"):
            said.append(f"agent: failed when it was recorded, does not now: {reason}")
        returned = ended if isinstance(ended, Outcome) else None
        if environment.finished and returned is not Outcome.FORCED:
            returned = Outcome.FINISHED
        return environment, returned, said

    def _failure(self, error: BaseException) -> list[str]:
        """Return what is to say of an agent that failed; the same failure as then is no difference."""
        if isinstance(error, KeyboardInterrupt):
            raise error
        recorded, now = self.record.result.get("reason"), sentence(error)
        if isinstance(error, ContextOverflow) and self.record.result["outcome"] == Outcome.CONTEXT_OVERFLOW:
            return []
        return [] if recorded == now else [f"agent: fails now: {now}; recorded: {recorded or 'no failure'}"]

    def _compared_result(self, environment: Environment, outcome: Outcome | None) -> list[str]:
        """Return the differences of box, scores and looks."""
        names, then = list(_ANSWER), self.record.result
        if self.case.target is None or self.case.target.equivalents or then.get("iou_any") is None:
            names.append("iou_any")
        else:
            self.not_compared.append("iou_any: the record lacks equivalents, the boxes with the same finding")
        names += ["scored_target", "rois", "rois_used"] + (["steps"] if self.mode != "actions" else [])
        if self.mode != "actions" or not then.get("unbudgeted"):
            names.append("examined_mm2")
        now = self._result(environment)
        if outcome is not None:
            names, now = [*names, "outcome"], {**now, "outcome": str(outcome)}
        return compared_fields("result", {name: then[name] for name in names if name in then}, now)

    def _result(self, environment: Environment) -> JsonObject:
        report, case = environment.report_made, self.case
        scores = score(report, case.query, case.target, self.slide.bounds)
        return {
            "box": final_box(report.box, case.query, self.slide.bounds).as_list() if report else None,
            "reported": report.box.as_list() if report else None,
            "scored_target": case.scored_target.as_list() if case.scored_target else None,
            "draws": len(report.draws) if report is not None and report.draws is not None else None,
            "conclusion": (report.conclusion or None) if report else None,
            "confidence": report.confidence if report else None,
            **dataclasses.asdict(scores),
            "rois": [roi.box.as_list() for roi in environment.rois],
            "rois_used": environment.rois_used,
            "steps": environment.steps,
            "examined_mm2": round(environment.examined_mm2, 6),
        }


def _views_of(agent: Any) -> ViewSettings:
    """Return how an agent is shown images; the default where it does not say, or is not there."""
    views = getattr(agent, "views", None)
    return views if isinstance(views, ViewSettings) else ViewSettings()


def _report(environment: Environment, event: JsonObject) -> None:
    """Hand in a recorded report.

    Raises:
        RecordError: If it was a distribution of more draws than the record writes out.
    """
    if event.get("draws") is None:
        environment.report(Box.from_list(event["box"]), event["conclusion"], event["confidence"])
        return
    if event.get("draw_boxes") is None:
        raise RecordError(f"the record holds the hash of its {event['draws']} draws, not the draws: not replayable")
    environment.report_draws(np.array(event["draw_boxes"]), np.array(event["draw_weights"]), event["conclusion"])
