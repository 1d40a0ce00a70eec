"""Run one case with one agent, and write down how it ended, whatever happens."""

import contextlib
import dataclasses
import logging
import sqlite3
import time
import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pathnav.errors import (
    ContextOverflow,
    EndpointUnreachable,
    ModelError,
    PathnavError,
    PluginError,
    RecordError,
    RunStopped,
    SlideError,
)
from pathnav.localise.agent import Oracle
from pathnav.localise.environment import Environment
from pathnav.localise.outcome import Outcome
from pathnav.localise.views import ViewSettings
from pathnav.model.terms import Terms
from pathnav.parallel import caught
from pathnav.records import EVENTS_FILE, EventLog, JsonObject, redacted, write_json_atomic
from pathnav.run.case import SlideSource
from pathnav.run.folder import RESULT_FILE, RunFolder
from pathnav.run.job import Attempt, Workplace, sentence
from pathnav.run.ledger import seconds_before
from pathnav.run.plan import Episode
from pathnav.run.result import query_facts, result_of
from pathnav.run.run_recorder import RunRecorder
from pathnav.run.stopped import stopped_by

if TYPE_CHECKING:
    from pathnav.model import ChatClient, ChatSettings
    from pathnav.slide import Slide

logger = logging.getLogger(__name__)

_NOT_THE_AGENTS = (SlideError, ModelError, RecordError, MemoryError, sqlite3.Error)
"""Failures that say nothing about an agent, from wherever they come."""


def kept_result(folder: RunFolder, key: str) -> JsonObject | None:
    """Return the result of an episode that needs no further run: one whose outcome is the agent's own.

    Raises:
        RecordError: If the file is damaged.
    """
    result = folder.result(key)
    return result if result is not None and Outcome(result["outcome"]).is_agents else None


@dataclass(frozen=True)
class EpisodeJob:
    """An episode as the runner runs it: to its end, whatever happens.

    - The endpoint or the slide fails, the disk is full, a tool breaks, or pathnav itself is at fault, as in all that
      happens before the agent's `run`: `infra_error`, run again next time.
    - The conversation grows longer than the model takes, and the agent does not see to it: `context_overflow`.
    - A user's agent raises an error of its own, or lets a refusal escape: the report that it made stands, without one
      the outcome is `no_report`, and `reason` tells the error. It is the agent's failure and is scored as one.
    - The run is stopped, by a guard, an outage or Ctrl-C: `interrupted`, whatever the agent made of the question that
      was not asked any more; next time it runs anew, and the vlm agent takes its replies from the record.

    Args:
        episode: What to run.
    """

    episode: Episode
    units = "episodes"

    @property
    def source(self) -> SlideSource:
        """How its slide is opened."""
        return self.episode.case.source

    @property
    def model(self) -> "ChatSettings | None":
        """The endpoint that it asks, with the seed that is sent."""
        return self.episode.chat_settings

    @property
    def keys(self) -> Sequence[str]:
        """The name of its result in a run folder."""
        return (self.episode.key,)

    def due(self, folder: RunFolder) -> Sequence[str]:
        """Return its key where no result of the agent's own is there yet."""
        return () if kept_result(folder, self.episode.key) is not None else self.keys

    def run(self, at: Workplace, attempt: Attempt) -> Sequence[JsonObject]:
        """Run it, write its result, and return that; nothing where it is finished already."""
        place = at.folder.make_episode(self.episode.key)
        with EventLog(place / EVENTS_FILE, secret=self.episode.agent.secret) as log:
            if not self.due(at.folder):
                return ()
            return (_Run(self.episode, log, at, attempt).to_the_end(),)


class _Run:
    """One attempt at an episode."""

    def __init__(self, episode: Episode, log: EventLog, at: Workplace, attempt: Attempt) -> None:
        self.episode, self.log, self.at, self.attempt = episode, log, at, attempt
        self.place = log.path.parent
        self.environment: Environment | None = None
        self.entered = False
        self.secret = episode.agent.secret
        self.before_s, self.started = seconds_before(log), time.monotonic()
        until_s = None if at.episode_minutes is None else self.started + at.episode_minutes * 60
        self.terms = Terms(until_s, at.stop.check, self._note_failed_call)
        check = self.terms.check_noted
        self.recorder = RunRecorder(log, at.folder.images, check, resumes=episode.agent.resumes)
        self.failed_calls = 0

    def to_the_end(self) -> JsonObject:
        """Run, write the result, and return it."""
        chat = self.at.clients.get(self.episode.chat_settings)
        self.attempt.abandon = self.abandon
        ended = caught(lambda: self._drive(None if chat is None else chat.under(self.terms)))
        self.attempt.abandon = self.terms.on_failed = _nothing  # no cycle keeps the episode's images in memory
        with self.attempt.ending:
            if self.attempt.has_ended:  # another thread has recorded it as interrupted
                return self._result(Outcome.INTERRUPTED, self.at.stop.reason)
            told = caught(lambda: self._told(ended))
            if isinstance(told, BaseException):
                told = self._told_without_environment(told)
            result, outcome = told
            self._write(result, outcome)
        if isinstance(ended, KeyboardInterrupt):
            raise ended
        return result

    def _told(self, ended: Outcome | BaseException) -> tuple[JsonObject, Outcome]:
        """Return result and outcome of what the agent's run came to."""
        outcome, reason = self._failed(ended) if isinstance(ended, BaseException) else (ended, None)
        if self.terms.stopped is not None:
            outcome, reason = Outcome.INTERRUPTED, str(self.terms.stopped)
        return self._result(outcome, reason), outcome

    def _told_without_environment(self, error: BaseException) -> tuple[JsonObject, Outcome]:
        """Return the same where the environment cannot be read: an agent that wrote over its fields did that.

        Raises:
            PathnavError: If it is pathnav's own, as where the endpoint has never answered.
        """
        if isinstance(error, PathnavError | KeyboardInterrupt) or self.environment is None:
            raise error
        self._log_failure(error)
        self.environment = None
        outcome = Outcome.INFRA_ERROR if self.episode.agent.is_pathnavs else Outcome.NO_REPORT
        return self._result(outcome, f"the agent damaged its environment: {sentence(error)}"), outcome

    def abandon(self) -> None:
        """Record the episode as interrupted, from another thread; what its own thread does afterwards is not kept."""
        with self.attempt.ending:
            if not self.attempt.has_ended:
                self._write(self._result(Outcome.INTERRUPTED, self.at.stop.reason), Outcome.INTERRUPTED)
                self.log.close()

    def _result(self, outcome: Outcome, reason: str | None) -> JsonObject:
        whole = {
            **result_of(self.episode, self.environment, self.recorder, outcome),
            "reason": reason,
            "seconds": round(self.before_s + time.monotonic() - self.started, 3),
        }
        return redacted(whole, self.secret)  # type: ignore[no-any-return]  # JSON in, JSON out

    def _note_failed_call(self, seconds: float, sentence: str, tries: int) -> None:
        """Keep that a call failed in the end, after so many requests."""
        self.failed_calls += 1
        event = {"id": f"failed:{self.recorder.attempt}:{self.failed_calls}", "kind": "failed_call"}
        with contextlib.suppress(RecordError):
            told = {"seconds": round(seconds, 3), "tries": tries, "sentence": sentence}
            self.log.append({**event, "take": self.recorder.take, **told})

    def _failed(self, error: BaseException) -> tuple[Outcome, str]:
        """Return outcome and reason of an episode in which something was raised; log it.

        Raises:
            EndpointUnreachable: If it is that: the endpoint has never answered, and nothing was learnt.
        """
        if isinstance(error, KeyboardInterrupt):
            return Outcome.INTERRUPTED, stopped_by()
        if isinstance(error, RunStopped):
            return Outcome.INTERRUPTED, str(error)
        if isinstance(error, EndpointUnreachable):
            raise error
        self._log_failure(error)
        return self._ending_of(error), sentence(error)

    def _drive(self, chat: "ChatClient | None") -> Outcome:
        """Let the agent run and return its outcome."""
        episode, recorder = self.episode, self.recorder
        self.log.append({"id": f"start:{recorder.attempt}", "kind": "start", "take": recorder.take})
        recorder.event("query", "query", **query_facts(episode.case))
        slide = self._slide()
        agent = episode.agent.create()
        self.environment = environment = Environment(
            slide,
            episode.case.query,
            seed=episode.own_seed,
            unbudgeted=episode.agent.unbudgeted,
            views=_views(agent, blank=bool(episode.case.controls.get("blank_images"))),
            recorder=recorder,
            chat=chat if episode.agent.model else None,
            embeddings=self.at.folder.embeddings(slide.reader, slide.mpp_um),
        )
        # By its very class: a plug-in that calls itself oracle, or inherits from it, is told nothing.
        if type(agent) is Oracle and episode.case.target is not None:
            agent.accept_target(episode.case.target)
        self.entered = True
        return outcome_of(agent.run(environment), finished=environment.finished)

    def _slide(self) -> "Slide":
        """Return the episode's slide, open.

        Raises:
            SlideError: If it cannot be opened, or is no longer the one that was planned with.
        """
        case = self.episode.case
        slide = self.at.slides.get(case.source)
        if slide.fingerprint != case.slide.fingerprint:
            raise SlideError(f"{slide.path} was changed since the run was planned; run the command again")
        return slide

    def _ending_of(self, error: BaseException) -> Outcome:
        """Return the outcome of an episode in which something was raised."""
        finished = self.environment is not None and self.environment.finished
        if self.entered and isinstance(error, ContextOverflow):
            return outcome_of(Outcome.CONTEXT_OVERFLOW, finished=finished)
        agent = self.episode.agent
        broken_tool = agent.resumes and isinstance(error, PluginError)  # also under a subclass of the vlm agent
        if not self.entered or agent.is_pathnavs or broken_tool or isinstance(error, _NOT_THE_AGENTS):
            return Outcome.INFRA_ERROR
        return outcome_of(None, finished=finished)

    def _log_failure(self, error: BaseException) -> None:
        """Keep the traceback: the author of an agent will want it."""
        lines = redacted("".join(traceback.format_exception(error)), self.secret)
        logger.debug("episode %s: %s", self.episode.key, lines)
        with contextlib.suppress(RecordError):  # a full disk is what may have gone wrong
            event = {"id": f"error:{self.recorder.attempt}", "kind": "error", "take": self.recorder.take}
            self.log.append({**event, "traceback": lines})

    def _write(self, result: JsonObject, outcome: Outcome) -> None:
        """Write how it ended."""
        self.attempt.has_ended = True
        event = {"id": f"outcome:{self.recorder.attempt}", "kind": "outcome", "take": self.recorder.take}
        self.log.append({**event, "outcome": str(outcome), "reason": result["reason"]})
        write_json_atomic(self.place / RESULT_FILE, result)


def outcome_of(returned: object, *, finished: bool) -> Outcome:
    """Return the outcome that what an agent returned, and whether it reported, make together."""
    if finished:
        return Outcome.FORCED if returned == Outcome.FORCED else Outcome.FINISHED
    if isinstance(returned, Outcome) and returned.is_agents and returned not in (Outcome.FINISHED, Outcome.FORCED):
        return returned
    return Outcome.NO_REPORT


def _nothing(*told: object) -> None:
    """Do what is left to do for an episode that has ended."""


def _views(agent: object, *, blank: bool) -> ViewSettings:
    """Return how images are shown to an agent."""
    views = getattr(agent, "views", None)
    settings = views if isinstance(views, ViewSettings) else ViewSettings()
    return dataclasses.replace(settings, blank_images=True) if blank else settings
