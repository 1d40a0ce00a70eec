"""Calls that are cut off in the middle, whatever is asked."""

import pytest

from pathnav.model.probe_tools import probe_tools
from support.chat_server import Answer, Request, call, say
from support.model_kinds import Kind
from support.probing import examined, finding, probed


def cut_off(request: Request) -> Answer:
    """Run out of tokens in the middle of each call."""
    if request.tool_names:
        return call(request.tool_names[0], '{"place": "le', finish_reason="length")
    if "take_picture" in request.text:
        return say('{"tool": "take_picture", "argum', finish_reason="length")
    return Kind().answer(request)


def test_a_model_whose_calls_are_always_cut_off_is_told_to_have_more_room() -> None:
    found = examined(cut_off)
    assert finding(found, "tools").facts == {"cut_off": 3}
    assert "were cut off" in finding(found, "tools").seen
    assert finding(found, "tools").change == "give it room: --max-tokens 4096"
    assert not found.usable
    assert "calls no tool" not in found.verdict


@pytest.mark.parametrize("tools", ["broken", "ignored", "in_text"])
def test_what_is_no_call_is_not_asked_for_again(tools: str) -> None:
    chart = probed(Kind(tools=tools), probe_tools)
    assert [entry["probe"] for entry in chart.line.evidence].count("tools") == 1
