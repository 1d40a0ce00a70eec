"""`pathnav doctor`: what it prints, writes, refuses and exits with."""

import json
from collections import namedtuple
from pathlib import Path

import pytest
import typer

from pathnav.cli import app
from pathnav.model import StubServer, load_profile
from pathnav.model.image_tokens import image_tokens
from pathnav.model.probe_context import episode_tokens
from pathnav.run import installation
from support.chat_server import Answer, ChatServer, Request, failure
from support.commands import Bench, Command
from support.model_kinds import Kind
from support.source import ROOT

Usage = namedtuple("Usage", "total used free")


def test_findings_are_in_plain_words_and_the_profile_is_written(pathnav: Command, tmp_path: Path) -> None:
    profile = tmp_path / "mine.yaml"
    kind = Kind(frame="thousand", form="xyxy", tool_images="dropped", heeds=("required",))
    with ChatServer(kind.answer, models={"data": [{"id": "any", "max_model_len": 16384}]}) as server:
        said = pathnav("doctor", "--base-url", server.base_url, "--model", "any", "--write-profile", profile)
    assert said.code == 0
    assert said.sentences == [f"asking {server.base_url} for any: at most 60 requests"]
    assert "ok      sight: it read the number " in said.out
    assert "partly  placement: user_after_tools: seen; bridge: seen; tool: not seen" in said.out
    assert "no      context: the context holds 16,384 tokens" in said.out
    assert "verdict: it can be run, with its own tool calls\n" in said.out
    assert f"use it with --profile {profile}" in said.out
    found = load_profile(str(profile))
    assert (found.frame, found.box, found.tool_choice, found.context_tokens) == ("thousand", "xyxy", "required", 16384)


def test_json_stands_alone_and_a_profile_of_its_own_is_replaced(pathnav: Command, tmp_path: Path) -> None:
    profile = tmp_path / "mine.yml"
    with ChatServer(Kind(images="refused").answer) as server:
        words = ("doctor", "--base-url", server.base_url, "--model", "any", "--write-profile", profile, "--json")
        first, second = pathnav(*words), pathnav(*words, "--profile", "ollama")
    assert (first.code, second.code) == (1, 1)
    document = json.loads(second.out)
    assert document["format"] == "pathnav-doctor-1"
    assert document["profile_file"] == str(profile)
    assert document["profile"]["images_live"] == 4
    assert load_profile(str(profile)).images_live == 4
    assert document["verdict"] == "the model does not see images: a run would measure nothing"


@pytest.mark.parametrize("content", ["key: value\n", "", "slides: [a.svs]\nformat: pathnav-scenario-1\n", "\x00\x01"])
def test_a_file_that_is_no_profile_is_not_replaced_and_nothing_is_asked(
    pathnav: Command, tmp_path: Path, content: str
) -> None:
    path = tmp_path / "scenario.yaml"
    path.write_text(content)
    with ChatServer([]) as server:
        said = pathnav("doctor", "--base-url", server.base_url, "--model", "any", "--write-profile", path)
        assert not server.requests
    assert said.code == 2
    (sentence,) = said.sentences
    assert "a file is there that is no profile, and it is not replaced" in sentence
    assert path.read_text() == content


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--base-url", "http://127.0.0.1:9/v1", "--model", "m"), "refuses the connection; check the base URL"),
        (("--model", "m"), "--model NAME and --base-url URL must be given together"),
        (("--write-profile", "p.yaml"), "--write-profile belongs to a chat endpoint"),
        (("--profile", "vllm"), "--profile belongs to a chat endpoint"),
        (("--base-url", "http://127.0.0.1:9/v1", "--model", "m", "--seed", "-1"), "--seed must be at least 0"),
        (("--base-url", "http://127.0.0.1:9/v1", "--model", "m", "--write-profile", "p.txt"), "ends in .yaml or .yml"),
        (("--base-url", "http://[::1", "--model", "m"), "legal port"),
    ],
)
def test_bad_input_is_one_sentence_and_exit_2(pathnav: Command, words: tuple[str, ...], sentence: str) -> None:
    said = pathnav("doctor", *words)
    assert said.code == 2
    assert sentence in said.sentences[-1]
    assert not said.out


def test_the_key_is_shown_nowhere(pathnav: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("THE_KEY", "sk-planted")
    profile = tmp_path / "p.yaml"
    with ChatServer(Kind(tools="refused", images="guessed").answer) as server:
        words = ("--base-url", server.base_url, "--model", "m", "--api-key-env", "THE_KEY", "--write-profile", profile)
        said = pathnav("doctor", *words, "--json")
        assert server.requests[0].headers["authorization"] == "Bearer sk-planted"
    assert "sk-planted" not in said.out + said.err + profile.read_text()


@pytest.mark.parametrize(
    ("persona", "way"), [("plain", "with its own tool calls"), ("text-only", "by the text protocol")]
)
def test_what_is_written_down_about_the_stub_finishes_an_episode_with_it(
    pathnav: Command, bench: Bench, tmp_path: Path, persona: str, way: str
) -> None:
    profile = tmp_path / "stub.yaml"
    with StubServer(persona=persona) as server:
        model = ("--base-url", server.base_url, "--model", "stub-pixel-reader")
        said = pathnav("doctor", *model, "--write-profile", profile)
        assert said.code == 0
        assert f"verdict: it can be run, {way}" in said.out
        found = pathnav(*bench.node(*model, "--profile", profile, "--json"))
    assert (found.code, json.loads(found.out)["outcome"]) == (0, "finished")


def test_without_an_endpoint_the_installation_is_checked(pathnav: Command) -> None:
    said = pathnav("doctor", "--json")
    assert said.code == 0, said.out
    document = json.loads(said.out)
    assert (document["format"], document["subject"], document["ok"]) == ("pathnav-doctor-1", "installation", True)
    found = {finding["probe"]: finding for finding in document["findings"]}
    assert found["reader_openslide"]["facts"]["adobe_deflate"] == 0
    assert found["reader_tiffslide"]["facts"]["adobe_deflate"] == 0
    assert found["libraries"]["facts"]["versions"]["numpy"]
    assert found["machine"]["facts"]["cores"] >= 1
    assert "ok      python: Python" in pathnav("doctor").out


def test_a_full_disk_a_wrong_reader_and_tracing_are_told(pathnav: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(installation.shutil, "disk_usage", lambda path: Usage(10, 10, 5_000_000))
    monkeypatch.setattr(installation, "MOST_OFF", {"adobe_deflate": -1, "jpeg": -1})
    monkeypatch.setenv("LANGSMITH_TRACING", "true")
    said = pathnav("doctor")
    assert said.code == 1
    assert "no      disk_temp: 0.0 GB are free" in said.out
    assert "does not read a slide that was just written" in said.out
    assert "LANGSMITH_TRACING would send prompts" in said.out
    assert said.out.splitlines()[-1].startswith("verdict: does not work: reader_openslide, reader_tiffslide, disk_runs")


def test_a_missing_library_is_named_with_the_command_that_installs_it(
    pathnav: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(installation, "_required", lambda: ["numpy", "not-a-library"])
    said = pathnav("doctor")
    assert said.code == 1
    assert "no      libraries: not installed: not-a-library" in said.out
    assert "pip install not-a-library" in said.out


@pytest.mark.parametrize(("status", "code"), [(401, 2), (403, 2), (500, 1), (429, 1)])
def test_an_endpoint_that_fails_on_the_way_is_told_and_writes_no_field(
    pathnav: Command, tmp_path: Path, status: int, code: int
) -> None:
    profile, able = tmp_path / "p.yaml", Kind(frame="thousand", logprobs="refused")
    asked: list[object] = []

    def answer(request: Request) -> Answer:
        asked.append(request)
        return able.answer(request) if len(asked) <= 4 else failure(status, "gone", headers={"Retry-After": "0"})

    with ChatServer(answer) as server:
        said = pathnav("doctor", "--base-url", server.base_url, "--model", "any", "--write-profile", profile)
    assert said.code == code
    (verdict,) = [line for line in said.out.splitlines() if line.startswith("verdict: ")]
    assert verdict.startswith(f"verdict: the endpoint failed after 4 answers: it answered HTTP {status}")
    assert ("check the key" in verdict) is (code == 2)
    assert "vision model" not in said.out and "?       sight: it was not asked" in said.out
    assert load_profile(str(profile)).key_fields == {}


def test_every_command_that_sends_prompts_is_stopped_by_tracing_variables(
    pathnav: Command, bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    asking = {
        "locate": bench.node(),
        "explore": ("explore", bench.slide, "--scorer", "vlm"),
        "run": ("run", bench.scenario(agents=["vlm"])),
        "doctor": ("doctor",),
    }
    asks_nothing = {"plan"}
    assert commands_with("--base-url") == set(asking) | asks_nothing
    monkeypatch.setenv("LANGSMITH_TRACING", "true")
    with ChatServer([]) as server:
        for words in asking.values():
            said = pathnav(*words, "--model", "m", "--base-url", server.base_url)
            assert (said.code, "LANGSMITH_TRACING would send" in said.sentences[-1]) == (2, True), said
        assert not server.requests


def commands_with(option: str) -> set[str]:
    """Return the names of the commands that take an option."""
    commands = typer.main.get_command(app).commands
    return {name for name, command in commands.items() if any(option in param.opts for param in command.params)}


def test_the_stub_of_a_named_endpoint_is_told_without_advice(pathnav: Command, bench: Bench) -> None:
    with StubServer() as server:
        said = pathnav(*bench.node("--model", "stub-pixel-reader", "--base-url", server.base_url))
    assert "which is no model" in said.err and "--base-url URL put" not in said.err
    assert "--base-url URL put a real one in its place" in pathnav(*bench.node()).err


def test_the_page_of_plans_tells_what_the_doctor_counts() -> None:
    images, whole = episode_tokens(image_tokens(1024, 1024))
    page = " ".join((ROOT / "docs" / "how-to-plan.md").read_text(encoding="utf-8").split())
    assert f"take about {whole:,} tokens, of which {images:,} are images and the rest text and answers" in page
