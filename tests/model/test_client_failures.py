"""What the client does when an endpoint fails, against a real server on loopback."""

import logging
import socket

import pytest

from pathnav.errors import ContextOverflow, EndpointUnreachable, ModelError
from pathnav.model import ChatClient, ChatSettings
from support.asking import QUESTION, asking
from support.chat_server import Answer, ChatServer, dropped, failure, html, say


def test_temporary_failures_are_tried_again_with_growing_waits() -> None:
    waits: list[float] = []
    with asking([failure(500, "oops"), html(502), dropped(), say("ok")], waits) as (client, server):
        reply = client.ask(QUESTION)
    assert (reply.text, reply.retries) == ("ok", 3)
    assert 0.5 <= waits[0] <= 1 <= waits[1] <= 2 <= waits[2] <= 4
    assert len({request.raw for request in server.requests}) == 1
    assert reply.bytes_sent == 4 * len(server.requests[0].raw)


def test_retry_after_is_honoured() -> None:
    waits: list[float] = []
    with asking([failure(429, "slow down", headers={"Retry-After": "7"}), say("ok")], waits) as (client, _):
        client.ask(QUESTION)
    assert len(waits) == 1 and 7 <= waits[0] <= 7.7


def test_a_wait_beyond_five_minutes_is_not_waited_for() -> None:
    waits: list[float] = []
    with (
        asking([failure(429, "tomorrow", headers={"Retry-After": "86400"})], waits) as (client, _),
        pytest.raises(ModelError, match="HTTP 429 Too Many Requests: tomorrow"),
    ):
        client.ask(QUESTION)
    assert waits == []


def test_four_failures_are_the_end_and_make_four_requests() -> None:
    with (
        asking([failure(503, "loading model")] * 9) as (client, server),
        pytest.raises(ModelError, match=r"HTTP 503 Service Unavailable: loading model \(tried 4 times\)"),
    ):
        client.ask(QUESTION)
    assert len(server.requests) == 4


@pytest.mark.parametrize("status", [400, 402, 413, 422])
def test_a_4xx_is_told_at_once(status: int) -> None:
    with (
        asking([failure(status, "no such thing"), say("late")]) as (client, server),
        pytest.raises(ModelError, match=f"HTTP {status} .*: no such thing$"),
    ):
        client.ask(QUESTION)
    assert len(server.requests) == 1


def test_bodies_that_are_no_completion_are_tried_again_and_then_named() -> None:
    bodies = [b"", b'{"choices": [', b"[1]", b'{"choices": []}']
    with asking([say("ok"), *(Answer(body=body) for body in bodies)]) as (client, server):
        client.ask(QUESTION)
        with pytest.raises(ModelError, match="not a chat completion"):
            client.ask(QUESTION)
    assert len(server.requests) == 5


def test_a_web_page_in_place_of_the_first_answer_is_told_at_once() -> None:
    page = "<!doctype html><html><title>Open WebUI</title></html>"
    with (
        asking([html(200, page), say("late")]) as (client, server),
        pytest.raises(ModelError, match="a web page: Open WebUI") as caught,
    ):
        client.ask(QUESTION)
    assert caught.value.remedy == "check the base URL"
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("answer", "check"),
    [
        (failure(401, "no such key"), "the key"),
        (failure(403, "not yours"), "the key and what it may use"),
        (failure(404, "The model `any` does not exist"), "the base URL and the model's name"),
        (failure(400, "Invalid model: any"), "the model's name"),
        (failure(405, "method not allowed"), "the base URL"),
        (html(501), "the base URL"),
        (failure(307, "moved", headers={"Location": "https://host/v1"}), "the base URL"),
    ],
    ids=lambda part: str(part.status) if isinstance(part, Answer) else "",
)
def test_a_first_answer_that_says_that_the_settings_are_wrong_is_told_with_what_to_check(
    answer: Answer, check: str
) -> None:
    with asking([answer]) as (client, _), pytest.raises(EndpointUnreachable) as first:
        client.ask(QUESTION)
    with asking([say("ok"), *[answer] * 4]) as (client, _):
        client.ask(QUESTION)
        with pytest.raises(ModelError) as later:
            client.ask(QUESTION)
    assert not isinstance(later.value, EndpointUnreachable)
    assert first.value.remedy == later.value.remedy == f"check {check}"


@pytest.mark.parametrize(
    ("headers", "said"),
    [({"Content-Type": "image/png"}, "1,034 bytes of image/png"), ({"Content-Type": ""}, "1,034 bytes of no named")],
)
@pytest.mark.parametrize("status", [200, 400])
def test_a_binary_body_is_told_by_its_length_and_type(status: int, headers: dict[str, str], said: str) -> None:
    body = b"\x89PNG\r\n\x1a\n\x00\x00" + bytes(range(256)) * 4
    with (
        asking([Answer(status=status, body=body, headers=headers)] * 4) as (client, _),
        pytest.raises(ModelError, match=said) as caught,
    ):
        client.ask(QUESTION)
    assert str(caught.value).isprintable()


def test_control_characters_of_a_server_reach_no_terminal() -> None:
    red = failure(422, "bad \x1b[31mred\x07 field")
    with asking([red]) as (client, _), pytest.raises(ModelError, match=r"bad \[31mred field$"):
        client.ask(QUESTION)


def test_a_web_page_after_an_answer_is_a_passing_failure() -> None:
    with asking([say("1"), html(200), say("2")]) as (client, _):
        client.ask(QUESTION)
        assert client.ask(QUESTION).text == "2"


def test_an_error_under_http_200_counts_as_its_own_status() -> None:
    overloaded = Answer(body=b'{"error": {"code": 503, "message": "overloaded"}}')
    refused = Answer(body=b'{"error": {"code": 400, "message": "bad image"}}')
    with (
        asking([overloaded, refused]) as (client, server),
        pytest.raises(ModelError, match="HTTP 400 Bad Request: bad image"),
    ):
        client.ask(QUESTION)
    assert len(server.requests) == 2


def test_a_context_overflow_has_its_own_error() -> None:
    with (
        asking([failure(400, "This model's maximum context length is 8192 tokens.")]) as (client, _),
        pytest.raises(ContextOverflow, match="8192"),
    ):
        client.ask(QUESTION)


def test_silence_ends_after_the_timeout_and_is_tried_again() -> None:
    with asking([say("late", delay_s=1.0), say("ok")], timeout_s=0.2) as (client, _):
        reply = client.ask(QUESTION)
    assert (reply.text, reply.retries) == ("ok", 1)


def test_a_redirect_is_not_followed() -> None:
    with asking([say("pixels were sent elsewhere")]) as (_, other):
        moved = failure(307, "moved", headers={"Location": other.base_url})
        with asking([moved]) as (client, _), pytest.raises(ModelError, match=f"redirects to {other.base_url}"):
            client.ask(QUESTION)
    assert other.requests == []


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.mark.parametrize(
    ("base_url", "reason"),
    [
        (f"http://127.0.0.1:{free_port()}", "refuses the connection"),
        ("http://no-such-host.invalid", "does not resolve"),
    ],
    ids=["refused", "unresolved"],
)
def test_an_unreachable_endpoint_is_told_at_once(base_url: str, reason: str) -> None:
    waits: list[float] = []
    with (
        ChatClient(ChatSettings(base_url=base_url, model="any"), sleep=waits.append) as client,
        pytest.raises(EndpointUnreachable, match=reason),
    ):
        client.ask(QUESTION)
    assert waits == []


def test_an_endpoint_that_went_away_after_an_answer_is_waited_for() -> None:
    waits: list[float] = []
    with ChatServer([say("ok")]) as server:
        client = ChatClient(ChatSettings(base_url=server.base_url, model="any"), sleep=waits.append)
        client.ask(QUESTION)
    with client, pytest.raises(ModelError, match=r"refuses the connection \(tried 4 times\)") as caught:
        client.ask(QUESTION)
    assert not isinstance(caught.value, EndpointUnreachable)
    assert len(waits) == 3


def test_a_key_appears_in_no_error_and_no_log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    answers = [failure(500, "key sesame-key is slow"), failure(401, "Incorrect API key provided: sesame-key")]
    with asking(answers, api_key="sesame-key") as (client, _), pytest.raises(ModelError) as caught:
        client.ask(QUESTION)
    assert "sesame-key" not in str(caught.value) and "[key]" in str(caught.value)
    assert "sesame-key" not in "\n".join(r.getMessage() for r in caplog.records if r.name.startswith("pathnav"))


def test_https_to_a_server_that_speaks_none_is_told_at_once() -> None:
    with ChatServer([say("ok")]) as server:
        settings = ChatSettings(base_url=server.base_url.replace("http:", "https:"), model="any")
        with ChatClient(settings) as client, pytest.raises(EndpointUnreachable, match="TLS handshake"):
            client.ask(QUESTION)
