"""Actions are read from what models without native tool calling write, and never made up."""

import json
from typing import Any

import pytest

from pathnav.model.json_action import Action, Parsed, parse_actions

NAMES = ("get_image_info", "extract_roi", "finish_and_report")
BOX = {"x": 1200, "y": 40.5, "w": 512, "h": 512, "reason": "edge {of} the gland"}
NO_JSON = "NaN -Infinity 1e999 +5 007 .5 1_000 0x10 12px (1,2) {1,2} ... <int> x1 [1,,2]"
HOSTILE = r"""{ ` {" {} {/* {"a": {"a":[ {"tool": {"tool":1; \ {"tool":"a","arguments":"{ <function=a>{ {a:{a:"b","""
LOOK = json.dumps({"tool": "extract_roi", "arguments": BOX})


def read(text: str) -> list[tuple[str, dict[str, Any]]]:
    """Return names and arguments of the actions in a text, and check what holds for each."""
    parsed = parse_actions(text, NAMES)
    assert not (parsed.actions and parsed.fault)
    assert all(json.loads(action.raw) == action.arguments for action in parsed.actions)
    return [(action.name, action.arguments) for action in parsed.actions]


def fault(text: str) -> str:
    """Return why nothing could be read in a text."""
    parsed = parse_actions(text, NAMES)
    assert parsed.actions == () and parsed.fault is not None
    return parsed.fault


@pytest.mark.parametrize(
    "around",
    [
        "{}",
        "\n  {}\n",
        "```json\n{}\n```",
        "```\n{}\n```",
        "```tool_call\n{}\n```",
        "~~~json\n{}\n~~~",
        "```json\n{}",
        "`{}`",
        "The stroma is pale at (31, 57).\n\nAction: {} I chose this because of the nuclei.",
        "I write $\\frac{{1}}{{2}}$, {{x, y}} and {{don't}}, then {}",
        "<tool_call>\n{}\n</tool_call>",
        "<tool_call>{}",
        "<|tool_call|>{}<|/tool_call|>",
        "<|tool_call>{}<tool_call|>",
        "[TOOL_CALLS] [{}]",
        "[TOOL_CALLS][{}]</s>",
        "<|python_tag|>{}<|eom_id|>",
        "<think>Where is it? 'Tis \"here</think>{}",
        "[{}]",
        "{{{}}}",
    ],
)
def test_what_stands_around_an_action_does_not_matter(around: str) -> None:
    assert read(around.format(LOOK)) == [("extract_roi", BOX)]


@pytest.mark.parametrize(
    "text",
    [
        "{'tool': 'extract_roi', 'arguments': {'a': None, 'b': True, 'c': [False, 1.5], 'd': \"it's\"}}",
        '{"tool": "extract_roi", "arguments": {"a": null, "b": true, "c": [false, 1.5,], "d": "it\'s",},}',
        "{tool: 'extract_roi', arguments: {a: null, b: true, c: [false, 1.5], d: 'it's'}}",
        '{// where\n"tool": "extract_roi", # or\n"arguments": /* {"a": 2} */ {"a": null, "b": true,'
        ' "c": [false, /* 3, */ 1.5], "d": "it\'s"}}',
        "{“tool”: “extract_roi”, “arguments”: {“a”: null, “b”: true, “c”: [false, 1.5], “d”: “it's”}}",
        '{‘tool’: ‘extract_roi’, ‘arguments’: {‘a’: null, ‘b’: true, ‘c’: [false, 1.5], ‘d’: "it\'s"}}',
        '{”tool”: „extract_roi“, "arguments": {\'a\': null, "b": true, "c": [false, 1.5], "d": \'it\\\'s\'}}',
        '{"tool": "extract_roi", "arguments": {"a": null, "b": true, "c": [false, 1.5], "d": "it\'s"}',
        '```json\n{"tool": "extract_roi", "arguments": {"d": "it\'s", "b": true, "a": null, "c": [false, 1.5]\n```',
        '<tool_call>{"tool": "extract_roi", "arguments": {"a":null,"b":true,"c":[false,1.5],"d":"it\'s"</tool_call>',
        '{"tool": "extract\\_roi", "arguments": {"a": null, "b": true, "c": [false, 1.5], "d": "it\\\'s"}}',
    ],
)
def test_json_that_is_not_strict_is_read(text: str) -> None:
    assert read(text) == [("extract_roi", {"a": None, "b": True, "c": [False, 1.5], "d": "it's"})]


@pytest.mark.parametrize(
    "text",
    [
        '{"name": "extract_roi", "arguments": {"x": 1}}',
        '{"name": "extract_roi", "parameters": {"x": 1}}',
        '{"function": "extract_roi", "args": {"x": 1}}',
        '{"thought": "there", "action": "extract_roi", "action_input": {"x": 1}}',
        '{"action": "extract_roi", "input": "{\\"x\\": 1}"}',
        '{"id": "a", "type": "function", "function": {"name": "extract_roi", "arguments": "{\\"x\\": 1}"}}',
        '{"tool_calls": [{"function": {"name": "extract_roi", "arguments": "{\'x\': 1}"}}]}',
        '{"tool": {"name": "extract_roi"}, "arguments": {"x": 1}}',
        '{"action": {"extract_roi": {"x": 1}}}',
        '{"extract_roi": {"x": 1}}',
        '{"thought": "there", "extract_roi": {"x": 1}}',
        '{"tool": "extract_roi", "x": 1}',
        '{"action": "extract_roi", "x": 1}',
        '<function=extract_roi>{"x": 1}</function>',
        '<function=extract_roi>\n{"name": "extract_roi", "parameters": {"x": 1}}</function>',
        '[TOOL_CALLS]extract_roi[ARGS]{"x": 1}',
    ],
)
def test_the_forms_that_servers_templates_teach_are_read(text: str) -> None:
    assert read(text) == [("extract_roi", {"x": 1})]


@pytest.mark.parametrize(
    "text",
    [
        '{"tool": "get_image_info"}',
        '{"tool": "get_image_info", "arguments": {}}',
        '{"tool": "get_image_info", "arguments": null}',
        '{"tool": "get_image_info", "arguments": " "}',
        '{"get_image_info": {}}',
        "<function=get_image_info>{}</function>",
        '{"tool": "get_image_info"',
    ],
)
def test_a_tool_without_arguments_is_called_with_none(text: str) -> None:
    assert read(text) == [("get_image_info", {})]


def test_an_unknown_tool_is_kept_as_written() -> None:
    assert read('{"tool": "zoom in", "factor": 2}') == [("zoom in", {"factor": 2})]
    assert read('{"name": "functions.extract_roi", "arguments": {"x": 1}}') == [("functions.extract_roi", {"x": 1})]


def test_several_actions_keep_their_order() -> None:
    info, look = '{"tool": "get_image_info"}', '{"extract_roi": {"x": 1}}'
    expected = [("get_image_info", {}), ("extract_roi", {"x": 1})]
    for text in (
        f"{info}\n{look}",
        f"[{info}, {look}]",
        f"First {info} then {look}.",
        f'{{"actions": [{info}, {look}]}}',
    ):
        assert read(text) == expected


def test_a_draft_and_its_repetition_are_one_action_also_where_blanks_differ() -> None:
    compact = LOOK.replace(": ", ":")
    assert read(f"Maybe {compact}? Yes.\n{LOOK}") == [("extract_roi", BOX)]


def test_the_same_action_before_and_after_another_is_two() -> None:
    assert len(read(f'{LOOK} {{"tool": "get_image_info"}} {LOOK}')) == 3
    assert (
        len(
            read('{"tool": "extract_roi", "x": 1} {"tool": "extract_roi", "x": 1.0} {"tool": "extract_roi", "x": true}')
        )
        == 3
    )


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('{"tool": "extract_roi", "arguments": {"x": 12', "a number may be cut off"),
        ('{"tool": "extract_roi", "arguments": {"x": 12, "reason": "the upp', "a string is cut off"),
        ('{"tool": "extract_roi", "arguments": {"x": 12,', "expected a key"),
        ('{"tool": "extract_roi", "arguments": {"x": 12, "y"', "expected ':'"),
        ('{"tool": "extract_roi", "arguments": {"x": 12, "y":', "expected a value"),
        ('{"tool": "extract_roi", "arguments": {', "expected a key"),
        ('{"tool": "finish_and_report", "arguments": {"bbox": [1, 2, 3', "a number may be cut off"),
        ('{"tool": "finish_and_report", "arguments": {"bbox": [1, 2, 3 ', "expected ',' or ']'"),
        ('{"tool": "extract_roi", "ok": tru', "expected a value"),
        ('{"tool": "extract_roi" /* and', "a comment is cut off"),
        ('{"tool": "extract_roi", "arguments": "{\\"x\\": 12"}', "are not a JSON object"),
    ],
)
def test_what_was_cut_off_is_not_made_up(text: str, why: str) -> None:
    assert why in fault(text)


def test_a_number_is_complete_where_something_follows_it() -> None:
    for end in (" ", "\n", "\n```", "</tool_call>", "<|im_end|>", "}"):
        assert read('{"tool": "extract_roi", "arguments": {"x": 12' + end) == [("extract_roi", {"x": 12})]


@pytest.mark.parametrize(
    "value",
    [
        *NO_JSON.split(),
        *("9" * 5000, "10 + 2", "[1 2]", '"\\ud800"', '"a" "b"', '"say "hi" now"', "[" * 100_000, ""),
    ],
)
def test_values_that_are_no_json_are_refused_and_not_guessed(value: str) -> None:
    text = f'{{"tool": "extract_roi", "x": {value}, "y": {{"tool": "get_image_info"}}}}'
    assert fault(text)


@pytest.mark.parametrize(
    "text",
    [
        '{"tool": "NAME", "arguments": {...}}',
        '{"tool": "NAME", "arguments": {}}',
        '{"tool": "<tool name>", "arguments": {}}',
        '{"tool": "TOOL_NAME", "x": 1}',
        '{"tool": "...", "arguments": {}}',
        '{"tool": "", "arguments": {}}',
        '{"tool": "extract_roi", "arguments": {"x": <x>, "y": <y>}}',
        '{"tool": "extract_roi", "arguments": {"x": 0, ...}}',
        '{"name": "extract_roi", "parameters": {"type": "object", "properties": {"x": {"type": "number"}}}}',
        '{"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}',
    ],
)
def test_a_quoted_example_or_description_is_no_action(text: str) -> None:
    assert fault(f"I must answer with {text}.")


@pytest.mark.parametrize(
    "text",
    [
        '{"x": 1, "y": 2, "w": 3, "h": 4}',
        '{"thought": "I call extract_roi", "x": 1}',
        '{"name": "Ann", "age": 7}',
        '{"action": "zoom in", "x": 1}',
        '{"extract_roi": "shows a box"}',
        '{"extract_roi": 5}',
        '{"tool": ["extract_roi"], "arguments": {"x": 1}}',
        '{"tool": "extract_roi", "arguments": [1, 2]}',
        '{"tool": "extract_roi", "arguments": "x=1, y=2"}',
        '{"tool": "extract_roi", "arguments": {"x": 1}, "tool": "get_image_info"}',
        "<tool_call>extract_roi(x=1)</tool_call>",
        "<function=extract_roi><parameter=x>1</parameter></function>",
    ],
)
def test_objects_that_are_no_action_get_a_fault(text: str) -> None:
    assert fault(text)


@pytest.mark.parametrize(
    "text",
    ["", "I look at (1200, 40), 512 x 512.", "extract_roi(x=1, y=2)", "{", "{}", "$\\text{tumour}$ {x, y}", "[1, 2]"],
)
def test_text_that_does_not_try_has_neither_action_nor_fault(text: str) -> None:
    assert parse_actions(text, NAMES) == Parsed((), None)


def test_an_action_within_a_broken_one_is_not_taken_for_what_was_meant() -> None:
    inner = '{"tool": "get_image_info"}'
    assert read(f'{{"tool": "extract_roi", "arguments": {{"x": 1 2, "note": {inner}}}}}') == []
    assert read(f'{{"tool": "extract_roi", "arguments": {{"reason": "as in {inner}"}}}}') == []


def test_an_action_behind_a_broken_one_is_found() -> None:
    broken = '{"tool": "extract_roi", "arguments": {"reason": "the "big" one"}}'
    assert read(f"{broken}\nSorry: {LOOK}") == [("extract_roi", BOX)]
    assert read(f'{{"tool": "extract_roi", "arguments": {{"x": oh no\n{LOOK}') == [("extract_roi", BOX)]


def test_arguments_never_come_from_outside_the_object() -> None:
    assert read('x = 7, "y": 8 {"tool": "extract_roi", "arguments": {"w": 3}} "h": 9') == [("extract_roi", {"w": 3})]
    assert read('{"tool": "extract_roi", "arguments": {"w": 3}, "x": 7}') == [("extract_roi", {"w": 3})]


def test_the_argument_text_keeps_characters_outside_ascii() -> None:
    (action,) = parse_actions('{"tool": "extract_roi", "reason": "\\u00fc\\ud83d\\ude00"}', NAMES).actions
    assert action == Action("extract_roi", {"reason": "ü😀"}, '{"reason": "ü😀"}')


@pytest.mark.parametrize(
    "piece",
    HOSTILE.split(),
)
@pytest.mark.timeout(60)  # a megabyte takes a second at most, and hours where the time is quadratic
def test_a_megabyte_of_anything_is_read_in_a_moment(piece: str) -> None:
    assert parse_actions(piece * (1_000_000 // len(piece)), NAMES).actions == ()


@pytest.mark.timeout(20)
def test_nesting_without_end_is_refused() -> None:
    for opening, closing in (("[", "]"), ('{"a":', "}"), ('[{"a":', "}]")):
        text = '{"tool": "extract_roi", "x": ' + opening * 100_000 + "1" + closing * 100_000 + "}"
        assert "levels" in fault(text)
