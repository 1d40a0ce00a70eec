"""Server profiles: what ships, what is refused, and what of them reaches the wire."""

from pathlib import Path

import pytest

from pathnav.errors import ConfigError
from pathnav.model.profile import (
    DEFAULT_PROFILE,
    Profile,
    Structured,
    ToolCalling,
    ToolChoice,
    load_profile,
    shipped_profiles,
)
from support.asking import QUESTION, asking
from support.chat_server import say

TOOL = {
    "type": "function",
    "function": {"name": "look", "description": "Look.", "parameters": {"type": "object", "properties": {}}},
}


def test_each_shipped_profile_loads_under_its_own_name() -> None:
    assert {"openai", "vllm", "ollama", "llama-cpp", "mistral", "text"} <= set(shipped_profiles())
    assert all(load_profile(name).name == name for name in shipped_profiles())


def test_openais_profile_is_the_default() -> None:
    assert load_profile("openai") == DEFAULT_PROFILE
    assert DEFAULT_PROFILE.key_fields == {}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("format: pathnav-profile-1\nplacment: tool", "did you mean placement"),
        ("format: pathnav-profile-1\nframe: pixels", "frame: "),
        ("format: pathnav-profile-1\nimages_live: 0", "images_live: must be greater than or equal to 1, got 0"),
        ("format: pathnav-profile-1\nimages_live: 2.5", "images_live: must be a whole number, got 2.5"),
        ("format: pathnav-profile-1\nreasoning_tags: think", "reasoning_tags: must be a list, got"),
        ("format: pathnav-profile-1\nlogprobs: maybe", "logprobs: must be true or false"),
        ("format: pathnav-profile-1\npixels_per_token: 0", "pixels_per_token: must be greater than 0, got 0"),
        ("format: pathnav-profile-1\nplacement: under", "placement: must be 'user_after_tools', 'bridge' or 'tool'"),
        ("name: x", "format: pathnav-profile-1"),
        ("- a", "format: pathnav-profile-1"),
        ("format: pathnav-profile-1\nname: a\nname: b", "stands twice"),
        ("format: [", "is not YAML"),
    ],
)
def test_a_wrong_profile_is_refused_in_a_sentence(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=r"mine\.yaml") as raised:
        load_profile(str(path))
    assert said in str(raised.value)


def test_an_unknown_name_is_answered_with_the_nearest() -> None:
    with pytest.raises(ConfigError, match="did you mean vllm"):
        load_profile("vlm")


def test_fields_of_the_request_are_those_of_the_profile() -> None:
    profile = Profile(token_field="max_tokens", tool_choice=ToolChoice.REQUIRED, sends_seed=False, logprobs=False)
    with asking([say("ok")], profile=profile, seed=3, max_tokens=5) as (client, server):
        client.ask(QUESTION, [TOOL], "look", top_logprobs=5)
    body = server.requests[0].body
    assert body["max_tokens"] == 5 and body["tool_choice"] == "required"
    assert not {"max_completion_tokens", "seed", "logprobs", "top_logprobs"} & set(body)


def test_no_tool_is_demanded_of_a_server_that_does_not_heed_it() -> None:
    with asking([say("ok")], profile=Profile(tool_choice=ToolChoice.AUTO)) as (client, server):
        client.ask(QUESTION, [TOOL], "look")
    assert "tool_choice" not in server.requests[0].body and server.requests[0].tool_names == ["look"]


@pytest.mark.parametrize("structured", list(Structured))
def test_the_text_protocol_may_be_held_to_json(structured: Structured) -> None:
    profile = Profile(tools=ToolCalling.TEXT, structured_output=structured)
    with asking([say('{"tool": "look", "arguments": {}}')], profile=profile) as (client, server):
        assert [call.name for call in client.ask(QUESTION, [TOOL]).calls] == ["look"]
    sent = server.requests[0].body.get("response_format", {}).get("type", "none")
    assert sent == structured and "tools" not in server.requests[0].body
