"""Log-probabilities over the wire."""

import json
import logging
from typing import Any

import pytest

from pathnav.errors import ModelError
from pathnav.model.reply import FIRST_TOKENS, AnswerToken, read_reply
from support.asking import QUESTION, asking
from support.chat_server import Answer, Request, failure, say

ENTRY = {"token": "Yes", "logprob": -0.1, "bytes": None, "top_logprobs": [{"token": "No", "logprob": -2}]}


def completion(logprobs: object) -> Answer:
    choice = {"index": 0, "message": {"role": "assistant", "content": "Yes"}, "finish_reason": "stop"}
    return Answer(body=json.dumps({"id": "1", "choices": [{**choice, "logprobs": logprobs}]}).encode())


def test_log_probabilities_are_asked_for_and_come_back() -> None:
    with asking([completion({"content": [ENTRY]})]) as (client, server):
        reply = client.ask(QUESTION, top_logprobs=20)
    assert {name: server.requests[0].body[name] for name in ("logprobs", "top_logprobs")} == {
        "logprobs": True,
        "top_logprobs": 20,
    }
    assert reply.logprobs == (AnswerToken("Yes", -0.1, (("No", -2.0),)),)


def test_none_are_asked_for_unless_told_to() -> None:
    with asking([say("ok")]) as (client, server):
        client.ask(QUESTION)
    assert not {"logprobs", "top_logprobs"} & set(server.requests[0].body)


@pytest.mark.parametrize(
    "sent",
    [None, {}, [], 3, "x", {"content": None}, {"content": {}}, {"content": [None]}, {"content": [{"token": 1}]},
     {"content": [{"token": "Yes", "logprob": None}]}, {"content": [{"token": "Yes", "logprob": True}]}],
)  # fmt: skip
def test_log_probabilities_of_another_shape_are_none(sent: Any) -> None:
    assert read_reply({"message": {"content": "Yes"}, "logprobs": sent}, None).logprobs == ()


def test_a_missing_list_of_alternatives_is_an_empty_one_and_only_the_first_tokens_are_kept() -> None:
    entry = {"token": "Yes", "logprob": 0}
    found = read_reply({"logprobs": {"content": [entry] * 40}}, None).logprobs
    assert found == (AnswerToken("Yes", 0.0),) * FIRST_TOKENS


@pytest.mark.parametrize("status", [400, 403, 422, 501])
def test_a_server_that_refuses_them_is_asked_without_them_from_then_on(
    status: int, caplog: pytest.LogCaptureFixture
) -> None:
    def answer(request: Request) -> Answer:
        return failure(status, "logprobs are not supported") if "logprobs" in request.body else say("Yes 73")

    with caplog.at_level(logging.WARNING), asking(answer) as (client, server):
        replies = [client.ask(QUESTION, top_logprobs=5) for _ in range(3)]
    assert [reply.text for reply in replies] == ["Yes 73"] * 3
    assert ["logprobs" in request.body for request in server.requests] == [True, False, False, False]
    assert len([record for record in caplog.records if record.name == "pathnav.model.client"]) == 1


def test_another_refusal_is_not_asked_again() -> None:
    with asking([failure(400, "images are not supported")]) as (client, server):
        with pytest.raises(ModelError, match="images are not supported"):
            client.ask(QUESTION, top_logprobs=5)
        assert len(server.requests) == 1
