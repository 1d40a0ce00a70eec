"""A scriptable chat-completions server on loopback: real sockets, canned replies, every request kept.

::

    from support.chat_server import ChatServer, call, calls, dropped, failure, html, say

    with ChatServer([
        call("extract_roi", {"x": 0, "y": 0, "w": 512, "h": 512, "reason": "dense"}),   # arguments as a mapping ...
        calls(("extract_roi", '{"x": 1,'), ("get_image_info", "{}")),                    # ... or as raw text, in order
        failure(429, "slow down", headers={"Retry-After": "0"}),
        say("I see fat.", usage=None),                                                  # no usage in this answer
    ]) as server:
        client = ChatClient(ChatSettings(base_url=server.base_url, model="any"))
        ...
        assert server.requests[0].body["tools"][0]["function"]["name"] == "extract_roi"
        server.requests[0].images      # every image of that request, decoded: [PIL.Image, ...]
        server.requests[0].text        # all text parts, joined by newlines

Instead of a list, give a function `answer(request: Request) -> Answer`; it may look at the whole conversation:
`ChatServer(lambda request: say("done") if len(request.messages) > 3 else call("get_image_info", {}))`.
A list that has run out answers 400 `no canned reply left`, so that one request too many is seen.
"""

import base64
import contextlib
import io
import itertools
import json
import socket
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, cast

from PIL import Image

USAGE = {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18}


@dataclass(frozen=True)
class Answer:
    """One canned answer; build it with the functions below and refine it with `dataclasses.replace`."""

    content: str | None = None
    tool_calls: tuple[dict[str, Any], ...] = ()
    finish_reason: str | None = None  # None: "tool_calls" or "stop", as fits
    usage: Mapping[str, int] | None = field(default_factory=lambda: USAGE)
    message: Mapping[str, Any] = field(default_factory=dict)  # further fields of the message, e.g. {"refusal": "no"}
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None  # the whole response body, instead of a chat completion
    delay_s: float = 0.0  # waited before the first byte
    drop: bool = False  # close the connection without answering


@dataclass(frozen=True)
class Request:
    """One request as it came over the wire."""

    path: str
    headers: Mapping[str, str]  # names in lower case
    raw: bytes
    received: float  # time.monotonic()

    @property
    def body(self) -> dict[str, Any]:
        """The parsed JSON body."""
        return cast(dict[str, Any], json.loads(self.raw))

    @property
    def messages(self) -> list[dict[str, Any]]:
        """The conversation."""
        return cast(list[dict[str, Any]], self.body["messages"])

    @property
    def parts(self) -> list[dict[str, Any]]:
        """All content parts of all messages, in order; a plain string counts as one text part."""
        contents = [message.get("content") or [] for message in self.messages]
        texts = [[{"type": "text", "text": c}] if isinstance(c, str) else c for c in contents]
        return list(itertools.chain.from_iterable(texts))

    @property
    def text(self) -> str:
        """All text of the conversation, joined by newlines."""
        return "\n".join(part["text"] for part in self.parts if part["type"] == "text")

    @property
    def jpegs(self) -> list[bytes]:
        """The bytes of every inlined image, in order."""
        urls = [part["image_url"]["url"] for part in self.parts if part["type"] == "image_url"]
        return [base64.b64decode(url.partition(",")[2]) for url in urls]

    @property
    def images(self) -> list[Image.Image]:
        """Every inlined image, decoded, in order."""
        return [Image.open(io.BytesIO(jpeg)).convert("RGB") for jpeg in self.jpegs]

    @property
    def tool_names(self) -> list[str]:
        """The names of the tools this request offers."""
        return [tool["function"]["name"] for tool in self.body.get("tools") or []]


def say(content: str, **changes: Any) -> Answer:
    """Answer with text and no tool call."""
    return replace(Answer(content=content), **changes)


def calls(*named: tuple[str, Any], ids: Iterable[str | None] | None = None, **changes: Any) -> Answer:
    """Answer with tool calls, in order.

    Args:
        named: (name, arguments) pairs. A string is sent as it is, also malformed; a mapping as its JSON text. For
            arguments that go out as a JSON object (some servers do so) wrap them: `{"__object__": {...}}`.
        ids: The call ids; None leaves the id out. Default: `call_0`, `call_1`, ... counted over the whole process.
        changes: Further fields of the `Answer`.
    """
    chosen = itertools.chain(ids, itertools.repeat(None)) if ids is not None else (_next_id() for _ in named)
    made = []
    for (name, arguments), call_id in zip(named, chosen, strict=False):
        one: dict[str, Any] = {"type": "function", "function": {"name": name, "arguments": _arguments(arguments)}}
        made.append(one if call_id is None else {"id": call_id, **one})
    return replace(Answer(tool_calls=tuple(made)), **changes)


def call(name: str, arguments: Any, **changes: Any) -> Answer:
    """Answer with one tool call; see `calls`."""
    return calls((name, arguments), **changes)


def failure(status: int, message: str, **changes: Any) -> Answer:
    """Answer with an OpenAI-shaped error."""
    error = {"error": {"message": message, "type": "invalid_request_error", "param": None, "code": None}}
    return replace(Answer(status=status, body=json.dumps(error).encode()), **changes)


def html(status: int, page: str = "<html><body><h1>Bad Gateway</h1></body></html>") -> Answer:
    """Answer with an HTML page, as proxies do."""
    return Answer(status=status, body=page.encode(), headers={"Content-Type": "text/html"})


def dropped() -> Answer:
    """Close the connection without an answer."""
    return Answer(drop=True)


def _arguments(arguments: Any) -> Any:
    if isinstance(arguments, Mapping):
        return arguments["__object__"] if "__object__" in arguments else json.dumps(arguments)
    return arguments


_ids = itertools.count()


def _next_id() -> str:
    return f"call_{next(_ids)}"


class ChatServer:
    """The server; a context manager.

    Args:
        answers: Canned answers in order, or a function from the request to its answer (called from many threads).
        port: 0 picks a free one.
        models: What `GET /v1/models` answers; None for servers that do not.
    """

    def __init__(
        self,
        answers: Iterable[Answer] | Callable[[Request], Answer],
        *,
        port: int = 0,
        models: Mapping[str, Any] | None = None,
    ) -> None:
        self.models = models
        self.requests: list[Request] = []
        self._answers: Iterator[Answer] | None = None if callable(answers) else iter(answers)
        self._function = answers if callable(answers) else None
        self._lock = threading.Lock()
        self._server = _Server(("127.0.0.1", port), _Handler)
        self._server.owner = self
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)

    @property
    def base_url(self) -> str:
        """What a client is given."""
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    def answer(self, request: Request) -> Answer:
        """Keep the request and return its answer."""
        with self._lock:
            self.requests.append(request)
            if self._answers is not None:
                return next(self._answers, failure(400, "no canned reply left"))
        assert self._function is not None
        return self._function(request)

    def __enter__(self) -> "ChatServer":
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._server.shutdown()
        self._server.hang_up()
        self._server.server_close()
        self._thread.join()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    owner: ChatServer

    def __init__(self, address: tuple[str, int], handler: type[BaseHTTPRequestHandler]) -> None:
        self._open: set[socket.socket] = set()
        super().__init__(address, handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        self._open.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        self._open.discard(request)
        super().shutdown_request(request)

    def hang_up(self) -> None:
        """Close kept-alive connections, so that a client that asks again finds nobody there."""
        for connection in list(self._open):
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing: clients that time out or hang up are part of the tests."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Server

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        headers = {name.lower(): text for name, text in self.headers.items()}
        self._send(self.server.owner.answer(Request(self.path, headers, raw, time.monotonic())))

    def do_GET(self) -> None:
        models = self.server.owner.models
        self._send(failure(404, "no such page") if models is None else Answer(body=json.dumps(models).encode()))

    def _send(self, answer: Answer) -> None:
        time.sleep(answer.delay_s)
        if answer.drop:
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_RDWR)
            return
        body = answer.body if answer.body is not None else json.dumps(_completion(answer)).encode()
        self.send_response(answer.status)
        for name, text in {"Content-Type": "application/json", **answer.headers}.items():
            self.send_header(name, text)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Keep stderr quiet."""


def _completion(answer: Answer) -> dict[str, Any]:
    """Return the chat-completion body of an answer."""
    message: dict[str, Any] = {"role": "assistant", "content": answer.content, **answer.message}
    if answer.tool_calls:
        message["tool_calls"] = list(answer.tool_calls)
    reason = answer.finish_reason or ("tool_calls" if answer.tool_calls else "stop")
    body: dict[str, Any] = {
        "id": "chatcmpl-test",
        "object": "chat.completion",
        "created": 1,
        "model": "canned",
        "choices": [{"index": 0, "message": message, "finish_reason": reason}],
    }
    return body if answer.usage is None else {**body, "usage": dict(answer.usage)}
