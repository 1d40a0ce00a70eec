"""One request to a chat endpoint through `ChatOpenAI`; imported only where a client is made (it costs 3 s).

`ChatOpenAI` turns messages into its own classes and back, and in doing so reorders tool calls and rewrites their
arguments. `_VerbatimChat` therefore takes the messages as they are and hands back the response body as it came; both
hooks exist unchanged from langchain-openai 1.7.0 on.
"""

import errno
import importlib
import json
import socket
import ssl
import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import openai
from langchain_core.language_models import LanguageModelInput
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_openai import ChatOpenAI
from pydantic import SecretStr

from pathnav.errors import ConfigError
from pathnav.model import failures
from pathnav.model.failures import CallFailed, Failure
from pathnav.model.settings import ChatSettings

CONNECT_TIMEOUT_S = 10.0
KEEPALIVE_S = 4.0  # uvicorn closes idle connections after 5 s; reusing one at that moment loses the request
_NO_KEY = "none"  # the openai client insists on a key, local servers ignore it


class _VerbatimChat(ChatOpenAI):
    """`ChatOpenAI` that sends chat-completions messages and returns bodies unchanged."""

    def _get_request_payload(
        self, input_: LanguageModelInput, *, stop: list[str] | None = None, **kwargs: Any
    ) -> dict[str, Any]:
        messages = kwargs.pop("verbatim_messages")
        payload: dict[str, Any] = super()._get_request_payload(input_, stop=stop, **kwargs)
        return {**payload, "messages": messages}

    def _create_chat_result(
        self, response: dict[str, Any] | openai.BaseModel, generation_info: dict[str, Any] | None = None
    ) -> ChatResult:
        body = response.to_dict(warnings=False) if isinstance(response, openai.BaseModel) else response
        message = AIMessage(content="", response_metadata={"body": body})
        return ChatResult(generations=[ChatGeneration(message=message)])


class _Meter(threading.local):
    """The length of the request bodies that this thread has sent; httpx calls its hooks in the asking thread."""

    bytes_sent = 0


class Wire:
    """A shared connection pool to one endpoint; threads may ask at the same time.

    Args:
        settings: The endpoint and the decoding.
        connections: How many requests may be in flight; further ones wait for a free connection without a limit.
    """

    def __init__(self, settings: ChatSettings, connections: int) -> None:
        self._meter = _Meter()
        self._settings = settings
        self._http = self._http_client(connections)
        self._chat = _VerbatimChat(
            model=settings.model,
            base_url=settings.endpoint,
            api_key=SecretStr(settings.api_key or _NO_KEY),
            temperature=settings.temperature,
            top_p=settings.top_p,
            max_completion_tokens=settings.max_tokens,
            seed=settings.seed,
            timeout=self._http.timeout,
            max_retries=0,
            use_responses_api=False,
            openai_proxy="",  # OPENAI_PROXY beside a client of our own is refused by langchain
            http_client=self._http,
            http_async_client=openai.DefaultAsyncHttpxClient(trust_env=False, verify=_no_tls()),  # never used
            cache=False,  # a process-wide LangChain cache knows nothing of the images
        )

    def _http_client(self, connections: int) -> Any:
        """Return an httpx client of whichever httpx the installed openai is built on (httpx2 from openai 3 on)."""
        httpx = importlib.import_module(openai.DefaultHttpxClient.__mro__[1].__module__)
        return self._client_or_sentence(
            timeout=httpx.Timeout(self._settings.timeout_s, connect=CONNECT_TIMEOUT_S, pool=None),
            limits=httpx.Limits(
                max_connections=connections, max_keepalive_connections=connections, keepalive_expiry=KEEPALIVE_S
            ),
            follow_redirects=False,  # pixels go to the named host or nowhere
            trust_env=not self._settings.is_loopback,  # a hospital's proxy must not swallow loopback
            verify=self._settings.endpoint.startswith("https:") or _no_tls(),
            event_hooks={"request": [self._before_sending]},
        )

    def _client_or_sentence(self, **options: Any) -> Any:
        """Return the client, or say in one sentence which proxy of the environment it cannot use."""
        try:
            return openai.DefaultHttpxClient(**options)
        except (ImportError, ValueError) as error:
            raise ConfigError(
                f"the proxy that the environment names (ALL_PROXY, HTTPS_PROXY, HTTP_PROXY) cannot be used: {error}"
            ) from error

    def _before_sending(self, request: Any) -> None:
        self._meter.bytes_sent += int(request.headers.get("content-length", 0))
        if not self._settings.host.endswith(
            "openai.com"
        ):  # set from OPENAI_ORG_ID and the like: nobody else's business
            request.headers.pop("openai-organization", None)
            request.headers.pop("openai-project", None)

    @property
    def bytes_sent(self) -> int:
        """The length of the request bodies that the calling thread has sent so far."""
        return self._meter.bytes_sent

    def complete(
        self,
        messages: Sequence[Mapping[str, Any]],
        tools: Sequence[Mapping[str, Any]],
        required_tool: str | None,
        top_logprobs: int | None = None,
    ) -> dict[str, Any]:
        """Return the body of one chat completion, with at least one choice.

        Args:
            messages: The conversation.
            tools: The tools offered.
            required_tool: The tool that must be called.
            top_logprobs: How many alternatives of each answer token are asked for; None asks for no log-probabilities.

        Raises:
            CallFailed: If the try failed in any way.
        """
        fields: dict[str, Any] = {"tools": list(tools)} if tools else {}
        if required_tool is not None:
            fields["tool_choice"] = {"type": "function", "function": {"name": required_tool}}
        if top_logprobs is not None:
            fields |= {"logprobs": True, "top_logprobs": top_logprobs}
        try:
            message = self._chat.invoke("", verbatim_messages=list(messages), **fields)
        except openai.APIStatusError as error:
            text = error.response.text
            raise CallFailed(
                failures.of_status(error.status_code, error.response.headers, text, _said(text))
            ) from error
        except openai.APITimeoutError as error:
            raise CallFailed(_of_connection(error, self._settings.timeout_s)) from error
        except openai.APIConnectionError as error:
            raise CallFailed(_of_connection(error, self._settings.timeout_s)) from error
        except json.JSONDecodeError as error:
            raise CallFailed(failures.of_body(error.doc)) from error
        except UnicodeDecodeError as error:
            raise CallFailed(failures.of_body(error.object.decode("latin-1"))) from error
        return _checked(message.response_metadata["body"])

    def close(self) -> None:
        """Close all connections."""
        self._http.close()


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
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
        raise CallFailed(failures.of_body(json.dumps(body, default=str)))
    return body


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


def _of_connection(error: BaseException, timeout_s: float) -> Failure:
    """Return the failure behind a connection that did not come about, broke, or stayed silent."""
    causes = list(_causes(error))
    for cause in causes:
        if isinstance(cause, socket.gaierror):
            return Failure("has a host name that does not resolve", retriable=True, unreachable=True)
        if isinstance(cause, ConnectionRefusedError):
            return Failure("refuses the connection", retriable=True, unreachable=True)
        if isinstance(cause, ssl.SSLError):
            return Failure(f"fails the TLS handshake ({cause.reason})", retriable=True, unreachable=True)
        if isinstance(cause, OSError) and cause.errno in (errno.EHOSTUNREACH, errno.ENETUNREACH):
            return Failure(f"cannot be reached ({cause.strerror})", retriable=True, unreachable=True)
    names = {type(cause).__name__ for cause in causes}
    if "ConnectTimeout" in names:
        sentence = f"did not accept a connection within {CONNECT_TIMEOUT_S:g} s"
        return Failure(sentence, retriable=True, unreachable=True)
    if isinstance(error, openai.APITimeoutError):
        return Failure(f"did not answer within {timeout_s:g} s", retriable=True)
    return Failure("dropped the connection before it had answered", retriable=True)


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    """Yield an exception and what it came from, outermost first."""
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__
