"""The stub over HTTP: `POST /v1/chat/completions` and `GET /v1/models` on loopback, HTTP/1.1 with keep-alive."""

import contextlib
import json
import logging
import socket
import threading
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any

from pathnav.errors import ConfigError
from pathnav.model.stub_answers import STUB_MODEL
from pathnav.model.stub_persona import Persona, Served
from pathnav.model.stub_personas import PLAIN, persona_named
from pathnav.model.stub_rules import BadRequest

MAX_BODY_BYTES = 256 * 2**20
_POLL_S = 0.05  # how soon a closing server notices

_log = logging.getLogger(__name__)


class StubServer:
    """The stub as a server in this process; a context manager.

    ::

        with StubServer() as server:
            client = ChatClient(ChatSettings(base_url=server.base_url, model=STUB_MODEL))

    Args:
        port: The port on 127.0.0.1; 0 picks a free one.
        persona: Whose quirks it has, see `pathnav.model.stub_personas`: a name, or a persona with settings of its own.
        seed: Of what a persona that is named draws by chance.

    Raises:
        ConfigError: If the port cannot be had, or there is no such persona.
    """

    def __init__(self, port: int = 0, persona: str | Persona = PLAIN, seed: int = 0) -> None:
        played = persona_named(persona, seed) if isinstance(persona, str) else persona
        try:
            self._server = _Server(("127.0.0.1", port), _Handler, played)
        except (OSError, OverflowError) as error:
            reason = error.strerror if isinstance(error, OSError) else "a port is 0 to 65535"
            raise ConfigError(f"the stub cannot listen on 127.0.0.1:{port}: {reason}") from error
        self._thread: threading.Thread | None = None

    @property
    def base_url(self) -> str:
        """What a client is given."""
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    def start(self) -> None:
        """Serve in a thread of its own until `close`."""
        self._thread = threading.Thread(target=self.serve_forever, name="pathnav-stub", daemon=True)
        self._thread.start()

    def serve_forever(self) -> None:
        """Serve in the calling thread until `close` or Ctrl-C."""
        self._server.serve_forever(_POLL_S)

    def close(self) -> None:
        """Stop, and wait until every connection is closed."""
        if self._thread is not None:
            self._server.shutdown()
            self._thread.join()
            self._thread = None
        self._server.hang_up()
        self._server.server_close()

    def __enter__(self) -> "StubServer":
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()


def serve(
    port: int, ready: Callable[[str], None] = lambda base_url: None, *, persona: str | Persona = PLAIN, seed: int = 0
) -> None:
    """Serve the stub on a port of 127.0.0.1 until Ctrl-C.

    Args:
        port: The port; 0 picks a free one.
        ready: Called with the base URL once the server listens.
        persona: See `StubServer`.
        seed: Likewise.

    Raises:
        ConfigError: If the port cannot be had, or there is no such persona.
    """
    server = StubServer(port, persona, seed)
    try:
        ready(server.base_url)
        server.serve_forever()
    except KeyboardInterrupt:
        _log.info("the stub stops")
    finally:
        server.close()


class _Server(ThreadingHTTPServer):
    """A threading server that can close the idle connections of clients that are still alive."""

    daemon_threads = False  # `server_close` then waits for them
    request_queue_size = 128

    def __init__(self, address: tuple[str, int], handler: type[BaseHTTPRequestHandler], persona: Persona) -> None:
        self.persona = persona
        self.closing = threading.Event()  # ends the waits of a slow persona
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()
        super().__init__(address, handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        with self._lock:
            self._open.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        with self._lock:
            self._open.discard(request)
            _stop_reading(request)  # Ctrl-C may come here while the connection's thread still waits for a request
        super().shutdown_request(request)

    def hang_up(self) -> None:
        """End the reading side of all connections: an answer under way is still sent, then the thread ends."""
        self.closing.set()
        with self._lock:
            for connection in self._open:
                _stop_reading(connection)

    def handle_error(self, request: Any, client_address: Any) -> None:
        _log.debug("a client went away", exc_info=True)


def _stop_reading(connection: socket.socket) -> None:
    """Let whoever waits for a request on this connection find its end."""
    with contextlib.suppress(OSError):  # the client has closed it already
        connection.shutdown(socket.SHUT_RD)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # with it a small answer waits 40 ms for the client's acknowledgement
    server: _Server

    def do_GET(self) -> None:
        self._drop_body()
        if self.path.rstrip("/") in ("/v1/models", "/models"):
            entry = {"id": STUB_MODEL, "object": "model", "created": 0, "owned_by": "pathnav"}
            self._send(200, {"object": "list", "data": [entry]})
        else:
            self._refuse(404, f"there is no {self.path}; try GET /v1/models or POST /v1/chat/completions")

    def do_POST(self) -> None:
        body = self._body()
        if body is None:
            return
        if self.path.rstrip("/") not in ("/v1/chat/completions", "/chat/completions"):
            self._refuse(404, f"there is no {self.path}; try POST /v1/chat/completions")
            return
        try:
            request = json.loads(body)
        except ValueError as error:
            self._refuse(400, f"the request body is not JSON: {error}")
            return
        self._answer(request)

    def _answer(self, request: object) -> None:
        named = request.get("model") if isinstance(request, dict) else None
        if isinstance(named, str) and named != STUB_MODEL:
            self._refuse(404, f"the model {named!r} does not exist; this server is {STUB_MODEL!r}, which is no model")
            return
        try:
            served = self.server.persona.serve(request)
        except BadRequest as error:
            self._refuse(400, str(error))
            return
        self._give(served)

    def _give(self, served: Served) -> None:
        """Wait as long as the answer asks for, and send it or hang up."""
        self.server.closing.wait(served.delay_s)
        if served.hangs_up:
            self.close_connection = True
            return
        self._send_bytes(served.status, served.content, {"Content-Type": served.content_type, **served.headers})

    def _body(self) -> bytes | None:
        """Return the request body, None where it was refused."""
        length = self.headers.get("Content-Length", "")
        if not length.isdigit() or int(length) > MAX_BODY_BYTES:
            self.close_connection = True  # what follows on this connection cannot be told apart
            self._refuse(413 if length.isdigit() else 411, f"Content-Length must be given, at most {MAX_BODY_BYTES}")
            return None
        return self.rfile.read(int(length))

    def _drop_body(self) -> None:
        length = self.headers.get("Content-Length", "0")
        self.rfile.read(int(length) if length.isdigit() and int(length) <= MAX_BODY_BYTES else 0)

    def _refuse(self, status: int, message: str) -> None:
        error = {"message": message, "type": "invalid_request_error", "param": None, "code": None}
        self._send(status, {"error": error})

    def _send(self, status: int, answer: dict[str, Any]) -> None:
        self._send_bytes(status, json.dumps(answer).encode(), {"Content-Type": "application/json"})

    def _send_bytes(self, status: int, body: bytes, headers: Mapping[str, str]) -> None:
        self.send_response(status)
        for name, text in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(name, text)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        _log.debug(format, *args)
