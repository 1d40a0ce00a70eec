"""Ask a chat endpoint; the one place where a failed request is tried again."""

import copy
import itertools
import logging
import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Any

import numpy as np

from pathnav.errors import ContextOverflow, EndpointUnreachable, ModelError
from pathnav.model.backoff import Backoff
from pathnav.model.failures import CallFailed, Failure
from pathnav.model.gate import Gate, Rates
from pathnav.model.hosts import refuse_public
from pathnav.model.profile import ToolCalling
from pathnav.model.question import Question
from pathnav.model.reply import Reply, read_reply
from pathnav.model.settings import ChatSettings, refuse_tracing
from pathnav.model.terms import Terms
from pathnav.model.text_tools import response_format, text_messages, with_actions
from pathnav.records import redacted

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Learnt:
    """What a client learns of its server."""

    gives_logprobs: bool = True


class ChatClient:
    """A client for one endpoint and model, shared by all threads of a run; close it, or use it in a `with`.

    Tried again, at most `backoff.tries` times in all: HTTP 408, 425, 429 and 5xx, time-outs, dropped or refused
    connections, bodies that are no chat completion. Never tried again: any other 4xx, an exhausted quota, a
    conversation too long for the model. A server that refuses a request for log-probabilities is asked the same without
    them, and if it then answers, this client asks it for none any more. Until the endpoint has answered once, an
    address that cannot be reached, a wrong key, an unknown model and a web page in place of an answer are taken for
    mistakes in the settings and reported at once.

    Args:
        settings: The endpoint and the decoding.
        backoff: Tries and waits.
        sleep: Waits for the given seconds; a test passes its own.
        rng: The source of jitter, None for an unseeded one.
        connections: How many requests may be in flight.
        gate: The endpoint's gate, shared with the run's other clients; None for one of its own.

    Raises:
        ConfigError: If LangSmith tracing or its gateway is switched on in the environment, or the endpoint is on a
            public network and was not named in `allow_hosts`.
    """

    def __init__(
        self,
        settings: ChatSettings,
        *,
        backoff: Backoff | None = None,
        sleep: Callable[[float], None] | None = None,
        rng: np.random.Generator | None = None,
        connections: int = 16,
        gate: Gate | None = None,
    ) -> None:
        refuse_tracing(os.environ)
        refuse_public(settings.host, settings.allow_hosts)
        from pathnav.model.wire import Wire  # httpx takes 0.2 s

        self.settings = settings
        self._backoff = backoff or Backoff()
        self._gate = gate or Gate(Rates(connections))
        self._sleep = sleep or self._gate.sleep
        self._rng = rng or np.random.default_rng()
        self._lock = threading.Lock()
        self._learnt = _Learnt()
        self._terms = Terms()
        self._wire = Wire(settings, connections)

    def under(self, terms: Terms) -> "ChatClient":
        """Return the client of one episode, with all that this one has; the caller closes this one alone."""
        client = copy.copy(self)
        client._terms = terms
        return client

    def ask(
        self,
        messages: Sequence[Mapping[str, Any]],
        tools: Sequence[Mapping[str, Any]] = (),
        required_tool: str | None = None,
        *,
        top_logprobs: int | None = None,
    ) -> Reply:
        """Return the endpoint's answer to a conversation.

        Args:
            messages: OpenAI chat-completions messages, images inlined as `data:` URLs; sent exactly as they are.
            tools: OpenAI function schemas.
            required_tool: The name of the tool that must be called.
            top_logprobs: How many alternatives of each answer token are asked for, 0 to 20; None asks for no
                log-probabilities. A server may give none all the same.

        Raises:
            EndpointUnreachable: If the endpoint has never answered, and cannot be used as it was named.
            ContextOverflow: If the conversation is longer than the model's context.
            RunStopped: If nothing is asked any more.
            ModelError: If the endpoint keeps failing, or fails in a way that asking again cannot mend.
        """
        started, before = time.monotonic(), self._wire.sent
        profile, taken = self.settings.profile, _call_ids(messages)
        question = self._question(messages, tools, required_tool, top_logprobs)
        try:
            body = self._completed(question)
        except ModelError as error:
            self._terms.ended(error, time.monotonic() - started, self._wire.sent.requests - before.requests)
            raise
        sent = self._wire.sent
        reply = read_reply(body["choices"][0], body.get("usage"), taken, profile.reasoning_tags)
        return replace(
            with_actions(reply, tools, taken) if profile.tools is ToolCalling.TEXT and tools else reply,
            seconds=time.monotonic() - started,
            retries=sent.requests - before.requests - 1,
            bytes_sent=sent.bytes - before.bytes,
        )

    def _question(
        self,
        messages: Sequence[Mapping[str, Any]],
        tools: Sequence[Mapping[str, Any]],
        required_tool: str | None,
        top_logprobs: int | None,
    ) -> Question:
        """Return what is sent; tools are told in the text where the server knows no calls."""
        profile = self.settings.profile
        chances = top_logprobs if profile.logprobs else None
        if profile.tools is not ToolCalling.TEXT:
            return Question(messages, tools, required_tool, chances)
        form = response_format(profile.structured_output, tools)
        return Question(text_messages(messages, tools), top_logprobs=chances, response_format=form)

    def _completed(self, question: Question) -> dict[str, Any]:
        """Return the body of the answer, after as many tries as it takes."""
        retries = 0
        while True:
            try:
                return self._tried(question, retries)
            except CallFailed as error:
                self._wait_or_raise(error, retries)
                retries += 1

    def _tried(self, question: Question, retries: int) -> dict[str, Any]:
        """Return the body of the answer to one request, sent when gate and guard let it pass.

        A request that is refused for its log-probabilities is sent once more without them, before others may pass: they
        would all be refused too.
        """
        with self._gate.admitted(self._terms.until_s if retries else None) as cuts:
            self._terms.check()
            plain = replace(question, top_logprobs=None)
            asked = question if self._learnt.gives_logprobs else plain
            try:
                body = self._sent(asked, cuts)
            except CallFailed as error:
                if asked.top_logprobs is None or not error.failure.names_logprobs:
                    raise
                body = self._sent(plain, cuts)
                self._ask_for_no_logprobs(error.failure)
            self._gate.succeeded()
        return body

    def _sent(self, question: Question, cuts: int) -> dict[str, Any]:
        """Return the body of the answer to one request, paid for as the guard says."""
        gate = self._gate
        with gate.guard.reserved(self.settings, question, gate.check) as reservation:
            try:
                body = self._wire.complete(question)
            except CallFailed as error:
                if not error.failure.may_cost:
                    reservation.settle(0.0)
                if error.failure.throttles:
                    asked_for = error.failure.retry_after_s
                    is_patient = asked_for is not None and asked_for <= self._backoff.retry_after_limit_s
                    gate.throttled(cuts, asked_for if is_patient else None)
                raise
            if gate.guard.pricing is not None:
                tokens = read_reply(body["choices"][0], body.get("usage")).tokens
                reservation.settle(gate.guard.pricing.cost(self.settings, tokens))
        return body

    def close(self) -> None:
        """Close all connections."""
        self._wire.close()

    def __enter__(self) -> "ChatClient":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()

    def _ask_for_no_logprobs(self, refusal: Failure) -> None:
        """Note that the server takes requests without log-probabilities only; say so once."""
        with self._lock:
            is_news, self._learnt.gives_logprobs = self._learnt.gives_logprobs, False
        if is_news:
            _log.warning("%s; it is asked for no log-probabilities any more", self._said(refusal))

    def _wait_or_raise(self, error: CallFailed, retries: int) -> None:
        """Wait before the next try, or raise what a caller should see."""
        failure = error.failure
        hopeless = failure.of_settings and not self._gate.answered
        if not failure.of_settings:
            self._gate.reached()
        with self._lock:
            draw = float(self._rng.random())
        wait_s = self._backoff.wait_s(retries, draw, failure.retry_after_s)
        if (
            hopeless
            or not failure.retriable
            or retries + 1 >= self._backoff.tries
            or (failure.retry_after_s or 0.0) > self._backoff.retry_after_limit_s
            or self._is_too_late(wait_s)
        ):
            final = self._final(failure, retries + 1, hopeless)
            if not hopeless:
                self._gate.call_failed(failure, str(final))
            raise final from error
        told = f"{self._said(failure)}; try {retries + 2} of {self._backoff.tries} in {wait_s:.1f} s"
        _log.log(logging.WARNING if self._gate.may_warn() else logging.DEBUG, "%s", told)
        self._sleep(wait_s)

    def _is_too_late(self, wait_s: float) -> bool:
        """Return whether the episode's time is up before another try."""
        return self._terms.until_s is not None and time.monotonic() + wait_s > self._terms.until_s

    def _final(self, failure: Failure, tries: int, hopeless: bool) -> ModelError:
        sentence = self._said(failure) + (f" (tried {tries} times)" if tries > 1 else "")
        if failure.retriable and (failure.retry_after_s or 0.0) > self._backoff.retry_after_limit_s:
            sentence += f"; it asks for {failure.retry_after_s:,.0f} s of patience, which is more than is waited"
        if failure.overflow:
            return ContextOverflow(sentence, remedy=failure.remedy)
        return (EndpointUnreachable if hopeless else ModelError)(sentence, remedy=failure.remedy)

    def _said(self, failure: Failure) -> str:
        """Return the failure as a sentence, without the key where a server echoes it."""
        return str(redacted(f"{self.settings.endpoint} {failure.sentence}", self.settings.api_key))


def _call_ids(messages: Sequence[Mapping[str, Any]]) -> set[str]:
    """Return the ids of all tool calls in a conversation."""
    calls = itertools.chain.from_iterable(message.get("tool_calls") or () for message in messages)
    return {call["id"] for call in calls}
