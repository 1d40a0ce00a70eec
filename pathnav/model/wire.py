"""One request to a chat endpoint, straight through httpx.

The conversation is sent exactly as it stands and the body is read as it came. Chat libraries reorder tool calls and
rewrite their arguments on the way, and cost 5 ms of CPU a call; this costs 1.
"""

import json
import ssl
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import httpx

from pathnav import __version__
from pathnav.errors import ConfigError
from pathnav.model import failures
from pathnav.model.connection import CONNECT_TIMEOUT_S, of_connection, proxy_of
from pathnav.model.failures import CallFailed, Failure
from pathnav.model.hosts import is_named
from pathnav.model.profile import ToolChoice
from pathnav.model.question import Question
from pathnav.model.settings import ChatSettings
from pathnav.records import redacted

ANSWER_LIMIT_MB = 32
"""An answer is not read beyond; the longest with log-probabilities have less than 10 MB."""
_SCHEMES = ("http://", "https://")  # without a proxy: pixels pass one only on the way to a host that the user has named
KEEPALIVE_S = 4.0  # uvicorn closes idle connections after 5 s; reusing one at that moment loses the request


@dataclass(frozen=True, slots=True)
class Sent:
    """What a thread has sent: requests, and the bytes of their bodies."""

    requests: int = 0
    bytes: int = 0


class _Meter(threading.local):
    """What this thread has sent."""

    sent = Sent()


@dataclass(frozen=True, slots=True)
class _Answer:
    """A response that came whole."""

    status: int
    headers: Mapping[str, str]
    content: bytes

    @property
    def text(self) -> str:
        return failures.text_of(self.content, self.headers.get("content-type", ""))


class Wire:
    """A shared connection pool to one endpoint; threads may ask at the same time.

    Args:
        settings: The endpoint and the decoding.
        connections: How many requests may be in flight; further ones wait for a free connection without a limit.

    Raises:
        ConfigError: If the environment names a proxy that cannot be used.
    """

    def __init__(self, settings: ChatSettings, connections: int) -> None:
        self._meter = _Meter()
        self._settings = settings
        self._url = f"{settings.endpoint}/chat/completions"
        headers = {"Content-Type": "application/json", "User-Agent": f"pathnav/{__version__}"}
        if settings.api_key:
            headers["Authorization"] = f"Bearer {settings.api_key}"
        try:
            self._http = httpx.Client(
                headers=headers,
                timeout=httpx.Timeout(settings.timeout_s, connect=CONNECT_TIMEOUT_S, pool=None),
                limits=httpx.Limits(
                    max_connections=connections, max_keepalive_connections=connections, keepalive_expiry=KEEPALIVE_S
                ),
                follow_redirects=False,  # pixels go to the named host or nowhere
                trust_env=not settings.is_loopback,  # for SSL_CERT_FILE, and for a proxy where `mounts` allows one
                mounts=None if is_named(settings.host, settings.allow_hosts) else dict.fromkeys(_SCHEMES),
                verify=settings.endpoint.startswith("https:") or _no_tls(),
            )
        except (ImportError, ValueError) as error:
            raise ConfigError(
                f"the proxy that the environment names (ALL_PROXY, HTTPS_PROXY, HTTP_PROXY) cannot be used: {error}"
            ) from error

    @property
    def sent(self) -> Sent:
        """What the calling thread has sent so far."""
        return self._meter.sent

    def complete(self, question: Question) -> dict[str, Any]:
        """Return the body of one chat completion, with at least one choice; `[key]` where it repeats the key.

        Raises:
            CallFailed: If the try failed in any way.
        """
        fields: dict[str, Any] = {"tools": list(question.tools)} if question.tools else {}
        if question.required_tool is not None:
            fields |= _tool_choice(self._settings.profile.tool_choice, question.required_tool)
        if question.response_format is not None:
            fields["response_format"] = dict(question.response_format)
        if question.top_logprobs is not None:
            fields |= {"logprobs": True, "top_logprobs": question.top_logprobs}
        response = self._post({**self._decoding(), "messages": list(question.messages), **fields})
        if not 200 <= response.status < 300:
            text, headers = self._clean(response.text), self._clean(dict(response.headers))
            raise CallFailed(failures.of_status(response.status, headers, text, _said(text)))
        try:
            return _checked(self._clean(json.loads(response.content)))
        except (ValueError, RecursionError) as error:  # no JSON, bytes that are no UTF-8, nesting without end
            raise CallFailed(failures.of_body(self._clean(response.text))) from error

    def _clean(self, answer: Any) -> Any:
        """Return what the server sent without the key: before anything is made of it, errors among it."""
        return redacted(answer, self._settings.api_key)

    def _decoding(self) -> dict[str, Any]:
        """Return the fields that are the same in every request."""
        settings = self._settings
        fields = {
            "model": settings.model,
            "stream": False,
            "temperature": settings.temperature,
            "top_p": settings.top_p,
            settings.profile.token_field: settings.max_tokens,
        }
        sends_seed = settings.seed is not None and settings.profile.sends_seed
        return {**fields, "seed": settings.seed} if sends_seed else fields

    def _post(self, payload: Mapping[str, Any]) -> "_Answer":
        """Send a request and return whatever came back whole."""
        content = json.dumps(payload, ensure_ascii=False, separators=(",", ":")).encode()
        self._meter.sent = Sent(self._meter.sent.requests + 1, self._meter.sent.bytes + len(content))
        end_s = time.monotonic() + self._settings.timeout_s
        try:
            with self._http.stream("POST", self._url, content=content) as response:
                chunks, left = [], ANSWER_LIMIT_MB * 10**6
                for chunk in response.iter_bytes():  # httpx's time-out is of the silence between two of them
                    chunks.append(chunk)
                    left -= len(chunk)
                    if left < 0:
                        sentence = f"answered with more than {ANSWER_LIMIT_MB} MB, which is no chat completion"
                        raise CallFailed(Failure(sentence, retriable=True))
                    if time.monotonic() > end_s:
                        raise httpx.ReadTimeout("the answer trickles")
                return _Answer(response.status_code, response.headers, b"".join(chunks))
        except httpx.DecodingError as error:
            raise CallFailed(failures.of_body(f"undecodable content ({error})")) from error
        except httpx.TransportError as error:
            raise CallFailed(of_connection(error, self._settings.timeout_s, proxy_of(self._settings))) from error

    def close(self) -> None:
        """Close all connections."""
        self._http.close()


def _tool_choice(choice: ToolChoice, required_tool: str) -> dict[str, Any]:
    """Return the field that asks for a tool, where the server heeds one."""
    if choice is ToolChoice.NAMED:
        return {"tool_choice": {"type": "function", "function": {"name": required_tool}}}
    return {"tool_choice": "required"} if choice is ToolChoice.REQUIRED else {}


def _no_tls() -> ssl.SSLContext:
    """Return a context that trusts nobody; loading the usual authorities takes 40 ms a client."""
    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


def _checked(body: object) -> dict[str, Any]:
    """Return a body that holds a choice."""
    if not isinstance(body, dict):
        raise CallFailed(failures.of_body(body if isinstance(body, str) else json.dumps(body)))
    if body.get("error"):  # OpenRouter and some llama.cpp builds send errors under HTTP 200
        code = body["error"].get("code") if isinstance(body["error"], dict) else None
        text = json.dumps(body, default=str)
        raise CallFailed(failures.of_status(code if type(code) is int else 200, {}, text, _said(text)))
    choices = body.get("choices")
    if not isinstance(choices, list) or not choices or not _is_choice(choices[0]):
        raise CallFailed(failures.of_body(json.dumps(body, default=str)))
    return body


def _is_choice(choice: object) -> bool:
    """Return whether this is a choice with a message, however strange: what is none is the server's fault."""
    message = choice.get("message") if isinstance(choice, dict) else None
    if not isinstance(message, dict):
        return False
    content, calls = message.get("content"), message.get("tool_calls")
    return isinstance(content, str | list | None) and isinstance(calls, list | None)


def _said(text: str) -> str | None:
    """Return the message of an error body: OpenAI's, vLLM's, FastAPI's (`detail`) or Ollama's (`error` as text)."""
    try:
        body = json.loads(text)
    except ValueError:
        return None
    for _ in range(3):
        if isinstance(body, Mapping):
            body = next((body[name] for name in ("error", "message", "detail") if body.get(name)), None)
    return body if isinstance(body, str) else None
