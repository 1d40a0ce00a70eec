"""Whatever the text, no action is made up; whatever the action and its usual damage, it is read as it was meant."""

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

from hypothesis import assume, given
from hypothesis import strategies as st

from pathnav.model.json_action import parse_actions

NAMES = ("get_image_info", "extract_roi", "finish_and_report")
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=12,
)
ARGUMENTS = st.dictionaries(st.text(max_size=8), JSON, max_size=4)
TOOLS = st.sampled_from(NAMES) | st.from_regex(r"[a-z]{2,8}_[a-z0-9]{2,8}_[a-z]{5}", fullmatch=True)
PROSE = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="{}"))
WRITTEN = """
{ } [ ] : , " ' “ ” ``` </ # // /* */ 12 -3.5 1e4 7 null True NaN … tool name it's get_image_info "tool" "arguments" "x"
"function" "extract_roi" 'extract_roi' {"tool": "arguments":{ "x": "tool_calls":[ <function=extract_roi>"""
PIECES = st.sampled_from([*WRITTEN.split(), " ", "\n"])
NUMBER = re.compile(r"-?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")


def leaves(value: Any) -> Iterator[Any]:
    """Yield the keys and the values within a value that hold no others."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield key
            yield from leaves(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from leaves(inner)
    else:
        yield value


def is_part(part: Any, whole: Any) -> bool:
    """Return whether objects lack keys at most."""
    if isinstance(part, dict) and isinstance(whole, dict):
        return all(key in whole and is_part(value, whole[key]) for key, value in part.items())
    return part == whole and type(part) is type(whole)


def written(value: Any, quote: Callable[[str], str], comma: str, blank: str) -> str:
    """Return a value as JSON with other quotes, a comma behind last members, and something where blanks may stand."""
    if isinstance(value, dict):
        members = [f"{quote(key)}{blank}:{blank}{written(inner, quote, comma, blank)}" for key, inner in value.items()]
        return "{" + blank + f"{blank},{blank}".join(members) + (comma if members else "") + blank + "}"
    if isinstance(value, list):
        inner = f"{blank},".join(written(member, quote, comma, blank) for member in value)
        return "[" + inner + (comma if value else "") + blank + "]"
    return quote(value) if isinstance(value, str) else json.dumps(value)


QUOTES: dict[str, Callable[[str], str]] = {
    "JSON": json.dumps,
    "characters outside ASCII": lambda text: json.dumps(text, ensure_ascii=False),
    "Python": repr,
    "typographic": lambda text: "“" + json.dumps(text)[1:-1] + "”",
    "bare": lambda text: text if re.fullmatch("[A-Za-z_][A-Za-z0-9_-]*", text) and text in KEYS else json.dumps(text),
}
KEYS = {"tool", "arguments"}


@given(st.text() | st.lists(PIECES, max_size=40).map("".join))
def test_nothing_in_an_action_stands_outside_the_text(text: str) -> None:
    parsed = parse_actions(text, NAMES)
    numbers = {float(number) for number in NUMBER.findall(text)}
    for action in parsed.actions:
        assert action.name in text
        for leaf in leaves(action.arguments):
            if isinstance(leaf, str):
                assert leaf in text
            elif isinstance(leaf, int | float) and not isinstance(leaf, bool):
                assert float(leaf) in numbers


@given(st.text(st.characters()) | st.lists(PIECES | st.text(st.characters(), max_size=3)).map("".join))
def test_no_text_raises_and_what_comes_back_can_be_stored(text: str) -> None:
    parsed = parse_actions(text, NAMES)
    assert not (parsed.actions and parsed.fault)
    (parsed.fault or "").encode()
    for action in parsed.actions:
        action.name.encode()
        action.raw.encode()
        assert json.loads(action.raw) == action.arguments


TALK = st.from_regex(r"[A-Za-z][a-z' ]{0,30}[a-z]", fullmatch=True)


@given(TALK, TALK | st.just(""), st.sampled_from(NAMES), st.sampled_from(["tool", "tool_name", "name", "action"]))
def test_a_needy_tool_that_is_only_talked_about_is_not_called(before: str, after: str, name: str, key: str) -> None:
    text = f"{before} {json.dumps({key: name})} {after}."
    assert parse_actions(text, NAMES, needy=NAMES) == parse_actions("", NAMES)
    assert [action.name for action in parse_actions(text, NAMES).actions] == [name]


@given(TALK, st.sampled_from(NAMES), ARGUMENTS)
def test_an_action_with_arguments_in_a_sentence_is_called_needy_or_not(
    before: str, name: str, arguments: dict[str, Any]
) -> None:
    text = f"{before} {json.dumps({'tool': name, 'arguments': arguments})} and so on"
    assert [action.arguments for action in parse_actions(text, NAMES, needy=NAMES).actions] == [arguments]


@given(PROSE)
def test_prose_without_braces_holds_no_action(text: str) -> None:
    assert parse_actions(text, NAMES).actions == ()


@given(TOOLS, ARGUMENTS, PROSE, PROSE, st.booleans())
def test_any_action_in_any_prose_comes_back(
    tool: str, arguments: dict[str, Any], before: str, after: str, ascii_only: bool
) -> None:
    text = json.dumps({"tool": tool, "arguments": arguments}, ensure_ascii=ascii_only)
    parsed = parse_actions(before + text + after, NAMES)
    assert [(action.name, action.raw) for action in parsed.actions] == [
        (tool, json.dumps(arguments, ensure_ascii=False))
    ]


@given(
    TOOLS,
    ARGUMENTS,
    st.sampled_from(sorted(QUOTES)),
    st.sampled_from(["", ",", " , "]),
    st.sampled_from(["", " ", "\n", "\t# it's {\n", '// "}\n', "/* ]}' */"]),
    st.sampled_from(
        ["{}", "```json\n{}\n```", "```\n{}", "<tool_call>{}</tool_call>", "[TOOL_CALLS] [{}]", "So: {} Done."]
    ),
)
def test_the_usual_damage_leaves_an_action_what_it_was(
    tool: str, arguments: dict[str, Any], quotes: str, comma: str, blank: str, around: str
) -> None:
    text = written({"tool": tool, "arguments": arguments}, QUOTES[quotes], comma, blank)
    parsed = parse_actions(around.replace("{}", text), NAMES)
    assert [(action.name, action.raw) for action in parsed.actions] == [
        (tool, json.dumps(arguments, ensure_ascii=False))
    ]


@given(TOOLS, ARGUMENTS, st.sampled_from(["", "\n", "\n```", "</tool_call>"]))
def test_missing_last_braces_are_added(tool: str, arguments: dict[str, Any], end: str) -> None:
    text = json.dumps({"tool": tool, "arguments": arguments})
    cut = text.rstrip("}")
    assume(not cut.endswith("{") and (end or not cut[-1].isdigit()))
    for shorter in range(len(cut), len(text)):
        parsed = parse_actions(text[:shorter] + end, NAMES)
        assert [(action.name, action.arguments) for action in parsed.actions] == [(tool, arguments)]


@given(TOOLS, ARGUMENTS, st.data())
def test_a_text_cut_anywhere_yields_whole_values_or_nothing(
    tool: str, arguments: dict[str, Any], data: st.DataObject
) -> None:
    text = json.dumps({"tool": tool, "arguments": arguments})
    for action in parse_actions(text[: data.draw(st.integers(0, len(text)))], NAMES).actions:
        assert action.name == tool and is_part(action.arguments, arguments)


@given(ARGUMENTS)
def test_arguments_given_as_text_are_those_given_as_an_object(arguments: dict[str, Any]) -> None:
    text = json.dumps({"name": "extract_roi", "arguments": json.dumps(arguments)})
    assert [action.arguments for action in parse_actions(text, NAMES).actions] == [arguments]
