"""Ask a chat endpoint; the one place where a failed request is tried again."""

import itertools
import logging
import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import TracebackType
from typing import Any

import numpy as np

from pathnav.errors import ContextOverflow, EndpointUnreachable, ModelError
from pathnav.model.backoff import Backoff
from pathnav.model.failures import CallFailed, Failure
from pathnav.model.reply import Reply, read_reply
from pathnav.model.settings import ChatSettings, refuse_tracing

_log = logging.getLogger(__name__)


class ChatClient:
    """A client for one endpoint and model, shared by all threads of a run; close it, or use it in a `with`.

    Tried again, at most `backoff.tries` times in all: HTTP 408, 425, 429 and 5xx, time-outs, dropped or refused
    connections, bodies that are no chat completion. Never tried again: any other 4xx, an exhausted quota, a
    conversation too long for the model. A server that refuses a request for log-probabilities is asked the same without
    them, and if it then answers, this client asks it for none any more. Until the endpoint has answered once, an
    address that cannot be reached and a web page in place of an answer are taken for mistakes in the settings and
    reported at once.

    Args:
        settings: The endpoint and the decoding.
        backoff: Tries and waits.
        sleep: Waits for the given seconds; a test passes its own.
        rng: The source of jitter, None for an unseeded one.
        connections: How many requests may be in flight.

    Raises:
        ConfigError: If LangSmith tracing or its gateway is switched on in the environment.
    """

    def __init__(
        self,
        settings: ChatSettings,
        *,
        backoff: Backoff | None = None,
        sleep: Callable[[float], None] = time.sleep,
        rng: np.random.Generator | None = None,
        connections: int = 16,
    ) -> None:
        refuse_tracing(os.environ)
        from pathnav.model.wire import Wire  # httpx takes 0.2 s

        self.settings = settings
        self._backoff = backoff or Backoff()
        self._sleep = sleep
        self._rng = rng or np.random.default_rng()
        self._lock = threading.Lock()
        self._answered = False
        self._gives_logprobs = True
        self._wire = Wire(settings, connections)

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
            EndpointUnreachable: If no connection came about and the endpoint has never answered.
            ContextOverflow: If the conversation is longer than the model's context.
            ModelError: If the endpoint keeps failing, or fails in a way that asking again cannot mend.
        """
        started, sent_before = time.monotonic(), self._wire.bytes_sent
        body, retries = self._completed(messages, tools, required_tool, top_logprobs)
        return replace(
            read_reply(body["choices"][0], body.get("usage"), _call_ids(messages)),
            seconds=time.monotonic() - started,
            retries=retries,
            bytes_sent=self._wire.bytes_sent - sent_before,
        )

    def _completed(
        self,
        messages: Sequence[Mapping[str, Any]],
        tools: Sequence[Mapping[str, Any]],
        required_tool: str | None,
        top_logprobs: int | None,
    ) -> tuple[dict[str, Any], int]:
        """Return the body of the answer and how many tries failed before it."""
        retries, refusal = 0, None
        while True:
            wanted = top_logprobs if self._gives_logprobs and refusal is None else None
            try:
                body = self._wire.complete(messages, tools, required_tool, wanted)
                break
            except CallFailed as error:
                if wanted is not None and error.failure.names_logprobs:
                    refusal = error.failure
                    continue
                self._wait_or_raise(error, retries)
                retries += 1
        self._answered = True
        if refusal is not None:
            self._ask_for_no_logprobs(refusal)
        return body, retries

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
            is_news, self._gives_logprobs = self._gives_logprobs, False
        if is_news:
            _log.warning("%s; it is asked for no log-probabilities any more", self._said(refusal))

    def _wait_or_raise(self, error: CallFailed, retries: int) -> None:
        """Wait before the next try, or raise what a caller should see."""
        failure = error.failure
        first = not self._answered
        self._answered = self._answered or not (failure.unreachable or failure.settled)
        hopeless = first and (failure.unreachable or failure.settled)
        asked_for = failure.retry_after_s or 0.0
        if (
            hopeless
            or not failure.retriable
            or retries + 1 >= self._backoff.tries
            or asked_for > self._backoff.retry_after_limit_s
        ):
            raise self._final(failure, retries + 1, hopeless) from error
        with self._lock:
            draw = float(self._rng.random())
        wait_s = self._backoff.wait_s(retries, draw, failure.retry_after_s)
        _log.warning("%s; try %d of %d in %.1f s", self._said(failure), retries + 2, self._backoff.tries, wait_s)
        self._sleep(wait_s)

    def _final(self, failure: Failure, tries: int, hopeless: bool) -> ModelError:
        sentence = self._said(failure) + (f" (tried {tries} times)" if tries > 1 else "")
        if failure.overflow:
            return ContextOverflow(sentence)
        if hopeless and failure.unreachable:
            return EndpointUnreachable(f"{sentence}; check the base URL and that the server is running")
        if hopeless and failure.settled:
            return ModelError(f"{sentence}; check the base URL")
        return ModelError(sentence)

    def _said(self, failure: Failure) -> str:
        """Return the failure as a sentence, without the key where a server echoes it."""
        sentence = f"{self.settings.endpoint} {failure.sentence}"
        return sentence.replace(self.settings.api_key, "[key]") if self.settings.api_key else sentence


def _call_ids(messages: Sequence[Mapping[str, Any]]) -> set[str]:
    """Return the ids of all tool calls in a conversation."""
    calls = itertools.chain.from_iterable(message.get("tool_calls") or () for message in messages)
    return {call["id"] for call in calls}
