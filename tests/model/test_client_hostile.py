"""What stands between a model and us, and what servers do that no model does: none of it is an answer."""

import contextlib
import json
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import httpx
import pytest

from pathnav.errors import EndpointUnreachable, ModelError
from pathnav.model import Backoff, ChatClient, ChatSettings
from support.asking import QUESTION, asking
from support.chat_server import Answer, ChatServer, Request, failure, say


@pytest.mark.parametrize(
    "message",
    [None, "Yes", [], {"content": {"a": 1}}, {"content": 7}, {"content": "Yes", "tool_calls": "x"}, {"tool_calls": {}}],
)
def test_a_message_that_is_none_is_the_servers_fault(message: Any) -> None:
    body = json.dumps({"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}).encode()
    waits: list[float] = []
    expected = pytest.raises(ModelError, match="something that is not a chat completion")
    with asking([Answer(body=body)] * 9, waits) as (client, server), expected:
        client.ask(QUESTION)
    assert len(server.requests) == 4 and len(waits) == 3


@pytest.mark.parametrize("message", [{}, {"content": None}, {"content": None, "tool_calls": None}, {"tool_calls": []}])
def test_a_message_without_words_is_an_answer(message: dict[str, Any]) -> None:
    body = json.dumps({"choices": [{"index": 0, "message": message}]}).encode()
    with asking([Answer(body=body)]) as (client, _):
        assert client.ask(QUESTION).text == ""


@pytest.mark.parametrize("name", ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy"])
@pytest.mark.parametrize("scheme", ["http", "https"])
def test_pixels_pass_a_proxy_only_on_the_way_to_a_host_that_was_named(
    monkeypatch: pytest.MonkeyPatch, name: str, scheme: str
) -> None:
    for other in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy"):
        monkeypatch.delenv(other, raising=False)
    monkeypatch.setenv(name, "http://127.0.0.1:9")
    url = httpx.URL(f"{scheme}://10.9.8.7/v1/chat/completions")
    is_meant = name == "ALL_PROXY" or name.lower() == f"{scheme}_proxy"
    for allowed in ((), ("10.9.8.7",)):
        with ChatClient(ChatSettings(f"{scheme}://10.9.8.7/v1", "m", allow_hosts=allowed)) as client:
            http = client._wire._http
            passes = http._transport_for_url(url) is not http._transport
        assert passes is (bool(allowed) and is_meant)


@contextmanager
def trickling(seconds: float) -> Iterator[str]:
    """Give the URL of a server that sends a blank every 50 ms and never ends."""
    server = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        connection, _ = server.accept()
        with connection:
            connection.recv(65536)
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 9999\r\n\r\n")
            end = time.monotonic() + seconds
            while time.monotonic() < end:
                try:
                    connection.sendall(b" ")
                except OSError:
                    return
                time.sleep(0.05)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.getsockname()[1]}/v1"
    thread.join()
    server.close()


def test_an_answer_that_trickles_ends_with_the_time_out() -> None:
    with trickling(60) as url, ChatClient(ChatSettings(url, "m", timeout_s=0.5), backoff=Backoff(tries=1)) as client:
        started = time.monotonic()
        with pytest.raises(ModelError, match=r"did not answer within 0\.5 s"):
            client.ask(QUESTION)
        assert time.monotonic() - started < 30


def test_one_refusal_teaches_all_threads_to_ask_for_no_log_probabilities() -> None:
    def answer(request: Request) -> Answer:
        return failure(400, "logprobs is not supported") if "logprobs" in request.body else say("Yes")

    pool = ThreadPoolExecutor(8)
    with ChatServer(answer) as server, ChatClient(ChatSettings(server.base_url, "m"), connections=8) as client, pool:
        replies = list(pool.map(lambda _: client.ask(QUESTION, top_logprobs=5), range(24)))
    assert [reply.text for reply in replies] == ["Yes"] * 24
    assert sum("logprobs" in request.body for request in server.requests) == 1
    assert len(server.requests) == 25


def test_a_wait_that_is_too_long_is_told() -> None:
    expected = pytest.raises(ModelError, match=r"asks for 86,400 s of patience, which is more than is waited")
    with asking([failure(429, "come tomorrow", headers={"Retry-After": "86400"})]) as (client, _), expected:
        client.ask(QUESTION)


@contextmanager
def pouring(megabytes: int) -> Iterator[tuple[str, list[int]]]:
    """Give the URL of a server that sends so much JSON, and how many megabytes each of its connections took."""
    server = socket.create_server(("127.0.0.1", 0))
    taken: list[int] = []

    def serve() -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = server.accept()
                with connection, contextlib.suppress(OSError):
                    connection.recv(65536)
                    taken.append(0)
                    length = megabytes * 10**6 + 8
                    head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n"
                    connection.sendall(head.encode() + b'{"a": "')
                    for _ in range(megabytes):
                        connection.sendall(b"x" * 10**6)
                        taken[-1] += 1

    threading.Thread(target=serve, daemon=True).start()
    yield f"http://127.0.0.1:{server.getsockname()[1]}/v1", taken
    server.close()


def test_an_answer_without_measure_is_cut_off_and_tried_again() -> None:
    with pouring(300) as (url, taken), ChatClient(ChatSettings(url, "m"), backoff=Backoff(2, first_s=0.01)) as client:
        with pytest.raises(ModelError, match=r"answered with more than 32 MB, .* \(tried 2 times\)$"):
            client.ask(QUESTION)
        assert len(taken) == 2 and max(taken) < 100


def test_nesting_without_end_is_no_answer() -> None:
    body = b'{"choices": ' + b"[" * 200_000 + b"]" * 200_000 + b"}"
    expected = pytest.raises(ModelError, match="something that is not a chat completion")
    with asking([Answer(body=body)] * 4) as (client, _), expected:
        client.ask(QUESTION)


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_proxy_that_refuses_is_named_and_not_the_endpoint(monkeypatch: pytest.MonkeyPatch, scheme: str) -> None:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    with socket.socket() as closed:  # bound, and nobody listens
        closed.bind(("127.0.0.1", 0))
        proxy = f"127.0.0.1:{closed.getsockname()[1]}"
        monkeypatch.setenv(f"{scheme.upper()}_PROXY", f"http://me:secret@{proxy}")
        settings = ChatSettings(f"{scheme}://10.9.8.7/v1", "m", allow_hosts=("10.9.8.7",))
        with ChatClient(settings) as client, pytest.raises(EndpointUnreachable) as caught:
            client.ask(QUESTION)
    told = f"{scheme}://10.9.8.7/v1 is asked through the proxy http://{proxy}, which refuses the connection"
    assert str(caught.value) == told
    assert "HTTPS_PROXY" in str(caught.value.remedy)


def test_a_proxy_that_lets_nobody_through_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ALL_PROXY", "NO_PROXY", "https_proxy", "no_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(65536)
                connection.sendall(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n")

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        monkeypatch.setenv("HTTPS_PROXY", f"http://127.0.0.1:{server.getsockname()[1]}")
        settings = ChatSettings("https://10.9.8.7/v1", "m", allow_hosts=("10.9.8.7",))
        expected = pytest.raises(
            EndpointUnreachable, match=r"the proxy http://127\.0\.0\.1:\d+, which answered 403 Forb"
        )
        with ChatClient(settings) as client, expected:
            client.ask(QUESTION)
        thread.join()


def test_a_request_that_was_sent_twice_for_its_log_probabilities_counts_as_two() -> None:
    with asking([failure(400, "no logprobs here"), say("Yes")]) as (client, server):
        assert client.ask(QUESTION, top_logprobs=5).retries == len(server.requests) - 1 == 1
