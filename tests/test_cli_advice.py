"""How a command says to go on after a failure: by itself alone where that can help, else once the cause is mended."""

import pytest

from pathnav.commands.advice import Losses, to_mend, way_on
from support.chat_server import Answer, ChatServer, failure, say
from support.commands import Bench, Command

QUOTA = "You exceeded your current quota, please check your plan and billing details."


@pytest.mark.parametrize(
    ("reason", "mend"),
    [
        ("http://h/v1 answered HTTP 401 Unauthorized: no such key", "the key"),
        ("http://h/v1 answered HTTP 403 Forbidden: not yours", "the key and what it may use"),
        ("http://h/v1 answered HTTP 404 Not Found: no such model", "the base URL and the model's name"),
        (
            "http://h/v1 answered HTTP 400 Bad Request: expected the role 'assistant' after the role 'tool'",
            "what the endpoint complains of (pathnav doctor writes a profile that it takes)",
        ),
        ("http://h/v1 answered HTTP 422 Unprocessable Entity: max_tokens", "what the endpoint complains of"),
        (f"http://h/v1 answered HTTP 429 Too Many Requests: {QUOTA}", "the quota that is used up"),
        ("http://h/v1 answered HTTP 200 with a web page: Welcome; check the base URL", "the base URL"),
        ("http://h/v1 redirects to https://h/v1, which is not followed", "the base URL"),
        ("http://h/v1 answered HTTP 429 Too Many Requests: slow down (tried 4 times)", None),
        ("http://h/v1 answered HTTP 503 Service Unavailable: busy (tried 4 times)", None),
        ("http://h/v1 answered HTTP 200 with an empty body (tried 4 times)", None),
        ("http://h/v1 dropped the connection before it had answered (tried 4 times)", None),
        (
            "scorer 'Mine' (/home/me/mine.py) must give a TileScore for each tile, but raised KeyError: 'a'",
            "your plug-in",
        ),
        ("/r/scores.sqlite cannot be used as a store of scores: file is not a database", "or move away scores.sqlite"),
        (
            "http://h/v1 answered HTTP 200 with something that is not a chat completion: [] (tried 4 times)",
            "the base URL, or the server behind it",
        ),
        ("ZeroDivisionError: no tissue", None),
        (None, None),
    ],
)
def test_what_a_second_try_cannot_help_is_to_be_mended(reason: str | None, mend: str | None) -> None:
    assert to_mend(reason) == mend
    assert way_on(reason, "run it again") == (f"mend {mend} first, then run it again" if mend else "run it again")


def test_the_losses_of_a_run_are_told_with_their_reason() -> None:
    losses = Losses()
    for reason in ("gone", "gone", None, "h answered HTTP 404 Not Found: no", "h answered HTTP 401 Unauthorized: no"):
        losses.add(reason)
    assert losses.sentence("4 of 9 were lost") == (
        "4 of 9 were lost: h answered HTTP 404 Not Found: no (and 2 other reasons); "
        "mend the base URL and the model's name and the key first, then the same command tries them again"
    )
    assert Losses().sentence("1 was lost") == "1 was lost; the same command tries them again"


@pytest.mark.parametrize(
    ("answer", "mend"),
    [
        (failure(401, "no"), "the key"),
        (failure(429, QUOTA), "the quota that is used up"),
    ],
    ids=lambda part: str(part.status) if isinstance(part, Answer) else "",
)
def test_every_command_says_what_to_mend_first(pathnav: Command, bench: Bench, answer: Answer, mend: str) -> None:
    scenario = bench.scenario(slides=1, agents=["vlm"])
    beginning: list[Answer] = []
    with ChatServer(lambda request: beginning.pop() if beginning else answer) as server:
        model = ("--model", "m", "--base-url", server.base_url)
        asked = {
            "run the same command again": bench.words(*model, "--out", "one"),
            "run it again, with --out DIR to keep the record": bench.words(*model),
            "run it again, with --out DIR to keep the scores": ("explore", bench.slide, "--tile-px", 64, *model),
            "the same command tries them again": ("run", scenario, "--out", "two", *model),
        }
        for again, command in asked.items():
            beginning.append(say("Yes 73"))
            said = pathnav(*command)
            assert said.code == 1
            assert said.sentences[-1].endswith(f"; mend {mend} first, then {again}"), said.err
