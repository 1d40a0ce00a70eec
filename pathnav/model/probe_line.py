"""The line on which `pathnav doctor` asks: every request counted, every answer kept.

A try that failed in a way that may pass is repeated once, a busy server is asked twice more; the client's patience
would take minutes for a server that answers HTTP 500 to what it cannot do. Whether a failure refuses the question or is
the endpoint's end is told by asking again what was answered before: a refusal is heard, all else raises `Undecided`.
"""

import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pathnav.model.failures import CallFailed, Failure
from pathnav.model.parts import Message
from pathnav.model.profile import ToolChoice
from pathnav.model.question import Question
from pathnav.model.reply import Reply, read_reply
from pathnav.model.settings import ChatSettings
from pathnav.model.wire import Wire

MAX_CALLS = 60
"""Requests in all, repeated ones included."""
DEAD_AFTER = 3
"""Tries in a row without any answer after which nothing more is asked."""
_WAITS_S = (1.0, 4.0)  # before the second and the third try
_LONGEST_WAIT_S = 20.0
_KEPT = 400  # characters of an answer that are kept


@dataclass(frozen=True, slots=True)
class Asked:
    """One question; what is None is sent as in a run with the profile that the line starts from.

    Args:
        probe: The check that asks.
        messages: OpenAI chat-completions messages.
        tools: Function schemas on offer.
        truth: What a right answer holds, for the record.
        pictures: Names of the pictures in it, for the record.
        required_tool: The tool that must be called.
        tool_choice: How that is said.
        top_logprobs: Alternatives asked for.
        response_format: What the text is held to.
        seed: A seed of decoding.
        max_tokens: New tokens.
        token_field: What the limit is called.
    """

    probe: str
    messages: Sequence[Mapping[str, Any]]
    tools: Sequence[Mapping[str, Any]] = ()
    truth: object = None
    pictures: Sequence[str] = ()
    required_tool: str | None = None
    tool_choice: ToolChoice | None = None
    top_logprobs: int | None = None
    response_format: Mapping[str, Any] | None = None
    seed: int | None = None
    max_tokens: int | None = None
    token_field: str | None = None

    @property
    def question(self) -> Question:
        """The request's own fields."""
        return Question(
            self.messages, self.tools, self.required_tool, self.top_logprobs, response_format=self.response_format
        )


STILL_THERE = "still_there"
"""What the record calls the question that is asked a second time to see whether the endpoint still answers."""
_REFUSES = re.compile(r"answered HTTP (500|501)\b")


@dataclass(frozen=True, slots=True)
class Heard:
    """What came back: a reply, or a failure with its sentence."""

    reply: Reply | None
    failure: Failure | None = None
    sentence: str = ""

    @property
    def text(self) -> str:
        """The answer's text; empty where there is none."""
        return self.reply.text.strip() if self.reply else ""

    @property
    def is_passing(self) -> bool:
        """Whether it failed for a reason that says nothing of the question: too busy, too slow, cut off.

        HTTP 500 is not one, unless it says when to come again: llama.cpp answers so to images that it cannot take.
        """
        if self.failure is None or not self.failure.retriable:
            return False
        return self.failure.retry_after_s is not None or not _REFUSES.match(self.sentence)

    @property
    def refuses_key(self) -> bool:
        """Whether the key is what the endpoint does not take."""
        return self.failure is not None and self.failure.status in (401, 403)

    @property
    def quoted(self) -> str:
        """What came back in a few words, for a sentence."""
        if self.reply is None:
            return f"it {self.sentence}"
        if self.reply.calls:
            return "it called " + ", ".join(f"{call.name}({call.raw[:60]})" for call in self.reply.calls[:3])
        words = " ".join(self.text.split())
        return f"it said “{words[:80]}{'...' if len(words) > 80 else ''}”" if words else "its answer was empty"


class Undecided(Exception):
    """Raised where nothing was answered that a check could rest on; `pathnav.model.probe_chart.decides` catches it.

    Args:
        sentence: Why, one sentence.
        heard: What came back, None where nothing was asked.
    """

    def __init__(self, sentence: str, heard: Heard | None = None) -> None:
        super().__init__(sentence)
        self.sentence = sentence
        self.heard = heard


@dataclass
class Line:
    """Asks one endpoint; close it.

    Args:
        settings: The endpoint, the decoding, and the profile that it starts from.
        sleep: Waits for the given seconds.
        max_calls: Requests in all.
    """

    settings: ChatSettings
    sleep: Callable[[float], None] = time.sleep
    max_calls: int = MAX_CALLS
    calls: int = 0
    evidence: list[dict[str, Any]] = field(default_factory=list)
    passing: list[str] = field(default_factory=list)
    """What went wrong with tries that failed in a way that passes, one sentence each."""
    seconds: list[float] = field(default_factory=list)
    """How long each answer took."""
    outage: Heard | None = None
    """How the endpoint failed, once it answers no more; then nothing else is asked."""
    _wires: dict[ChatSettings, Wire] = field(default_factory=dict)
    _silent: int = 0
    _answered: Asked | None = None

    def ask(self, asked: Asked) -> Heard:
        """Return an answer, or the refusal of a question by an endpoint that answers others.

        Raises:
            Undecided: If it was not asked, or failed in a way that says nothing of the question.
        """
        self.insist()
        heard = self._repeated(asked)
        if heard.failure is None:
            self._answered = self._answered or asked
            return heard
        if self._answered is not None:
            self._see_whether_it_answers(heard, self._answered)
        if heard.is_passing:
            raise Undecided(f"the question fails: it {heard.sentence}", heard)
        return heard

    def insist(self) -> None:
        """Refuse to go on where no more is asked.

        Raises:
            Undecided: If the endpoint failed, or enough was asked.
        """
        if self.outage is not None:
            raise Undecided("it was not asked: the endpoint failed before")
        if self.calls >= self.max_calls:
            raise Undecided(f"it was not asked: {self.max_calls} requests were made already")

    @property
    def end(self) -> str:
        """How the endpoint failed, a sentence; empty where it did not."""
        count = len(self.seconds)
        after = f"after {count} answer{'' if count == 1 else 's'}"
        return f"the endpoint failed {after}: it {self.outage.sentence}" if self.outage else ""

    def _see_whether_it_answers(self, failed: Heard, answered: Asked) -> None:
        """Ask again what was answered before.

        Raises:
            Undecided: If it is answered no more: the endpoint fails, and the question is not what it refuses.
        """
        silent, self.outage = self._silent, failed
        if silent < DEAD_AFTER:
            self.outage = None
            self.insist()
            again = self._repeated(replace(answered, probe=STILL_THERE))
            if again.failure is None:
                self._silent = silent
                return
            self.outage = again
        raise Undecided(f"the question fails, and so does all else: it {self.outage.sentence}", failed)

    def _repeated(self, asked: Asked) -> Heard:
        """Return what came back in the end, and keep it."""
        for wait_s in (*_WAITS_S, None):
            heard, seconds = self._try(asked)
            failure = heard.failure
            if failure is None or not failure.retriable or failure.unreachable:
                break
            if self.calls >= self.max_calls or self._silent >= DEAD_AFTER:
                break
            if failure.of_settings and not self.seconds:
                break  # nothing has been answered yet: it is the wrong address
            is_busy = heard.is_passing and heard.sentence.startswith("answered")
            once_more = wait_s == _WAITS_S[0] or (wait_s is not None and is_busy)
            if wait_s is None or not once_more or seconds >= self.settings.timeout_s * 0.9:
                break
            self.sleep(min(wait_s if failure.retry_after_s is None else failure.retry_after_s, _LONGEST_WAIT_S))
        self._keep(asked, heard)
        return heard

    def close(self) -> None:
        """Close all connections."""
        for wire in self._wires.values():
            wire.close()

    def _try(self, asked: Asked) -> tuple[Heard, float]:
        """Return what one request came to, and the seconds that it took."""
        self.calls += 1
        started = time.monotonic()
        try:
            body = self._wire(asked).complete(asked.question)
        except CallFailed as error:
            answered = error.failure.sentence.startswith(("answered", "redirects"))
            self._silent = 0 if answered else self._silent + 1
            if error.failure.retriable:
                self.passing.append(self._clean(error.failure.sentence))
            return Heard(None, error.failure, self._clean(error.failure.sentence)), time.monotonic() - started
        self._silent = 0
        self.seconds.append(time.monotonic() - started)
        choice = body["choices"][0]
        reply = read_reply(choice, body.get("usage"), (), self.settings.profile.reasoning_tags)
        return Heard(reply), time.monotonic() - started

    def _wire(self, asked: Asked) -> Wire:
        given = {"tool_choice": asked.tool_choice, "token_field": asked.token_field, "sends_seed": True}
        profile = self.settings.profile.model_copy(update={k: v for k, v in given.items() if v is not None})
        limit = asked.max_tokens or self.settings.max_tokens
        settings = replace(self.settings, profile=profile, max_tokens=limit, seed=asked.seed)
        if settings not in self._wires:
            self._wires[settings] = Wire(settings, 1)
        return self._wires[settings]

    def _keep(self, asked: Asked, heard: Heard) -> None:
        """Keep what was asked and answered, without pixels."""
        reply = heard.reply
        self.evidence.append(
            {
                "probe": asked.probe,
                "asked": _last_words(asked.messages),
                "pictures": list(asked.pictures),
                "truth": asked.truth,
                "text": self._clean(heard.text[:_KEPT]) if reply else None,
                "calls": [{"name": call.name, "arguments": call.raw[:_KEPT]} for call in reply.calls] if reply else [],
                "finish_reason": reply.finish_reason if reply else None,
                "tokens": {"input": reply.tokens.input, "output": reply.tokens.output}
                if reply and reply.tokens
                else None,
                "failure": heard.sentence or None,
            }
        )

    def _clean(self, text: str) -> str:
        """Return a text without the key, where a server echoes it."""
        return text.replace(self.settings.api_key, "[key]") if self.settings.api_key else text


def user(*parts: Message | str) -> Message:
    """Return a user message: plain text where it is nothing else, as every server takes it."""
    if all(isinstance(part, str) for part in parts):
        return {"role": "user", "content": "\n".join(map(str, parts))}
    listed = [{"type": "text", "text": part} if isinstance(part, str) else part for part in parts]
    return {"role": "user", "content": listed}


def _last_words(messages: Sequence[Mapping[str, Any]]) -> str:
    """Return the last user message's text."""
    for message in reversed(messages):
        if message["role"] == "user":
            content = message["content"]
            parts = [content] if isinstance(content, str) else [p["text"] for p in content if p["type"] == "text"]
            return "\n".join(parts)[:_KEPT]
    return ""
