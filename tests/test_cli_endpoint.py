"""The options that name an endpoint, on every command that may ask a model."""

import json

import pytest

from support.chat_server import Answer, ChatServer, failure, html, say
from support.commands import Bench, Command


def action(name: str, **arguments: object) -> str:
    return f"I think so.\n{json.dumps({'tool': name, 'arguments': arguments})}"


def test_a_model_without_tool_calling_is_asked_in_text(bench: Bench, pathnav: Command) -> None:
    answers = [say(action("get_image_info")), say(action("finish_and_report", conclusion="", bbox=[0, 0, 500, 500]))]
    with ChatServer(answers) as server:
        said = pathnav(*bench.node("--model", "m", "--base-url", server.base_url, "--profile", "text", "--json"))
    assert said.code == 0, said.err
    assert json.loads(said.out)["outcome"] == "finished"
    assert all("tools" not in request.body for request in server.requests)


@pytest.mark.parametrize("name", ["locate", "explore", "run"])
def test_pixels_leave_for_a_public_host_only_where_it_is_named(bench: Bench, pathnav: Command, name: str) -> None:
    words = {
        "locate": bench.node(),
        "explore": ("explore", bench.slide),
        "run": ("run", bench.scenario(agents=["vlm"])),
    }[name]
    out = bench.folder / "out"
    said = pathnav(*words, "--model", "m", "--base-url", "http://8.8.8.8/v1", "--out", out)
    assert said.code == 2 and "--allow-host 8.8.8.8" in said.err and not out.exists()


def test_the_key_of_a_file_is_sent_and_stands_nowhere(bench: Bench, pathnav: Command) -> None:
    key, out = bench.folder / "key.txt", bench.folder / "out"
    key.write_text("planted-sesame\n")
    answers = [say("planted-sesame")] * 5
    with ChatServer(answers) as server:
        named = ("--model", "m", "--base-url", server.base_url, "--api-key-file", key)
        said = pathnav(*bench.node(*named, "--out", out, "--json"))
    assert said.code == 0, said.err
    assert server.requests[0].headers["authorization"] == "Bearer planted-sesame"
    written = [path.read_bytes() for path in out.rglob("*") if path.is_file()]
    assert written and not any(b"planted-sesame" in content for content in written)
    assert "planted-sesame" not in said.out + said.err


@pytest.mark.parametrize(
    ("answer", "check"),
    [
        (failure(404, "no such model"), "the base URL and the model's name"),
        (html(200), "the base URL"),
    ],
    ids=lambda part: str(part.status) if isinstance(part, Answer) else "",
)
@pytest.mark.parametrize("name", ["locate", "explore", "run", "doctor"])
def test_settings_that_the_first_answer_proves_wrong_are_bad_input_and_leave_nothing(
    bench: Bench, pathnav: Command, name: str, answer: Answer, check: str
) -> None:
    words = {
        "locate": bench.node("--out", "out", "--json"),
        "explore": ("explore", bench.slide, "--tile-px", 64, "--out", "out", "--json"),
        "run": ("run", bench.scenario(agents=["vlm", "random"]), "--workers", 4, "--out", "out", "--json"),
        "doctor": ("doctor", "--write-profile", "out", "--json"),
    }[name]
    words = tuple("p.yaml" if name == "doctor" and word == "out" else word for word in words)
    with ChatServer(lambda request: answer) as server:
        said = pathnav(*words, "--model", "m", "--base-url", server.base_url)
        assert len(server.requests) <= 8  # one of each thread at most
    assert said.code == 2, said.err
    assert said.sentences[-1].startswith(f"pathnav: {server.base_url} answered HTTP {answer.status}")
    assert f"check {check}" in said.sentences[-1]
    assert not said.out
    assert not [path for path in bench.files() if path.name in ("out", "p.yaml")]
