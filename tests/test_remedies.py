"""What to do about an error is told apart from it: the sentence for all, the remedy beside it on the command line."""

import pickle
from pathlib import Path

import pytest

from pathnav.errors import ConfigError, EndpointUnreachable, PathnavError
from pathnav.model.failures import of_body, of_status
from pathnav.run import Question
from support.chat_server import Answer, ChatServer, failure, say
from support.commands import Bench, Command

QUOTA = "You exceeded your current quota, please check your plan and billing details."


def test_an_error_keeps_its_remedy_apart_from_its_sentence() -> None:
    error = pickle.loads(pickle.dumps(EndpointUnreachable("h refuses the connection", remedy="check the base URL")))
    assert (str(error), error.remedy) == ("h refuses the connection", "check the base URL")
    assert error.with_remedy == "h refuses the connection; check the base URL"
    assert (PathnavError("no").remedy, PathnavError("no").with_remedy) == (None, "no")


@pytest.mark.parametrize(
    "question",
    [{}, {"finding": "nests"}, {"query_id": "a"}, {"tree": Path("t.json")}, {"tree": Path("t"), "region": 1}],
)
def test_a_library_user_is_told_of_no_options(question: dict[str, object]) -> None:
    with pytest.raises(ConfigError) as caught:
        Question(**question)  # type: ignore[arg-type]
    assert "--" not in str(caught.value)


@pytest.mark.parametrize(
    ("status", "body", "word"),
    [
        (401, "no such key", "the key"),
        (402, "pay", "the account"),
        (403, "not yours", "what it may use"),
        (404, "no such model", "the model's name"),
        (400, "expected the role 'assistant'", "pathnav doctor"),
        (422, "max_tokens", "complains"),
        (429, QUOTA, "quota"),
        (307, "", "the base URL"),
        (429, "slow down", None),
        (503, "busy", None),
    ],
)
def test_what_a_second_try_cannot_help_has_a_remedy(status: int, body: str, word: str | None) -> None:
    remedy = of_status(status, {}, body).remedy
    assert remedy is None if word is None else remedy is not None and word in remedy
    assert of_body("").remedy is None
    assert all("base URL" in str(of_body(body).remedy) for body in ("<html>Welcome", "[]"))


@pytest.mark.parametrize(
    ("answer", "remedy"),
    [(failure(401, "no"), "check the key"), (failure(429, QUOTA), "quota")],
    ids=lambda part: str(part.status) if isinstance(part, Answer) else "",
)
def test_every_command_says_what_to_mend_first(pathnav: Command, bench: Bench, answer: Answer, remedy: str) -> None:
    scenario = bench.scenario(slides=1, agents=["vlm"])
    beginning: list[Answer] = []
    with ChatServer(lambda request: beginning.pop() if beginning else answer) as server:
        model = ("--model", "m", "--base-url", server.base_url)
        for again, command in {
            "same command again": bench.words(*model, "--out", "one"),
            "to keep the record": bench.words(*model),
            "to keep the scores": ("explore", bench.slide, "--tile-px", 64, *model),
            "tries them again": ("run", scenario, "--out", "two", *model),
        }.items():
            beginning.append(say("Yes 73"))
            said = pathnav(*command)
            assert said.code == 1
            last = said.sentences[-1]
            assert remedy in last and last.index(remedy) < last.index(again) and last.endswith(again), said.err
