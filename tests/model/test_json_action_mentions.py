"""A tool that is only mentioned is not called: what needs arguments and has none, within a sentence."""

import pytest

from pathnav.model.json_action import parse_actions

NAMES = ("get_image_info", "extract_roi", "finish_and_report")


@pytest.mark.parametrize(
    "text",
    [
        'I will not use {"tool": "extract_roi"} here.',
        'No need for `{"tool": "extract_roi"}`.',
        '{"tool": "extract_roi"} is what I would use, had I any left.',
        'First I thought of {"name": "extract_roi"}, then {"tool": "get_image_info"}',
    ],
)
def test_a_needy_tool_without_arguments_in_a_sentence_is_no_action(text: str) -> None:
    found = parse_actions(text, NAMES, needy=("extract_roi",))
    assert "extract_roi" not in [action.name for action in found.actions]
    assert found.fault is None


@pytest.mark.parametrize(
    "text",
    [
        '{"tool": "extract_roi"}',
        'I look once more.\n{"tool": "extract_roi"}',
        'Action: {"tool": "extract_roi"}',
        '```json\n{"tool": "extract_roi"}\n```',
        '```json {"tool": "extract_roi"}```',
        '<tool_call>{"name": "extract_roi"}</tool_call>',
        '- `{"tool": "extract_roi"}`',
    ],
)
def test_a_needy_tool_without_arguments_that_stands_for_itself_is_an_action_whose_fault_is_told(text: str) -> None:
    assert [action.name for action in parse_actions(text, NAMES, needy=("extract_roi",)).actions] == ["extract_roi"]
