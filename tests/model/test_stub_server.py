"""The stub as a server."""

import http.client
import json
import signal
import socket
import subprocess
import sys
import threading
from typing import Any
from urllib.parse import urlsplit

import pytest

from pathnav.errors import ConfigError, ModelError
from pathnav.model import STUB_MODEL, ChatClient, ChatSettings, StubServer

QUESTION = {"model": STUB_MODEL, "messages": [{"role": "user", "content": "Who are you?"}]}


class Line:
    """One kept-alive connection."""

    def __init__(self, base_url: str) -> None:
        self.connection = http.client.HTTPConnection(urlsplit(base_url).netloc, timeout=10)

    def send(self, method: str, path: str, body: bytes | None = None, **headers: str) -> tuple[int, dict[str, Any]]:
        self.connection.request(method, path, body, headers)
        response = self.connection.getresponse()
        return response.status, json.loads(response.read())


def test_answers_have_the_shape_of_openais_with_usage() -> None:
    with StubServer() as server:
        line = Line(server.base_url)
        status, body = line.send("POST", "/v1/chat/completions", json.dumps(QUESTION).encode())
        line.connection.close()
    assert status == 200
    assert (body["object"], body["model"]) == ("chat.completion", STUB_MODEL)
    assert body["choices"][0]["finish_reason"] == "stop"
    assert body["usage"]["total_tokens"] == body["usage"]["prompt_tokens"] + body["usage"]["completion_tokens"] > 0


def test_one_connection_serves_many_requests() -> None:
    with StubServer() as server:
        line = Line(server.base_url)
        answers = [line.send("POST", "/v1/chat/completions", json.dumps(QUESTION).encode())[0] for _ in range(3)]
        local = line.connection.sock.getsockname()
        assert line.send("GET", "/v1/models")[1]["data"][0]["id"] == STUB_MODEL
        assert line.connection.sock.getsockname() == local
        line.connection.close()
    assert answers == [200, 200, 200]


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("POST", "/v1/chat/completions", b"{", 400),
        ("POST", "/v1/chat/completions", b"[]", 400),
        ("POST", "/v1/chat/completions", b'{"model": "stub-pixel-reader"}', 400),
        ("POST", "/v1/chat/completions", b'{"model": "gpt-4o", "messages": []}', 404),
        ("POST", "/v1/completions", b"{}", 404),
        ("GET", "/", None, 404),
    ],
)
def test_wrong_requests_get_an_openai_shaped_error(method: str, path: str, body: bytes | None, status: int) -> None:
    with StubServer() as server:
        line = Line(server.base_url)
        answered, error = line.send(method, path, body)
        line.connection.close()
    assert answered == status
    assert error["error"]["message"] and error["error"]["type"] == "invalid_request_error"


def test_a_body_of_unknown_length_is_refused_and_the_connection_closed() -> None:
    with StubServer() as server, socket.create_connection(("127.0.0.1", urlsplit(server.base_url).port or 0)) as raw:
        raw.sendall(b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\n\r\n")
        answer = b"".join(iter(lambda: raw.recv(4096), b""))
    assert answer.startswith(b"HTTP/1.1 411 ")


def test_it_answers_to_no_models_name_but_its_own() -> None:
    refusal = "'gpt-4o' does not exist; this server is 'stub-pixel-reader'"
    with StubServer() as server:
        settings = ChatSettings(base_url=server.base_url, model="gpt-4o")
        with ChatClient(settings) as chat, pytest.raises(ModelError, match=refusal):
            chat.ask([{"role": "user", "content": "Who are you?"}])


def test_a_taken_or_impossible_port_is_a_config_error() -> None:
    with StubServer() as server:
        port = urlsplit(server.base_url).port or 0
        with pytest.raises(ConfigError, match=f"127.0.0.1:{port}"):
            StubServer(port)
    with pytest.raises(ConfigError, match="65535"):
        StubServer(70000)


def test_closing_does_not_wait_for_clients_that_keep_their_connection() -> None:
    server = StubServer()
    server.start()
    line = Line(server.base_url)
    line.send("GET", "/v1/models")
    closing = threading.Thread(target=server.close)
    closing.start()
    closing.join(timeout=10)
    line.connection.close()
    assert not closing.is_alive()


def test_a_server_that_was_never_started_can_be_closed() -> None:
    StubServer().close()


def test_serve_blocks_until_ctrl_c_and_leaves_the_port_free() -> None:
    code = "from pathnav.model import serve; serve(0, ready=lambda url: print(url, flush=True)); print('ended')"
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            base_url = process.stdout.readline().strip()
            line = Line(base_url)
            assert line.send("GET", "/v1/models")[0] == 200
            process.send_signal(signal.SIGINT)
            assert process.wait(timeout=20) == 0
            assert process.stdout.read() == "ended\n"
            line.connection.close()
        finally:
            process.kill()
    StubServer(urlsplit(base_url).port or 0).close()
